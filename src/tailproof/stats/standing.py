"""Who leads among arms, customer by customer, and whether that is sure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import number, require
from tailproof.formatting import often
from tailproof.stats.contrasts import Contrast, Flags, contrast, holm, of_scores
from tailproof.stats.customers import (
    Concentration,
    Customers,
    cap_of_totals,
    owed,
    refunds_outweigh,
)
from tailproof.stats.intervals import (
    BoundedSample,
    evidence_needed,
    mean_difference,
    mean_evidence,
)
from tailproof.stats.periods import Moved, days_of, moved, shared_periods
from tailproof.typing import Array, Index

__all__ = ["LEAST_SOLD", "Looks", "Standing"]

Looks = Literal["one", "any"]

LEAST_SOLD = 10
"""Purchases of different customers that every arm needs before an arm is sure to lead."""
FEWEST_CUSTOMERS = 4
"""If fewer customers than this make half of the revenue, nothing is sure."""
_WARY = 10
"""Intervals on a policy's log divide their error probability by this, as sums of weighted rewards
have heavy tails. Without it 6 to 11 % of equal arms were called different, with it 2 to 4.5 %."""
MOST_HIDDEN = 0.1
"""A cap that cuts more than this share of an arm's buyers hides the value of the arm."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Standing:
    """The arms of a file or a page by the revenue of their customers.

    An arm is sure to lead if it beats every rival at half of 1 − level, one-sided. This needs no
    correction for the number of arms: a wrong claim must beat the truly best arm.

    Parameters
    ----------
    customers : Customers
    names : sequence of str
        Of the arms.
    looks : "one" or "any"
        "one": the file is looked at once, so `contrast` compares. "any": evidence that holds at
        every look, for arms that do not change; also used where shares followed the rewards.
    level : float
    share : float
        The share of non-zero totals below the cap.
    largest, smallest : float, optional
        Bounds of a customer's total; then nothing is capped.
    assumed : bool
        Whether these bounds are guessed from the rewards: then every arm must have sold too.
    costs : bool
        Whether small is good.
    unsound : tuple of str
        Why nothing is sure, known from elsewhere.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> arm = rng.integers(0, 2, 40_000)
    >>> buys = rng.random(40_000) < np.where(arm == 1, 0.06, 0.04)
    >>> spent = np.where(buys, rng.lognormal(3, 1, 40_000), 0)
    >>> found = Standing(customers=Customers.of(arm=arm, reward=spent), names=["a", "b"])
    >>> found.leader, found.sure, found.rivals
    ('b', True, ())

    Source: one-sided tests of the best arm: Gutmann and Maymin 1987; Hung and Fithian 2016.
    Differences: each test is two tests that must agree, and every arm must have sold.
    """

    customers: Customers
    names: Sequence[str]
    looks: Looks = "one"
    level: float = 0.95
    share: float = 0.99
    largest: float | None = None
    smallest: float | None = None
    assumed: bool = False
    costs: bool = False
    unsound: tuple[str, ...] = ()
    seed: int = 0
    _pairs: dict[tuple[int, int], Contrast] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        number("level", self.level, at_least=0.5, below=1)
        require(self.looks in ("one", "any"), "looks", "'one' or 'any'", self.looks)
        rule = f"one for each of {self.customers.arms} arms"
        require(len(self.names) == self.customers.arms, "names", rule, list(self.names))
        for name, bound in (("largest", self.largest), ("smallest", self.smallest)):
            if bound is not None:
                number(name, bound)
        totals = self.customers.total
        if self.largest is not None and len(totals):
            most = float(totals.max())
            rule = f"at least {most:g}, the largest total here"
            require(self.largest >= most, "largest", rule, self.largest)
        if self.smallest is not None and len(totals):
            least = float(totals.min())
            rule = f"at most {least:g}, the smallest total here"
            require(self.smallest <= least, "smallest", rule, self.smallest)

    # What is compared

    @property
    def bounded(self) -> bool:
        """Whether the user named the largest total, so that nothing is capped from above."""
        return self.largest is not None and not self.assumed

    @cached_property
    def range(self) -> tuple[float, float]:
        """The range to which totals are cut."""
        totals = self.customers.total
        low, high = cap_of_totals(totals, self.share)
        if not math.isfinite(high - low):  # infinite totals are cut to the largest finite one
            finite = totals[np.isfinite(totals)]
            low, high = (
                max(low, float(finite.min(initial=0))),
                min(high, float(finite.max(initial=0))),
            )
        if self.largest is not None:
            low = min(0.0, float(self.customers.total.min(initial=0.0)))
        return (
            low if self.smallest is None else self.smallest,
            high if self.largest is None else self.largest,
        )

    @cached_property
    def capped(self) -> Array:
        """The totals of customers, cut to the range."""
        return np.clip(self.customers.total, *self.range)

    @cached_property
    def above(self) -> int:
        """How many customers' totals are cut from above."""
        return int((self.customers.total > self.range[1]).sum())

    @cached_property
    def below(self) -> int:
        """How many customers' totals are cut from below, as refunds may be."""
        return int((self.customers.total < self.range[0]).sum())

    @cached_property
    def day(self) -> Index | None:
        """The day of each customer's first visit, if times are known and of several days."""
        if self.customers.time is None or not self.customers.n:
            return None
        days = days_of(self.customers.time)
        return days if days.max() else None

    @cached_property
    def row_day(self) -> Index | None:
        """The day of each row, if times are known and of several days."""
        time = self.customers.row_time
        days = None if time is None or not len(time) else days_of(time)
        return days if days is not None and days.max() else None

    @cached_property
    def moved(self) -> Moved:
        """Whether shares of arms moved, or rewards."""
        customers = self.customers
        if customers.case == "visits":
            rows = customers.capped_rows(*self.range)
            return moved(customers.row_arm, rows, customers.arms, self.row_day)
        return moved(customers.arm, self.capped, customers.arms, self.day)

    @cached_property
    def judged_for(self) -> Looks:
        """The looks that statements hold for: any, where the shares followed the rewards."""
        adaptive = self.moved.followed and not self.weighed
        return "any" if adaptive and self.customers.case != "visits" else self.looks

    @cached_property
    def concentration(self) -> Concentration:
        """How few customers make most of the capped revenue."""
        return Concentration.of(self.capped)

    # Means and pairs

    @cached_property
    def means(self) -> Array:
        """The mean capped total of each arm's customers, over all days; NaN without customers."""
        customers = self.customers
        if customers.case == "visits":
            return self._visit_means
        weight = np.ones(customers.n) if customers.weight is None else customers.weight
        sums = np.bincount(customers.arm, weight, customers.arms)
        totals = np.bincount(customers.arm, weight * self.capped, customers.arms)
        return _ratio(totals, sums)

    @cached_property
    def per_visit(self) -> Array:
        """What each arm earns per visit; its leader may be another arm."""
        customers = self.customers
        rows = customers.capped_rows(*self.range)
        visits = np.bincount(customers.row_arm, minlength=customers.arms)
        sums = np.bincount(customers.row_arm, rows, customers.arms)
        return _ratio(sums, visits)

    @property
    def _visit_means(self) -> Array:
        customers = self.customers
        rows, p = customers.capped_rows(*self.range), customers.row_propensity
        sums = np.bincount(customers.row_arm, rows if p is None else rows / p, customers.arms)
        shares = np.bincount(customers.row_arm, minlength=customers.arms) / len(customers.row_arm)
        return np.asarray(sums / (customers.n * (shares if p is None else np.ones(customers.arms))))

    @cached_property
    def effects(self) -> Array:
        """What each arm earns beyond the average arm of its days: by these the leader is chosen.

        τ of the least squares Σ n_at (m_at − μ_t − τ_a)². Without days, means less their mean.
        """
        customers = self.customers
        if (
            customers.case == "visits"
            and self.row_day is not None
            and customers.row_propensity is None
        ):
            most = int(np.bincount(customers.row_arm, minlength=customers.arms).argmax())
            arms = range(customers.arms)
            scores = [self._visit_scores(*self.range, arm, most).mean() for arm in arms]
            return np.where(np.isnan(self.means), math.nan, scores)
        if self.day is None or customers.case == "visits" or self.judged_for == "any":
            return np.asarray(self.means - np.nanmean(self.means))
        weight = np.ones(customers.n) if customers.weight is None else customers.weight
        days = int(self.day.max(initial=0)) + 1
        cell = self.day * customers.arms + customers.arm
        n = np.bincount(cell, weight, days * customers.arms).reshape(days, customers.arms)
        sums = np.bincount(cell, weight * self.capped, n.size).reshape(n.shape)
        share = n / np.maximum(n.sum(axis=1, keepdims=True), 1e-300)
        normal = np.diag(n.sum(axis=0)) - n.T @ share
        right = sums.sum(axis=0) - share.T @ sums.sum(axis=1)
        effects, _, rank, _ = np.linalg.lstsq(normal, right, rcond=1e-12)
        if rank < customers.arms - 1:  # some arms never met
            return np.asarray(self.means - np.nanmean(self.means))
        return np.where(n.sum(axis=0) > 0, effects, math.nan)

    @property
    def weighed(self) -> bool:
        """Whether rewards are weighted by propensities, as a policy chose the arms."""
        return self.moved.followed and self.customers.weight is not None

    @property
    def _error(self) -> float:
        """The error of an interval, both sides together."""
        return (1 - self.level) / (_WARY if self.weighed else 1)

    def pair(self, arm: int, other: int) -> Contrast:
        """Return how much more the first arm earns than the other, for the looks `judged_for`."""
        if (arm, other) not in self._pairs:
            self._pairs[arm, other] = self._compared(arm, other)
        return self._pairs[arm, other]

    def _compared(self, arm: int, other: int) -> Contrast:
        customers = self.customers
        if customers.case == "visits":
            scores = self._visit_scores(*self.range, arm, other)
            scored = of_scores(scores, 1 - self._error)
            if not self.bounded:
                return scored
            least = min(np.bincount(customers.row_arm, minlength=customers.arms)[[arm, other]])
            worst = (
                (self.range[1] - self.range[0]) * len(customers.row_arm) / max(float(least), 1.0)
            )
            ends = (of_scores(np.append(scores, side * worst), 1 - self._error) for side in (-1, 1))
            return _at_worst(scored, *ends)
        if self._by_evidence(arm, other):
            return self._at_any_look(arm, other)
        mine, first, period, weight = self._matched(arm, other)
        level, any_moved = 1 - self._error, self.moved.shares

        def compared(*made_up: tuple[float, float]) -> Contrast:
            """Compare, with more customers of both arms in the fullest period."""
            more = len(made_up)
            x = np.append(self.capped[mine], np.ravel(made_up))
            place = period
            if period is not None:
                full = np.full(2 * more, np.bincount(period).argmax() if len(period) else 0)
                place = np.append(period, full)
            scale = weight
            if weight is not None:
                scale = np.append(weight, np.full(2 * more, weight.mean()))
            sides = np.append(first, np.array([True, False] * more, np.bool_))
            return contrast(
                x,
                sides,
                period=place,
                weight=scale,
                moved=any_moved,
                level=level,
                seed=self.seed,
            )

        plain = compared()
        if not (self.bounded and plain.known):
            return plain
        low, high = self.range
        return _at_worst(plain, compared((low, high)), compared((high, low)))

    def _by_evidence(self, arm: int, other: int) -> bool:
        """Whether two arms are compared by evidence; with bounds also after few sales."""
        customers = self.customers
        few = self.bounded and min(customers.sold[[arm, other]]) < LEAST_SOLD
        return customers.case != "visits" and (self.judged_for == "any" or few)

    def _matched(self, arm: int, other: int) -> tuple[Index, Flags, Index | None, Array | None]:
        """Return the customers of two arms: which, who has the first arm, periods and weights."""
        customers = self.customers
        mine = np.flatnonzero((customers.arm == arm) | (customers.arm == other))
        first, period = customers.arm[mine] == arm, None
        if self.day is not None:
            period, kept = shared_periods(self.day[mine], first)
            mine, first, period = mine[kept], first[kept], period[kept]
        weight = None if customers.weight is None else customers.weight[mine]
        if weight is not None and self.weighed:
            weight = np.sqrt(weight)  # rewards of a policy's log then have about equal variances
        return mine, first, period, weight

    def uncapped(self, arm: int, other: int) -> float:
        """Return how much more the first arm earned than the other, per customer, without a cap."""
        customers = self.customers
        if not np.isfinite(customers.total).all():
            return math.nan
        if customers.case == "visits":
            return float(self._visit_scores(-math.inf, math.inf, arm, other).mean())
        if self.judged_for == "any":
            first, second = (customers.total[customers.arm == number] for number in (arm, other))
            return float(first.mean()) - float(second.mean())
        mine, first, period, weight = self._matched(arm, other)
        return contrast(
            customers.total[mine],
            first,
            period=period,
            weight=weight,
            moved=self.moved.shares,
            draws=0,
        ).difference

    def _visit_scores(self, low: float, high: float, arm: int, other: int) -> Array:
        """Return scores of randomised visits, within days on which both arms were there."""
        customers, day = self.customers, self.row_day
        if day is None or customers.row_propensity is not None:
            return customers.visit_scores(low, high, arm, other)
        mine = np.flatnonzero((customers.row_arm == arm) | (customers.row_arm == other))
        period, kept = shared_periods(day[mine], customers.row_arm[mine] == arm)
        count = int(day.max()) + 1
        of_day = np.full(count, -1)
        of_day[day[mine[kept]]] = period[kept]
        return customers.visit_scores(low, high, arm, other, of_day[day])

    def _at_any_look(self, arm: int, other: int) -> Contrast:
        """Compare by evidence; p values are by Ville's inequality."""
        samples = [self.capped[self.customers.arm == number] for number in (arm, other)]
        bounded = self._bounded_samples(arm, other)
        if bounded is None:
            return of_scores(np.zeros(0))
        a, b = bounded
        low, high = mean_difference(a, b, self.level)
        better, worse = _p_of_evidence(mean_evidence(a, b)), _p_of_evidence(mean_evidence(b, a))
        ea, eb = (float(x.std()) / math.sqrt(len(x)) for x in samples)
        return Contrast(
            difference=a.mean - b.mean,
            low=low,
            high=high,
            better=better,
            worse=worse,
            error=math.hypot(ea, eb),
            values=(a.mean, b.mean),
            errors=(ea, eb),
            freedom=math.inf,
            customers=sum(map(len, samples)),
        )

    def _bounded_samples(self, arm: int, other: int) -> tuple[BoundedSample, BoundedSample] | None:
        """Return capped totals of two arms; None without a range or customers."""
        (low, high), arms = self.range, self.customers.arm
        first, last = (self.capped[arms == number] for number in (arm, other))
        if not (high > low and len(first) and len(last)):
            return None
        a, b = (BoundedSample.of(sample, low=low, high=high) for sample in (first, last))
        return a, b

    # Who leads

    @cached_property
    def best(self) -> int | None:
        """The number of the leading arm; None if estimates are equal."""
        effects = -self.effects if self.costs else self.effects
        if np.isnan(effects).all():
            return None
        first = np.flatnonzero(effects >= np.nanmax(effects))
        return int(first[0]) if len(first) == 1 else None

    @property
    def leader(self) -> str | None:
        """The name of the leading arm."""
        return None if self.best is None else self.names[self.best]

    @cached_property
    def rivals(self) -> tuple[str, ...]:
        """The arms that the leader is not sure to beat, each compared with the leader alone."""
        if self.best is None:
            return tuple(self.names)
        others = [arm for arm in range(len(self.names)) if arm != self.best]
        return tuple(self.names[arm] for arm in others if self._p(self.best, arm) > self._asked)

    @property
    def _asked(self) -> float:
        """The p value below which an arm beats a rival."""
        if self.judged_for == "any":
            return math.exp(-evidence_needed(max(2, len(self.names)), self.level))
        return self._error / 2

    def _p(self, arm: int, other: int) -> float:
        if (arm, other) not in self._pairs and self._by_evidence(arm, other):  # no interval yet
            samples = self._bounded_samples(*((other, arm) if self.costs else (arm, other)))
            return 1.0 if samples is None else _p_of_evidence(mean_evidence(*samples))
        contrast = self.pair(arm, other)
        return contrast.worse if self.costs else contrast.better

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """Why no lead is sure, even if the comparisons say so."""
        doubts = [*self.unsound, *self._about_sales(), *self._about_refunds(), *self._about_time()]
        few = self.concentration
        if 0 < few.half < FEWEST_CUSTOMERS and self.customers.n:
            doubts.append(
                f"{few.half} of the customers make half of the revenue: so few say nothing about "
                "others"
            )
        return tuple(doubts)

    def _about_sales(self) -> list[str]:
        if self.bounded:
            return []
        few = [
            (name, sold)
            for name, sold in zip(self.names, self.customers.sold.tolist(), strict=True)
            if sold < LEAST_SOLD
        ]
        if few:
            sales = ", ".join(
                f"{name} has sold {often(sold) if sold else 'nothing'}" for name, sold in few[:3]
            )
            return [
                f"{sales}, and every arm needs {LEAST_SOLD} sales before a lead is sure, as nobody "
                "knows what its next sale brings; name the largest possible one if you know it"
            ]
        hidden = self.customers.hidden(*self.range)
        worst = int(hidden.argmax()) if len(hidden) else 0
        if len(hidden) and hidden[worst] > MOST_HIDDEN:
            return [
                f"the cap of {self.range[1]:,.4g} cuts {hidden[worst]:.0%} of the sales of "
                f"{self.names[worst]}, so it hides what that arm is worth; use a larger share"
            ]
        return []

    def _about_refunds(self) -> list[str]:
        """Say if refunds that count as 0 may outweigh the lead."""
        customers, best = self.customers, self.best
        if best is None or self.costs or customers.case == "visits":
            return []
        refunds = np.bincount(customers.arm, owed(customers.total, self.range[0]), customers.arms)
        each = _ratio(refunds, np.bincount(customers.arm, minlength=customers.arms))
        pairs = [
            (self.pair(best, arm), float(each[best] - each[arm]))
            for arm in range(customers.arms)
            if each[best] > each[arm]
        ]
        if any(pair.known and refunds_outweigh(pair.low, more) for pair, more in pairs):
            return [f"refunds of {self.leader}, which the cap leaves out, may outweigh its lead"]
        return []

    def _about_time(self) -> list[str]:
        drift = self.moved
        if drift.followed and drift.rewards and not self.weighed:
            times = "the times, or " if self.customers.time is None else ""
            return [
                "both the shares of the arms and the rewards moved with time, so arms met other "
                f"customers; give {times}propensities if a policy chose the arms"
            ]
        if drift.followed and self.customers.case == "visits" and not self.weighed:
            return [
                "the shares of the arms followed the rewards, and arms were drawn for each visit; "
                "give the propensities"
            ]
        if drift.runs:
            return [
                "arms come in runs of rows, and neighbouring rewards are alike, so a run is one "
                "observation; name the unit that a run belongs to"
            ]
        if self.best is None or self.day is None:
            return []
        never = [
            self.names[arm]
            for arm in range(len(self.names))
            if arm != self.best and not self.pair(self.best, arm).customers
        ]
        if never:
            return [f"{self.leader} and {', '.join(never)} were never there on the same days"]
        return []

    @cached_property
    def closest(self) -> int | None:
        """The rival that is hardest to tell from the leader; None without one."""
        others = [arm for arm in range(len(self.names)) if arm != self.best]
        if self.best is None or not others:
            return None
        best = self.best
        return max(others, key=lambda arm: self._p(best, arm))

    @property
    def sure(self) -> bool:
        """Whether the leader beats every rival and there are no doubts."""
        return self.best is not None and not self.rivals and not self.doubts

    # Against a control

    def against(self, control: str) -> dict[str, tuple[Contrast, float, float]]:
        """Return each arm beyond the control, with p of "not better" and "not worse" after Holm.

        >>> rng = np.random.default_rng(0)
        >>> arm = rng.integers(0, 3, 30_000)
        >>> found = Standing(
        ...     customers=Customers.of(arm=arm, reward=rng.random(30_000) + 0.1 * (arm == 2)),
        ...     names=["old", "new", "third"],
        ... ).against("old")
        >>> {name: better < 0.025 for name, (_, better, _) in found.items()}
        {'new': False, 'third': True}
        """
        require(control in self.names, "control", f"one of {', '.join(self.names)}", control)
        base = list(self.names).index(control)
        others = [arm for arm in range(len(self.names)) if arm != base]
        pairs = [self.pair(arm, base) for arm in others]
        better, worse = (
            holm(np.array([p.better for p in pairs])),
            holm(np.array([p.worse for p in pairs])),
        )
        if self.costs:
            better, worse = worse, better
        return {
            self.names[arm]: (contrast, float(up), float(down))
            for arm, contrast, up, down in zip(others, pairs, better, worse, strict=True)
        }


def _at_worst(plain: Contrast, least: Contrast, most: Contrast) -> Contrast:
    """Return a contrast whose ends have one more customer in each arm, at the bounds.

    What nobody has sold yet may still be sold: an arm whose largest price is rare looks worse than
    it is until somebody pays that price. Gaffke's interval of one mean adds such customers, too.
    """
    return plain._replace(
        low=min(plain.low, least.low),
        high=max(plain.high, most.high),
        better=max(plain.better, least.better),
        worse=max(plain.worse, most.worse),
    )


def _p_of_evidence(evidence: float) -> float:
    """Return the p value of evidence for any look, given as its logarithm."""
    return math.exp(-max(evidence, 0.0))


def _ratio(sums: NDArray[Any], counts: NDArray[Any]) -> Array:
    """Return sums over counts; NaN where nothing is counted."""
    ratios = np.full(len(sums), math.nan)
    return np.asarray(np.divide(sums, counts, out=ratios, where=counts > 0))
