"""Rows of other people's shops, in which simple statistics go wrong.

Each class is a world that breaks an assumption: customers return, one arm sells rarely and dear,
shares of arms ramp up while the shop grows, rows depend on each other, machines visit. `draw` gives
rows as a shop would export them; `values` says what each arm is truly worth per customer.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from tailproof.checks import number, require, whole
from tailproof.stats.periods import DAY
from tailproof.typing import Array, Index

__all__ = [
    "Autocorrelated",
    "Batches",
    "FewPrices",
    "RareDear",
    "Returning",
    "Rows",
    "Scheduled",
    "Segments",
    "Shapes",
    "Spoilt",
    "Stretched",
]


class Rows(NamedTuple):
    """Rows in the order of time.

    Attributes
    ----------
    arm : array of int
    reward : array
    unit : array of int
        The customer of each row.
    time : array
        In seconds.
    propensity : array
        The probability of the row's arm.
    """

    arm: Index
    reward: Array
    unit: Index
    time: Array
    propensity: Array

    @classmethod
    def of_two(cls, arm: Index, reward: Array, time: Array, share: Array) -> "Rows":
        """Return rows of different customers, whose second arm had this probability."""
        propensity = np.where(arm == 1, share, 1 - share)
        return cls(arm, reward, np.arange(len(arm)), time, propensity)

    def take(self, kept: NDArray[np.bool_]) -> "Rows":
        """Return the kept rows."""
        return Rows._make(column[kept] for column in self)

    def joined(self, *others: "Rows") -> "Rows":
        """Return these and other rows together, in the order of time."""
        columns = [np.concatenate(column) for column in zip(self, *others, strict=True)]
        order = np.argsort(columns[3], kind="stable")
        return Rows._make(column[order] for column in columns)

    @classmethod
    def even(cls, arm: Index, reward: Array, unit: Index | None = None, days: float = 14) -> "Rows":
        """Return rows spread evenly over days, of arms that were equally probable."""
        n = len(arm)
        share = np.full(n, 1 / (int(arm.max(initial=0)) + 1))
        customers = np.arange(n) if unit is None else unit
        return cls(arm, reward, customers, np.linspace(0, days * DAY, n, endpoint=False), share)


@dataclass(frozen=True, kw_only=True)
class Returning:
    """Customers who return, and a few who buy for others.

    A customer keeps an arm. Ordinary customers visit once or, if `returns`, a geometric number of
    times of mean 2; `heavy` customers share `their_share` of all visits. Baskets are lognormal
    around a customer's own level; heavy customers buy `eager` times as often.

    Parameters
    ----------
    rows : int
    returns : bool
    heavy : int
    their_share : float
    eager : float
    buyers : float
        The share of visits with a purchase.
    sigma : float
        The standard deviation of the logarithm of a basket.
    lifts : numbers
        By what factor each arm multiplies the share of buyers.

    Examples
    --------
    >>> rows = Returning(rows=1000, heavy=5, their_share=0.3).draw(np.random.default_rng(0))
    >>> len(rows.arm), int(np.bincount(rows.unit).max()) > 40
    (1000, True)
    """

    rows: int = 20_000
    returns: bool = True
    heavy: int = 0
    their_share: float = 0.0
    eager: float = 1.0
    buyers: float = 0.05
    sigma: float = 1.5
    lifts: Sequence[float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        whole("rows", self.rows)
        whole("heavy", self.heavy, at_least=0)
        number("their_share", self.their_share, at_least=0, below=1)
        number("buyers", self.buyers, above=0, at_most=1)
        most = self.buyers * self.eager * max(self.lifts)
        require(most <= 1, "eager", f"so small that {most:g} is a probability", self.eager)

    def draw(self, rng: np.random.Generator) -> Rows:
        """Draw a file."""
        theirs = rng.binomial(self.rows, self.their_share) if self.heavy else 0
        left = self.rows - theirs
        visits = rng.geometric(0.5, left) if self.returns else np.ones(left, np.int64)
        visits = visits[: int(np.searchsorted(np.cumsum(visits), left)) + 1]
        ordinary = np.repeat(np.arange(len(visits)), visits)[:left] + self.heavy
        heavy = rng.integers(0, max(self.heavy, 1), theirs)
        unit = rng.permutation(np.concatenate([heavy, ordinary]))
        customers = self.heavy + len(visits)
        arm = rng.integers(0, len(self.lifts), customers)[unit]
        spread = math.sqrt(0.5) * self.sigma  # half of the variance is the customer's own
        level = rng.normal(3.0, spread, customers)
        chance = self.buyers * np.asarray(self.lifts, float)[arm]
        chance = chance * np.where(unit < self.heavy, self.eager, 1.0)
        basket = np.exp(level[unit] + rng.normal(0.0, spread, self.rows))
        return Rows.even(arm, np.where(rng.random(self.rows) < chance, basket, 0.0), unit)


@dataclass(frozen=True, kw_only=True)
class RareDear:
    """One arm sells often and cheaply, the other rarely and dear; the dear one may be better.

    `also` is the probability with which the dear arm sells cheaply, too.

    Examples
    --------
    >>> RareDear(often=0.05, cheap=10.0, rarely=0.001, dear=2000.0).values
    (0.5, 2.0)
    """

    rows: tuple[int, int] = (1500, 1500)
    often: float = 0.05
    cheap: float = 9.99
    rarely: float = 0.001
    dear: float = 1999.0
    also: float = 0.0

    @property
    def values(self) -> tuple[float, float]:
        """What the cheap and the dear arm earn per row."""
        return self.often * self.cheap, self.rarely * self.dear + self.also * self.cheap

    def draw(self, rng: np.random.Generator) -> Rows:
        """Draw a file."""
        arm = rng.permutation(np.repeat([0, 1], self.rows))
        dear, cheap = (
            np.where(arm == 1, self.rarely, 0.0),
            np.where(arm == 1, self.also, self.often),
        )
        draw = rng.random(len(arm))
        price = np.where(draw < dear, self.dear, self.cheap)
        return Rows.even(arm, np.where(draw < dear + cheap, price, 0.0))


@dataclass(frozen=True, kw_only=True)
class Shapes:
    """Arms of the same mean and of different shapes: often and cheap, seldom and dear.

    P(purchase) = share/ratio^a and baskets are lognormal around ratio^a, for a = 0, 1, …
    """

    rows: int = 20_000
    arms: int = 2
    ratio: float = 4.0
    share: float = 0.1
    sigma: float = 0.5

    def draw(self, rng: np.random.Generator) -> Rows:
        """Draw a file."""
        arm = rng.integers(0, self.arms, self.rows)
        factor = self.ratio**arm
        basket = 10 * factor * np.exp(rng.normal(0.0, self.sigma, self.rows))
        return Rows.even(arm, np.where(rng.random(self.rows) < self.share / factor, basket, 0.0))


@dataclass(frozen=True, kw_only=True)
class Stretched:
    """Arms that are equal at every moment, while the shop and their shares change.

    Parameters
    ----------
    rows, days : int
    start, end : float
        The share of the new arm on the first and the last day, in equal steps.
    growth : float
        The share of buyers on the last day, as a multiple of the first.
    weekend : float
        The share of buyers on two of seven days, as a multiple.
    added : float
        The part of the time before the new arm exists.
    lift : float
        By what factor the new arm multiplies the share of buyers.

    Examples
    --------
    >>> rows = Stretched(rows=1000, added=0.5).draw(np.random.default_rng(0))
    >>> bool(rows.arm[:450].any())
    False
    """

    rows: int = 20_000
    days: int = 28
    start: float = 0.5
    end: float = 0.5
    growth: float = 1.0
    weekend: float = 1.0
    added: float = 0.0
    buyers: float = 0.05
    sigma: float = 1.0
    lift: float = 1.0

    def draw(self, rng: np.random.Generator) -> Rows:
        """Draw a file."""
        at = np.sort(rng.random(self.rows)) * self.days
        part = np.floor(at) / max(self.days - 1, 1)
        share = self.start + (self.end - self.start) * part
        share = np.where(at < self.added * self.days, 0.0, share)
        arm = (rng.random(self.rows) < share).astype(np.int64)
        chance = self.buyers * (1 + (self.growth - 1) * part)
        chance = chance * np.where(np.floor(at) % 7 >= 5, self.weekend, 1.0)
        chance = chance * np.where(arm == 1, self.lift, 1.0)
        reward = _purchases(rng, chance, self.sigma)
        return Rows.of_two(arm, reward, at * DAY, share)


@dataclass(frozen=True, kw_only=True)
class Scheduled:
    """Equal arms, the second of which is shown at certain hours, when other customers buy.

    Parameters
    ----------
    rows, days : int
    share : float
        The share of the second arm, by day and on weekdays.
    night, weekend : float, optional
        Its share in the first third of a day, and on two of seven days.
    night_sales, weekend_sales : float
        The share of buyers then, as a multiple.

    Examples
    --------
    >>> rows = Scheduled(rows=1000, share=0.0, night=0.5).draw(np.random.default_rng(0))
    >>> bool(rows.arm[rows.time % DAY > DAY / 3].any())
    False
    """

    rows: int = 20_000
    days: int = 28
    share: float = 0.5
    night: float | None = None
    weekend: float | None = None
    night_sales: float = 1.0
    weekend_sales: float = 1.0
    buyers: float = 0.04
    sigma: float = 1.0

    def draw(self, rng: np.random.Generator) -> Rows:
        """Draw a file."""
        at = np.sort(rng.random(self.rows)) * self.days
        dark, free = at % 1 < 1 / 3, np.floor(at) % 7 >= 5
        share = np.full(self.rows, self.share)
        share = share if self.night is None else np.where(dark, self.night, share)
        share = share if self.weekend is None else np.where(free, self.weekend, share)
        arm = (rng.random(self.rows) < share).astype(np.int64)
        chance = self.buyers * np.where(dark, self.night_sales, 1.0)
        chance = chance * np.where(free, self.weekend_sales, 1.0)
        reward = _purchases(rng, chance, self.sigma)
        return Rows.of_two(arm, reward, at * DAY, share)


@dataclass(frozen=True, kw_only=True)
class Batches:
    """Equal arms, whose shares somebody sets anew every few days, by the rewards so far.

    `kind` is "thompson" (the probability of being better, between .05 and .95) or "greedy" (nine of
    ten visitors get the better arm).
    """

    rows: int = 14_000
    days: int = 14
    every: int = 1
    kind: Literal["thompson", "greedy"] = "thompson"
    growth: float = 1.0
    buyers: float = 0.05
    sigma: float = 1.0

    def draw(self, rng: np.random.Generator) -> Rows:
        """Draw a file."""
        at = np.sort(rng.random(self.rows)) * self.days
        day = np.floor(at).astype(np.int64)
        chance = self.buyers * (1 + (self.growth - 1) * at / self.days)
        reward = _purchases(rng, chance, self.sigma)
        share, draws = np.full(self.rows, 0.5), rng.random(self.rows)
        for start in range(self.every, self.days, self.every):
            old = day < start
            treated, control = (reward[old & ((draws < share) == side)] for side in (True, False))
            error = math.sqrt(treated.var() / len(treated) + control.var() / len(control)) or 1.0
            lead = float(treated.mean() - control.mean()) / error
            chosen = float(ndtr(lead)) if self.kind == "thompson" else (0.9 if lead > 0 else 0.1)
            share[~old] = min(max(chosen, 0.05), 0.95)
        arm = (draws < share).astype(np.int64)
        return Rows.of_two(arm, reward, at * DAY, share)


@dataclass(frozen=True, kw_only=True)
class Segments:
    """Equal arms, one of which is shown more often to customers who buy more often.

    Three of ten customers buy four times as often; the second arm is shown to them with probability
    `often`, to other customers with probability `seldom`.
    """

    rows: int = 20_000
    often: float = 0.8
    seldom: float = 0.3
    buyers: float = 0.03
    sigma: float = 1.0

    def draw(self, rng: np.random.Generator) -> Rows:
        """Draw a file."""
        customers = max(self.rows // 2, 1)
        eager = rng.random(customers) < 0.3
        share = np.where(eager, self.often, self.seldom)
        arms = (rng.random(customers) < share).astype(np.int64)
        unit = rng.integers(0, customers, self.rows)
        chance = self.buyers * np.where(eager, 4.0, 1.0)[unit]
        rows = Rows.even(arms[unit], _purchases(rng, chance, self.sigma), unit)
        return rows._replace(propensity=np.where(arms == 1, share, 1 - share)[unit])


@dataclass(frozen=True, kw_only=True)
class Autocorrelated:
    """Rewards that depend on earlier rewards, y_t = ρ y_{t−1} + √(1 − ρ²) ε_t, and equal arms.

    `order` says how arms were given: "drawn" for each row, or in "blocks" of 50 rows.
    """

    rows: int = 2000
    rho: float = 0.9
    order: Literal["drawn", "blocks"] = "drawn"

    def draw(self, rng: np.random.Generator) -> Rows:
        """Draw a file."""
        from scipy.signal import lfilter

        noise = rng.standard_normal(self.rows) * math.sqrt(1 - self.rho**2)
        noise[0] = rng.standard_normal()
        level = lfilter([1.0], [1.0, -self.rho], noise)
        if self.order == "drawn":
            arm = rng.integers(0, 2, self.rows)
        else:
            arm = rng.integers(0, 2, self.rows // 50 + 1).repeat(50)[: self.rows]
        return Rows.even(arm, np.exp(np.asarray(level)))


@dataclass(frozen=True, kw_only=True)
class Spoilt:
    """A sound even split of two equal arms, spoilt by machines or by orders that occur twice.

    Parameters
    ----------
    bots : int
        Rows of one machine, all under the second arm, that buy nothing.
    one_machine : bool
        Whether the machine is one customer in a burst, or each of its rows is another customer.
    doubled : float
        The share of the second arm's purchases that are in the file twice.
    """

    rows: int = 20_000
    bots: int = 0
    one_machine: bool = True
    doubled: float = 0.0
    buyers: float = 0.05

    def draw(self, rng: np.random.Generator) -> Rows:
        """Draw a file."""
        clean = Returning(rows=self.rows, returns=False, buyers=self.buyers, sigma=1.0).draw(rng)
        again = (clean.arm == 1) & (clean.reward > 0) & (rng.random(self.rows) < self.doubled)
        arms = np.ones(self.bots, np.int64)
        start, who = float(clean.time[self.rows // 2]), self.rows + 1
        unit = np.full(self.bots, who) if self.one_machine else who + np.arange(self.bots)
        late = start + np.linspace(0, 3600.0, self.bots)
        machine = Rows(arms, np.zeros(self.bots), unit, late, np.full(self.bots, 0.5))
        return clean.joined(clean.take(again), machine)


@dataclass(frozen=True, kw_only=True)
class FewPrices:
    """Rewards of a few prices, one of which is rare and large.

    Examples
    --------
    >>> round(FewPrices(prices=(9.99, 499.0), chances=(0.1, 0.001)).values[0], 3)
    1.498
    """

    rows: int = 1000
    prices: Sequence[float] = (9.99, 19.99, 499.0)
    chances: Sequence[float] = (0.1, 0.05, 0.002)
    arms: int = 2

    def __post_init__(self) -> None:
        rule = f"one for each of {len(self.prices)} prices, of at most 1 in all"
        ok = len(self.chances) == len(self.prices) and sum(self.chances) <= 1
        require(ok, "chances", rule, tuple(self.chances))

    @property
    def values(self) -> tuple[float, ...]:
        """The mean reward of a row, for each arm."""
        worth = sum(p * c for p, c in zip(self.prices, self.chances, strict=True))
        return (worth,) * self.arms

    def draw(self, rng: np.random.Generator) -> Rows:
        """Draw a file."""
        prices = np.append(np.asarray(self.prices, float), 0.0)
        chances = np.append(self.chances, 1 - sum(self.chances))
        reward = prices[rng.choice(len(prices), self.rows, p=chances)]
        return Rows.even(rng.integers(0, self.arms, self.rows), reward)


def _purchases(rng: np.random.Generator, chance: Array, sigma: float) -> Array:
    """Return a lognormal basket for each row with this chance of a purchase, else zero."""
    basket = np.exp(rng.normal(3.0, sigma, len(chance)))
    return np.where(rng.random(len(chance)) < chance, basket, 0.0)
