"""Rows gathered by customer: the total and the arm of each, and how concentrated totals are.

Rows of one customer depend on each other, so statistics that count rows claim too much. Customers
are independent of each other: here each customer becomes one number, its total.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import number, require
from tailproof.typing import Array, Index

__all__ = [
    "Concentration",
    "Customers",
    "cap_of_totals",
    "owed",
    "refunds_outweigh",
    "totals_of",
    "windows_closed",
]

MOST_MIXED = 0.01
"""If more of the returning customers than this saw several arms, arms were drawn for each visit."""
ROUNDING = float(np.finfo(np.float64).eps)
"""A sum of n numbers is right up to n times this share of the sum of their sizes."""
FEW_CUSTOMERS = 30
"""If fewer customers than this make half of the revenue, more of their visits say little."""

Case = Literal["rows", "customers", "visits"]


def cap_of_totals(totals: Array, share: float = 0.99) -> tuple[float, float]:
    """Return the range to which totals are cut: quantiles of the totals that are not zero.

    high = max(Q(share), 0),  low = min(Q(1 − share), 0)

    Totals of all arms are pooled without weights, so that the range stays the same if customers
    change their arms: a permutation test needs that.

    >>> cap_of_totals(np.array([0.0, 0.0, 1.0, 2.0, 3.0, 1e6]), share=0.75)
    (0.0, 3.0)

    Source: Dixon 1960 for winsorising; experiment platforms cap totals of users in this way.
    Differences: both ends are cut, so refunds are too.
    """
    number("share", share, above=0.5, below=1)
    bought = totals[totals != 0]
    if not len(bought):
        return 0.0, 0.0
    levels = len(bought) * np.array([1 - share, share]) * (1 - 1e-12)  # for rounding
    places = np.maximum(np.ceil(levels).astype(np.int64), 1) - 1
    low, high = np.partition(bought, places)[places].tolist()
    return min(low, 0.0), max(high, 0.0)


def totals_of(customer: Index, reward: Array, size: int) -> Array:
    """Return the sum of each customer's rewards, zero where they cancel up to rounding.

    Orders and their refunds would leave a purchase of 1e-14 otherwise.

    >>> totals_of(np.array([0, 0, 0, 0, 1]), np.array([0.1, 0.2, -0.1, -0.2, 5.0]), 2).tolist()
    [0.0, 5.0]
    """
    total = np.bincount(customer, reward, size).astype(np.float64)
    rounding = ROUNDING * np.bincount(customer, minlength=size)
    rounding *= np.bincount(customer, np.abs(reward), size)
    return np.where((np.abs(total) <= rounding) & np.isfinite(rounding), 0.0, total)


def owed(totals: Array, low: float) -> Array:
    """Return how far each total is below 0 if the range begins at `low` = 0, else 0: refunds.

    >>> owed(np.array([-20.0, 0.0, 5.0]), 0.0).tolist(), owed(np.array([-20.0]), -9.0).tolist()
    ([20.0, 0.0, 0.0], [0.0])
    """
    return np.maximum(-totals, 0.0) if low == 0 else np.zeros(len(totals))


def refunds_outweigh(lead: float, owed_more: float) -> bool:
    """Return whether refunds that count as 0 may turn a lead round.

    `lead` is the low end of the lead's interval. On average a customer of the leader owes more than
    a customer of its rival, by `owed_more`.
    """
    return owed_more > 0 and lead < owed_more


class Concentration(NamedTuple):
    """How few customers make most of the revenue.

    Attributes
    ----------
    half : int
        The fewest customers that make half of the revenue.
    largest : float
        The share of the largest.

    Examples
    --------
    >>> Concentration.of(np.array([0.0, 1.0, 1.0, 1.0, 7.0]))
    Concentration(half=1, largest=0.7)
    """

    half: int
    largest: float

    @classmethod
    def of(cls, totals: Array) -> "Concentration":
        """Measure it; refunds count by their size."""
        sizes = np.sort(np.abs(totals))[::-1]
        total = float(sizes.sum())
        if not total > 0:
            return cls(0, 0.0)
        half = int(np.searchsorted(np.cumsum(sizes), total / 2 * (1 - 1e-12))) + 1
        return cls(half, float(sizes[0]) / total)

    @property
    def words(self) -> str:
        """A sentence if few customers make most of the revenue, else empty."""
        if not 0 < self.half < FEW_CUSTOMERS:
            return ""
        make = "customer makes" if self.half == 1 else "customers make"
        return (
            f"Few customers make most of the total: {self.half} {make} half of it, the largest "
            f"{self.largest:.0%}. More visits of the same customers will not help; more customers "
            "will."
        )


class _Rows(NamedTuple):
    arm: Index
    reward: Array
    time: Array | None
    propensity: Array | None
    standing_for: Array | None = None

    def take(self, rows: NDArray[np.bool_]) -> "_Rows":
        """Return the rows at these places."""
        return _Rows._make(None if column is None else column[rows] for column in self)


@dataclass(frozen=True, eq=False, kw_only=True)
class Customers:
    """One entry for each customer, in the order of their first visits.

    Attributes
    ----------
    case : "rows", "customers" or "visits"
        "rows": no units are known, so each row counts as another customer. "customers": each
        customer has one arm. "visits": arms were drawn for each visit.
    arm : array of int
        The number of the arm; of the first visit if there are several.
    total : array
        What the customer brought, uncapped.
    visits : array
    time : array, optional
        The time of the first visit, in seconds.
    weight : array, optional
        One over the propensity of the arm of the first visit.
    row_customer, row_arm, row_reward, row_propensity, row_time : arrays
        The rows behind it.
    mixed : int
        How many customers saw several arms by mistake.
    mixed_stay : bool
        Whether these count for their first arm; else they were left out.
    arms : int
        How many arms there are.

    Examples
    --------
    >>> found = Customers.of(
    ...     arm=np.array([0, 1, 0, 0]), reward=np.array([1.0, 0.0, 2.0, 5.0]),
    ...     unit=np.array([7, 8, 7, 9]),
    ... )
    >>> found.case, found.total.tolist(), found.arm.tolist()
    ('customers', [3.0, 0.0, 5.0], [0, 1, 0])

    """

    case: Case
    arm: Index
    total: Array
    visits: Array
    time: Array | None
    weight: Array | None
    row_customer: Index
    row_arm: Index
    row_reward: Array
    row_propensity: Array | None
    row_time: Array | None
    mixed: int
    mixed_stay: bool
    arms: int

    @classmethod
    def of(
        cls,
        *,
        arm: Index,
        reward: Array,
        unit: Index | None = None,
        time: Array | None = None,
        propensity: Array | None = None,
        count: Array | None = None,
        arms: int | None = None,
    ) -> "Customers":
        """Gather rows by unit, any whole numbers; NaN rewards must be left out before.

        `count` says how many visits a row stands for, if it is a sum of them.

        Rows are in the order of time, or `time` says it. At most 1 % of the returning customers
        with several arms are leaks and are left out; if they bring more than 1 % of the revenue,
        they count for their first arm, as an arm that loses its best customers looks bad. With more
        such customers, visits were randomised.
        """
        arm_count = int(arm.max(initial=-1)) + 1 if arms is None else arms
        require(len(arm) == len(reward), "reward", f"one for each of {len(arm)} rows", reward.shape)
        if time is not None:
            order = np.argsort(time, kind="stable")
            if not np.array_equal(order, np.arange(len(order))):
                arm, reward, time = arm[order], reward[order], time[order]
                unit = None if unit is None else unit[order]
                propensity = None if propensity is None else propensity[order]
                count = None if count is None else count[order]
        rows = _Rows(arm, reward, time, propensity, count)
        if unit is None:
            return cls._gathered("rows", np.arange(len(arm)), rows, arm_count)
        customer = _by_first_visit(unit)
        size = int(customer.max(initial=-1)) + 1
        visits = np.bincount(customer, count, size)
        first = _firsts(customer, size)
        mixed = np.bincount(customer, arm != arm[first][customer], size) > 0
        leaks, returning = int(mixed.sum()), int((visits > 1).sum())
        if not leaks:
            return cls._gathered("customers", customer, rows, arm_count)
        if leaks > max(1, MOST_MIXED * returning):
            return cls._gathered("visits", customer, rows, arm_count)
        sizes = np.abs(np.bincount(customer, np.nan_to_num(reward), size))
        if sizes[mixed].sum() > MOST_MIXED * sizes.sum():
            rows = rows._replace(arm=arm[first][customer])
            return cls._gathered("customers", customer, rows, arm_count, mixed=leaks, stay=True)
        kept = ~mixed[customer]
        new = (np.cumsum(~mixed) - 1)[customer[kept]]
        return cls._gathered("customers", new, rows.take(kept), arm_count, mixed=leaks)

    @classmethod
    def _gathered(
        cls,
        case: Case,
        customer: Index,
        rows: "_Rows",
        arms: int,
        mixed: int = 0,
        stay: bool = False,
    ) -> "Customers":
        count = int(customer.max(initial=-1)) + 1
        first = _firsts(customer, count)
        total = rows.reward if case == "rows" else totals_of(customer, rows.reward, count)
        total = np.where(np.isnan(total), 0.0, total)  # ∞ − ∞
        return cls(
            case=case,
            arm=rows.arm[first],
            total=np.asarray(total, dtype=np.float64),
            visits=np.bincount(customer, rows.standing_for, count).astype(np.float64),
            time=None if rows.time is None else rows.time[first],
            weight=None if rows.propensity is None else 1 / rows.propensity[first],
            row_customer=customer,
            row_arm=rows.arm,
            row_reward=rows.reward,
            row_propensity=rows.propensity,
            row_time=rows.time,
            mixed=mixed,
            mixed_stay=stay,
            arms=arms,
        )

    @property
    def n(self) -> int:
        """The number of customers."""
        return len(self.total)

    @property
    def returning(self) -> int:
        """How many customers have several rows."""
        return int((self.visits > 1).sum())

    @cached_property
    def sold(self) -> Index:
        """How many customers of each arm bought; a customer of several arms counts for each."""
        if self.case != "visits":
            return np.bincount(self.arm[self.total != 0], minlength=self.arms)
        bought = self.row_reward != 0
        pairs = np.unique(self.row_customer[bought] * self.arms + self.row_arm[bought])
        return np.bincount(pairs % self.arms, minlength=self.arms)

    def hidden(self, low: float, high: float) -> Array:
        """Return the share of each arm's buyers whose totals lie beyond a range."""
        beyond = (self.total < low) | (self.total > high)
        cut = np.bincount(self.arm[beyond], minlength=self.arms)
        return np.asarray(
            cut / np.maximum(np.bincount(self.arm[self.total != 0], minlength=self.arms), 1)
        )

    def capped_rows(self, low: float, high: float) -> Array:
        """Return the rewards of rows, scaled so that no customer's total leaves [low, high]."""
        capped, total, rows = np.clip(self.total, low, high), self.total, self.row_reward
        endless = np.isinf(rows)
        if endless.any():  # the infinite rows of such a customer share the cap
            theirs = (np.bincount(self.row_customer, endless, self.n) > 0)[self.row_customer]
            rows = np.where(theirs, np.sign(rows) * endless, rows)
            total = np.bincount(self.row_customer, rows, self.n).astype(np.float64)
        scale = np.divide(capped, total, out=np.ones(self.n), where=total != 0)
        return np.asarray(rows * scale[self.row_customer])

    def visit_scores(
        self, low: float, high: float, arm: int, other: int, period: Index | None = None
    ) -> Array:
        """Return a score for each customer: one arm beyond the other, by randomised visits.

        d_i = Σ_t (1{A_t = arm}/p_t − 1{A_t = other}/p_t) y_t min(1, c/S_i)

        Without propensities p_t is the share of the arm among the rows of a period, and y_t less
        the mean of its arm and period, with the difference of these means added for each visit; so
        growth and weekends cancel. Rows whose period is negative do not count.
        """
        y, p = self.capped_rows(low, high), self.row_propensity
        first, last = (self.row_arm == number for number in (arm, other))
        if p is not None:
            scores = (first / p - last / p) * y
            return np.bincount(self.row_customer, scores, self.n).astype(np.float64)
        place = np.zeros(len(y), np.int64) if period is None else period
        kept = np.flatnonzero(place >= 0)
        place, y, first, last = place[kept], y[kept], first[kept], last[kept]
        scores = np.zeros(len(kept))
        size = np.bincount(place)
        for sign, mine in ((1, first), (-1, last)):
            count = np.maximum(np.bincount(place[mine], minlength=len(size)), 1)
            mean = np.bincount(place[mine], y[mine], len(size)) / count
            scores += sign * (mine * (size / count)[place] * (y - mean[place]) + mean[place])
        return np.bincount(self.row_customer[kept], scores, self.n).astype(np.float64)


