"""Whether it paid: the gain of a rule over its control group, and the cost of exploring.

Every request got its arm with a known probability p. Then a reward y, weighted by π/p, is on
average the reward of a rule that gives this arm with probability π, whatever the policy had learned
and whoever asked. So the difference of two rules is a sum of terms

    (π(A_t)/p_t − π'(A_t)/p_t) (y_t − b_t)

with b_t, the mean of earlier rewards, to make them small; `RunningTotal` gives its interval.
Rewards are cut to a range learned from earlier rewards. For a quantile, y says whether the reward
exceeds the quantile of the control group's earlier rewards.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from tailproof.stats.aims import Aim, CappedMean
from tailproof.stats.comparison import LEVEL
from tailproof.stats.histograms import Histogram
from tailproof.stats.totals import RunningTotal
from tailproof.typing import Array, Index

__all__ = [
    "CONTROL",
    "OTHER",
    "POLICY",
    "Decided",
    "Estimate",
    "Gain",
    "Scale",
    "Worth",
    "ratio_evidence",
]

Flags = NDArray[np.bool_]

POLICY, CONTROL, OTHER = 0, 1, 2
"""Groups of decisions. `OTHER` decisions do not count, as no group was drawn for them: while the
experiment is paused or stopped, imported decisions, and all but the first of a unit."""
_FIRST = 256
"""Outcomes that set the first range of rewards; it is learned again at each power of two."""
_TRAIL, _SMALLEST = 64, 32
"""The most intervals kept for the chart, and the number of outcomes between the first intervals."""
_LEAST_KEPT = 0.01
"""If the policy decides a smaller share of requests than this, its gain is not estimated."""
_LEAST_CONTROL = 10
"""Rewards of the control group before its quantile is used."""
_SHARE = 0.99
"""For the aim `Mean` without bounds: statements are about rewards capped at this quantile."""


class Decided(NamedTuple):
    """Decisions with an outcome, in order.

    Attributes
    ----------
    arm : array of int
        The numbers of the arms.
    offered : array
        How many arms were on offer.
    share, least : array
        The propensity of the arm, and the least of all arms on offer; NaN if unknown.
    explore : array
        The probability of a uniformly random arm, where the policy chose.
    group : array of int
        `POLICY`, `CONTROL` or `OTHER`.
    control_share : array
        The probability of being in the control group; 0 if there was none, or its arm was not on
        offer.
    is_control : array of bool
        Whether the arm is the control's.
    reward : array
        The mean of the rewards, NaN if there is none.
    there : array of bool, of shape (n, K)
        Which arms were on offer; K is 0 if arms need no value of their own.
    times : array
        How many decisions a row stands for, as simulations have many that are alike.
    """

    arm: Index
    offered: Array
    share: Array
    least: Array
    explore: Array
    group: Index
    control_share: Array
    is_control: Flags
    reward: Array
    there: Flags
    times: Array

    def take(self, rows: Flags) -> "Decided":
        """Return some of the decisions."""
        return Decided._make(column[rows] for column in self)


class Estimate(NamedTuple):
    """What two rules earn per request, and their difference with its interval.

    `uncapped` is the difference of rewards as they were, without an interval, and `beyond` how many
    rewards were cut. For a quantile all are shares of rewards above the control group's quantile.
    """

    first: float
    other: float
    difference: float
    low: float
    high: float
    requests: float
    uncapped: float = math.nan
    beyond: int = 0

    @property
    def known(self) -> bool:
        """Whether both ends are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)


@dataclass
class Gain:
    """The difference of two rules over all decisions so far."""

    total: RunningTotal = field(default_factory=RunningTotal)
    requests: float = 0.0
    first: float = 0.0
    uncapped: float = 0.0
    beyond: float = 0.0
    blind: bool = False
    """Whether there were decisions whose propensities are not known."""

    def add(
        self,
        weights: tuple[Array, Array],
        bounds: tuple[Array, Array],
        rows: "_Rewards",
    ) -> None:
        """Add rewards by their weights under two rules, whose difference has these bounds."""
        (first, other), (low, high, base, _) = weights, rows.scale
        with np.errstate(invalid="ignore", over="ignore"):
            products = [np.multiply.outer([low - base, high - base], bound) for bound in bounds]
        ends = np.array(products)
        ends[np.isnan(ends)] = 0.0  # 0 · ∞
        beyond = rows.y - base
        self.total.add(
            (first - other) * beyond,
            low=np.minimum(ends.min(axis=(0, 1)), 0.0),
            high=np.maximum(ends.max(axis=(0, 1)), 0.0),
            counts=rows.times,
        )
        self.requests += float(rows.times.sum())
        values = (base + first * beyond) * rows.times
        self.first = float(np.cumsum(np.append(self.first, values))[-1])
        with np.errstate(invalid="ignore", over="ignore"):
            raw = (first - other) * (rows.raw - base) * rows.times
        self.uncapped = float(np.cumsum(np.append(self.uncapped, raw))[-1])
        self.beyond += float(rows.times[rows.raw != rows.y].sum())

    def estimate(self, level: float = LEVEL) -> Estimate | None:
        """Return both values and the interval; None without requests or without propensities."""
        n = self.requests
        if not n or self.blind:
            return None
        first, difference = self.first / n, self.total.value / n
        low, high = (end / n for end in self.total.ends(level))
        uncapped, beyond = self.uncapped / n, int(self.beyond)
        return Estimate(first, first - difference, difference, low, high, n, uncapped, beyond)