def windows_closed(
    *,
    arm: Index,
    reward: Array,
    unit: Index,
    time: Array,
    window: float,
    now: float,
    arms: int | None = None,
) -> tuple[Customers, int]:
    """Return the customers whose window is over, and how many customers still have time.

    The window starts at a customer's first visit, and only purchases within it count. A
    customer enters when the window is over, in the order of first visits, with the arm of the first
    visit whatever was seen later. So each customer is one finished number: statements for any look
    hold, also where a policy chose the arms.

    >>> found, waiting = windows_closed(
    ...     arm=np.array([0, 1, 0]), reward=np.array([1.0, 2.0, 4.0]), unit=np.array([1, 2, 1]),
    ...     time=np.array([0.0, 5.0, 8.0]), window=7, now=10.0,
    ... )
    >>> found.total.tolist(), waiting
    ([1.0], 1)

    """
    number("window", window, above=0)
    order = np.argsort(time, kind="stable")
    arm, reward, time = arm[order], reward[order], time[order]
    customer = _by_first_visit(unit[order])
    count = int(customer.max(initial=-1)) + 1
    first = _firsts(customer, count)
    start, first_arm = time[first], arm[first]
    over = start + window <= now
    kept = over[customer] & (time - start[customer] <= window)
    arm_count = int(arm.max(initial=-1)) + 1 if arms is None else arms
    new = (np.cumsum(over) - 1)[customer[kept]]
    rows = _Rows(first_arm[customer[kept]], reward[kept], time[kept], None)
    return Customers._gathered("customers", new, rows, arm_count), int((~over).sum())


def _by_first_visit(unit: Index) -> Index:
    """Return the number of each row's customer, counted by first visits."""
    _, first, customer = np.unique(unit, return_index=True, return_inverse=True)
    place = np.empty(len(first), np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    return np.asarray(place[customer], dtype=np.int64)


def _firsts(customer: Index, count: int) -> Index:
    """Return the first row of each customer, whose numbers are in the order of first visits."""
    first = np.empty(count, np.int64)
    first[customer[::-1]] = np.arange(len(customer))[::-1]
    return first