class _Rewards(NamedTuple):
    """Rewards cut to a range, and how many decisions each stands for."""

    y: Array
    raw: Array
    times: Array
    scale: "Scale"

    def take(self, rows: Flags) -> "_Rewards":
        """Return some of them."""
        return _Rewards(self.y[rows], self.raw[rows], self.times[rows], self.scale)


class Scale(NamedTuple):
    """The range of rewards and the mean within it, from earlier rewards.

    For a quantile, a reward counts 1 if it exceeds the `threshold`, the quantile of the control
    group's earlier rewards, and else 0.
    """

    low: float
    high: float
    base: float
    threshold: float = math.nan


@dataclass(eq=False)
class Worth:
    """The gain of the rule over its control group and an even split, and the cost of exploring.

    Parameters
    ----------
    aim : Aim
        For `Mean` and `CappedMean`, differences of means of capped rewards; for quantiles, of the
        shares of rewards above the control group's quantile. The quantile of the control group is
        fixed, while the quantile of a rule that learns moves.

    Attributes
    ----------
    control, even, exploring : Gain
    arms : list of Gain
        What each arm alone would have earned, where it has a value of its own.
    group : Histogram
        For a quantile, the rewards of the control group.
    controls : dict
        By configured share: decisions of the control group, and of both groups.
    scale : Scale or None
    trail : list
        Estimates for the chart, with the times of their last requests.
    step : int
        Outcomes between two estimates of the trail.
    """

    aim: Aim
    control: Gain = field(default_factory=Gain)
    even: Gain = field(default_factory=Gain)
    exploring: Gain = field(default_factory=Gain)
    arms: list[Gain] = field(default_factory=list)
    group: Histogram = field(default_factory=Histogram)
    controls: dict[float, tuple[int, int]] = field(default_factory=dict)
    scale: Scale | None = None
    trail: list[tuple[float, Estimate]] = field(default_factory=list)
    step: int = _SMALLEST

    @property
    def level(self) -> float | None:
        """The level of the quantile, None for a mean."""
        return self.aim.level

    @property
    def state(self) -> dict[str, Any]:
        """What was counted so far: ``Worth(aim, **state)`` goes on from there."""
        return {known.name: getattr(self, known.name) for known in fields(self)[1:]}

    def until(self, outcomes: int) -> int:
        """Return the number of outcomes after which `settle` must be called next."""
        return (outcomes // self.step + 1) * self.step

    @property
    def ruled(self) -> float:
        """The configured share of requests that are not for the control group."""
        drawn = sum(n for _, n in self.controls.values())
        control = sum(share * n for share, (_, n) in self.controls.items())
        return 1 - control / drawn if drawn else 1.0

    def add(self, rows: Decided) -> None:
        """Add decisions."""
        counted = rows.group != OTHER
        for share in np.unique(rows.control_share[counted & (rows.control_share > 0)]).tolist():
            often = rows.times * (counted & (rows.control_share == share))
            before, n = self.controls.get(share, (0, 0))
            drawn = before + int(often @ (rows.group == CONTROL))
            self.controls[share] = drawn, n + int(often.sum())
        kept = counted & ~np.isnan(rows.reward)
        if self.scale is None:
            return
        self.arms += [Gain() for _ in range(rows.there.shape[1] - len(self.arms))]
        self._compare(rows.take(kept), self.scale)

    def add_rewards(self, groups: Index, rewards: Array) -> None:
        """Add rewards of requests that were drawn a group, for the control group's quantile."""
        if self.level is not None:
            self.group.add(rewards[(groups == CONTROL) & ~np.isnan(rewards)])

    def _compare(self, rows: Decided, scale: Scale) -> None:
        """Add decisions with rewards to all differences."""
        ones, c, is_control = np.ones(len(rows.arm)), rows.control_share, rows.is_control
        raw = rows.reward
        if self.level is not None:
            raw = (raw > scale.threshold).astype(np.float64)
        y = _Rewards(np.clip(raw, scale.low, scale.high), raw, rows.times, scale)
        p = rows.share
        told = ~np.isnan(p)  # otherwise only the probability of the control group is known
        rule = np.where(told, (1 - c * is_control / p) / (1 - c), (rows.group == POLICY) / (1 - c))
        ours = c > 0
        if ours.any():
            drawn = c[ours]
            other = np.where(told, is_control / p, 0.0)[ours]
            other = np.where(told[ours], other, (rows.group[ours] == CONTROL) / drawn)
            self.control.add((rule[ours], other), (-1 / drawn, 1 / (1 - drawn)), y.take(ours))
        for gain in (self.even, self.exploring, *self.arms):
            gain.blind |= not told.all()
        if not told.all():
            return
        with np.errstate(divide="ignore"):
            most = 1 / rows.least
        even = 1 / (rows.offered * p)
        self.even.add((rule, even), (-most / rows.offered, 1 / (1 - c)), y)
        # p = c 1{control} + (1 − c) (explore/K + (1 − explore) π), π the policy's own choice
        kept = (1 - c) * (1 - rows.explore)
        self.exploring.blind |= bool((kept < _LEAST_KEPT).any())
        if not self.exploring.blind:
            random = c * is_control + (1 - c) * rows.explore / rows.offered
            policy = np.maximum(1 - random / p, 0.0) / kept
            self.exploring.add((policy, ones), (-ones, 1 / kept - 1), y)
        for number, gain in enumerate(self.arms[: rows.there.shape[1]]):
            mine = rows.there[:, number]
            alone, none = (rows.arm == number)[mine] / p[mine], np.zeros(int(mine.sum()))
            gain.add((alone, none), (none, most[mine]), y.take(mine))

    def settle(self, outcomes: int, samples: Sequence[Histogram], at: float) -> None:
        """After a number of outcomes, learn the range again, and keep an interval for the chart.

        Customers may be counted long after the outcomes of their requests: the first range does not
        wait for the next power of two.
        """
        again = outcomes >= _FIRST and outcomes & (outcomes - 1) == 0
        if again or (self.scale is None and sum(s.count for s in samples) >= _FIRST):
            self.scale = self._learned(samples) or self.scale
        estimate = self.control.estimate() or self.even.estimate()
        if estimate is not None and estimate.known:
            self.trail.append((at, estimate))
        if outcomes >= _TRAIL * self.step:
            self.step, self.trail = 2 * self.step, self.trail[-1::-2][::-1]

    def _learned(self, samples: Sequence[Histogram]) -> Scale | None:
        """Return the range of rewards so far and their mean in it, None if all are 0 or lost."""
        if self.level is not None:
            return self._quantile_learned(self.level)
        rewards = [sample.low for sample in samples if len(sample.counts)]
        if not rewards:  # all were lost
            return None
        capped = self.aim if self.aim.share is not None else CappedMean(_SHARE)
        ends = self.aim.among(rewards).range or capped.among(rewards).range
        if ends is None:
            return None
        low, high = ends
        sums = [float(np.clip(s.lows, low, high) @ s.counts) for s in samples]
        return Scale(low, high, math.fsum(sums) / sum(sample.count for sample in samples))

    def _quantile_learned(self, level: float) -> Scale | None:
        """Return the control group's quantile so far, None with too few of its rewards."""
        if self.group.count < _LEAST_CONTROL:
            return None
        statistic = self.aim.among([self.group.low])
        return Scale(0.0, 1.0, 1 - level, statistic.value(statistic.prepare(self.group.low)))

    def against_control(self) -> Estimate | None:
        """Return the gain of the rule over the control group."""
        return self.control.estimate()

    def ratio_evidence(self) -> float:
        """Return the evidence that the control group's share is not as configured."""
        return sum(ratio_evidence(drawn, n, share) for share, (drawn, n) in self.controls.items())


def ratio_evidence(drawn: int, decisions: int, share: float) -> float:
    """Return the log evidence that groups do not have their configured shares, for any look.

    ln ∫ q^k (1 − q)^(n − k) dBeta(½, ½) − ln(share^k (1 − share)^(n − k))

    The ratio is a martingale that starts at 1 if the share is right, so it ever reaches 1000 with a
    probability of at most 1/1000 (Ville 1939).

    >>> round(ratio_evidence(1000, 10_000, 0.1), 1), round(ratio_evidence(1200, 10_000, 0.1), 1)
    (-4.8, 16.2)

    Source: Lindon and Malek 2022, "Anytime-valid inference for multinomial count data".
    Differences: two groups, and the prior of Jeffreys.
    """
    missed = decisions - drawn
    mixed = betaln(drawn + 0.5, missed + 0.5) - betaln(0.5, 0.5)
    return float(mixed - drawn * math.log(share) - missed * math.log1p(-share))
