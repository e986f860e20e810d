"""Compare arms under an aim: estimates, intervals, the leader, and the rewards still needed."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from tailproof.formatting import listed
from tailproof.stats.intervals import (
    BoundedSample,
    evidence_needed,
    mean_evidence,
    mean_interval,
    mean_sequence,
    quantile_evidence,
    quantile_interval,
    quantile_sequence,
)
from tailproof.stats.standing import LEAST_SOLD, Standing
from tailproof.typing import Array

__all__ = ["LEVEL", "Comparison", "Lead", "MeanWithin", "Ranked", "Statistic", "Unbounded"]

LEVEL = 0.95
"""The joint confidence of all statements about one aim."""
_MOST = 1e9
"""The most rewards in a forecast."""
_THINNED = 4096
"""The most order statistics of an arm that a forecast uses."""

Ends = tuple[float, float]


class Statistic(ABC):
    """The number by which arms are compared; it depends on the arm's own law only."""

    words: str = ""
    """What to add to the name of the aim, such as the cap; empty if nothing."""
    range: Ends | None = None
    """The range to which rewards are cut; None if they are not."""

    @abstractmethod
    def prepare(self, sample: Array) -> Any:
        """Turn an arm's sorted rewards into the form that the other methods take."""

    @abstractmethod
    def value(self, arm: Any) -> float:
        """Return the estimate; NaN if there are too few rewards."""

    @abstractmethod
    def interval(self, arm: Any, level: float, *, any_look: bool) -> Ends | None:
        """Return an interval; None if there are too few rewards or none can hold."""

    @abstractmethod
    def evidence(self, better: Any, worse: Any) -> float:
        """Return the logarithm of the evidence, valid at any look, that `better` is larger."""

    @abstractmethod
    def grown(self, arm: Any, more: float) -> Any:
        """Return the arm as it would be with more rewards of the same kind."""


@dataclass(frozen=True)
class Ranked(Statistic):
    """A quantile, by order statistics, for any law; the estimator needs `least` rewards."""

    level: float
    estimator: Callable[[Array], Array]
    least: int = 1

    class Arm(NamedTuple):
        """The rewards in ascending order, and how often each is repeated."""

        rewards: Array
        repeats: float = 1.0

    def prepare(self, sample: Array) -> "Arm":
        """Keep the rewards."""
        return self.Arm(sample)

    def value(self, arm: "Arm") -> float:
        """Return the estimate; NaN if there are too few rewards."""
        return math.nan if len(arm.rewards) < self.least else float(self.estimator(arm.rewards))

    def interval(self, arm: "Arm", level: float, *, any_look: bool) -> Ends | None:
        """Return two order statistics; None if an end would be beyond the rewards."""
        by = quantile_sequence if any_look else quantile_interval
        ends = by(arm.rewards, self.level, level)
        n = len(arm.rewards)
        beyond = n == 0 or ends[0] < arm.rewards[0] or ends[1] > arm.rewards[-1]
        return None if beyond else ends

    def evidence(self, better: "Arm", worse: "Arm") -> float:
        """Return `quantile_evidence`."""
        repeats = better.repeats, worse.repeats
        return quantile_evidence(better.rewards, worse.rewards, self.level, repeats=repeats)

    def grown(self, arm: "Arm", more: float) -> "Arm":
        """Let each of at most 4096 order statistics stand for more rewards."""
        n = len(arm.rewards)
        few = arm.rewards
        if n > _THINNED:
            few = few[((np.arange(_THINNED) + 0.5) * n / _THINNED).astype(np.int64)]
        return self.Arm(few, (n + more) / len(few))


@dataclass(frozen=True)
class MeanWithin(Statistic):
    """The mean of rewards cut to a fixed range."""

    low: float
    high: float
    words: str = ""

    @property
    def range(self) -> Ends:  # type: ignore[override]
        """The range to which rewards are cut."""
        return self.low, self.high

    def prepare(self, sample: Array) -> BoundedSample:
        """Cut the rewards."""
        return BoundedSample.of(sample, low=self.low, high=self.high)

    def value(self, arm: BoundedSample) -> float:
        """Return the mean; NaN if there are no rewards."""
        return arm.mean

    def interval(self, arm: BoundedSample, level: float, *, any_look: bool) -> Ends | None:
        """Return `mean_interval` or `mean_sequence`."""
        by = mean_sequence if any_look else mean_interval
        return by(arm, level) if arm.n else None

    def evidence(self, better: BoundedSample, worse: BoundedSample) -> float:
        """Return `mean_evidence`."""
        return mean_evidence(better, worse)

    def grown(self, arm: BoundedSample, more: float) -> BoundedSample:
        """Count each reward more often."""
        return replace(arm, counts=arm.counts * (1 + more / arm.n))


@dataclass(frozen=True)
class Unbounded(Statistic):
    """The mean of unbounded rewards: no interval holds for it (Bahadur and Savage 1956)."""

    def prepare(self, sample: Array) -> Array:
        """Keep the rewards."""
        return sample

    def value(self, arm: Array) -> float:
        """Return the mean; opposite infinities cancel."""
        with np.errstate(invalid="ignore", over="ignore"):
            mean = float(arm.mean()) if len(arm) else math.nan
        return 0.0 if len(arm) and math.isnan(mean) else mean

    def interval(self, arm: Array, level: float, *, any_look: bool) -> Ends | None:
        """Return None: no interval holds."""
        return None

    def evidence(self, better: Array, worse: Array) -> float:
        """Return −∞: there is never evidence."""
        return -math.inf

    def grown(self, arm: Array, more: float) -> Array:
        """Return the arm as it is: no number of rewards would be enough."""
        return arm


class Lead(NamedTuple):
    """The leading arm under an aim; `sure` if there is enough evidence over every other arm.

    `rivals` are the arms over which evidence is lacking. If several arms share the best estimate,
    `arm` is None and `rivals` are these arms; if no arm has enough rewards, `rivals` are all arms.
    """

    arm: str | None
    sure: bool
    rivals: tuple[str, ...]


class Forecast(NamedTuple):
    """About how many more rewards would make a lead sure, and the regret of collecting them."""

    rewards: float
    regret: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Comparison:
    """Arms under one aim.

    Parameters
    ----------
    statistic : Statistic
        Usually from `Aim.among`.
    names : sequence of str
    lows, highs : sequences of arrays
        The rewards of each arm, sorted and prepared by the statistic. Rounded rewards have a lower
        and an upper bound, so that statements hold for the rewards before rounding.
    costs : bool
        Whether small is good.
    any_look : bool
        Whether intervals hold at any look, whatever chose the arms, or at one look. A sure lead is
        for any look in both cases, unless there is a standing.
    standing : Standing, optional
        Who leads by customer, for an aim that is a mean; `lead` then follows it.
    doubts : tuple of str
        Why no arm is sure, whatever the evidence.

    Examples
    --------
    >>> sales = [np.repeat([0.0, 1.0], [900, 100]), np.repeat([0.0, 1.0], [950, 50])]
    >>> found = Comparison.of(MeanWithin(0, 1), ["a", "b"], sales)
    >>> found.lead, found.values.tolist()
    (Lead(arm='a', sure=True, rivals=()), [0.1, 0.05])
    >>> few = Comparison.of(MeanWithin(0, 1), ["a", "b"], [sales[0], np.zeros(3)])
    >>> few.lead
    Lead(arm='a', sure=False, rivals=('b',))

    """

    statistic: Statistic
    names: Sequence[str]
    lows: Sequence[Any]
    highs: Sequence[Any]
    costs: bool = False
    any_look: bool = False
    standing: Standing | None = None
    doubts: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        statistic: Statistic,
        names: Sequence[str],
        lows: Sequence[Array],
        highs: Sequence[Array] | None = None,
        *,
        costs: bool = False,
        any_look: bool = False,
        standing: Standing | None = None,
        doubts: tuple[str, ...] = (),
    ) -> "Comparison":
        """Compare arms by their sorted rewards; if rounded, `lows` down and `highs` up.

        A mean is not sure before every arm has `LEAST_SOLD` rewards that are not zero.
        """
        if statistic.range is not None and standing is None:
            pairs = zip(names, lows, strict=True)
            few = [name for name, rewards in pairs if np.count_nonzero(rewards) < LEAST_SOLD]
            if few:
                doubts += (f"{listed(few)} sold less than {LEAST_SOLD} times, as every arm must",)
        low = [statistic.prepare(sample) for sample in lows]
        high = low if highs is None else [statistic.prepare(sample) for sample in highs]
        return cls(
            statistic=statistic,
            names=names,
            lows=low,
            highs=high,
            costs=costs,
            any_look=any_look,
            standing=standing,
            doubts=doubts,
        )

    @cached_property
    def values(self) -> Array:
        """The estimate of each arm; NaN if it has too few rewards."""
        ends = [[self.statistic.value(arm) for arm in arms] for arms in (self.lows, self.highs)]
        low, high = np.array(ends)
        values: Array = np.where(low == high, low, low / 2 + high / 2)
        return values

    @cached_property
    def intervals(self) -> list[Ends | None]:
        """The intervals at a joint confidence of 95 % for all arms; None where there is none."""
        level = 1 - (1 - LEVEL) / max(1, len(self.names))
        intervals: list[Ends | None] = []
        for low, high in zip(self.lows, self.highs, strict=True):
            ends = [
                self.statistic.interval(arm, level, any_look=self.any_look)
                for arm in ([low] if low is high else [low, high])
            ]
            first, last = ends[0], ends[-1]
            intervals.append(None if first is None or last is None else (first[0], last[1]))
        return intervals

    @property
    def table(self) -> Array:
        """Estimate, low and high end for each arm, of shape (K, 3); NaN where there is none."""
        ends = [pair or (math.nan, math.nan) for pair in self.intervals]
        return np.column_stack([self.values, np.array(ends).reshape(-1, 2)])

    @cached_property
    def lead(self) -> Lead:
        """The arm with the best estimate, among arms with enough rewards for an interval."""
        if self.standing is not None:
            return _lead_of(self.standing)
        known = [pair is not None for pair in self.intervals]
        if isinstance(self.statistic, Unbounded):
            known = [not math.isnan(value) for value in self.values]
        if not any(known):
            return Lead(None, False, tuple(self.names))
        score = np.where(known, -self.values if self.costs else self.values, -math.inf)
        best = np.flatnonzero(score == score.max()).tolist()
        if len(best) > 1:
            return Lead(None, False, tuple(self.names[arm] for arm in best))
        first, asked = best[0], self._asked
        others = (arm for arm in range(len(self.names)) if arm != first)
        doubtful = bool(self.doubts)
        rivals = [
            self.names[arm] for arm in others if doubtful or self._evidence(first, arm) < asked
        ]
        return Lead(self.names[first], not rivals, tuple(rivals))

    def forecast(self) -> Forecast | None:
        """Return about how many more rewards, like those so far, would make the lead sure.

        Each rival gets the rewards that the evidence against it needs, and the leader as many as
        the rival that needs most. None if nothing leads, if the lead is sure or can never be, if a
        rival has too few rewards for an estimate, or if more than 10⁹ would be needed.
        """
        if self.lead.arm is None or self.lead.sure or isinstance(self.statistic, Unbounded):
            return None
        if self.standing is not None or self.doubts:
            return None
        first = self.names.index(self.lead.arm)
        rivals = [self.names.index(name) for name in self.lead.rivals]
        if any(math.isnan(self.values[arm]) for arm in rivals):
            return None
        needed = [self._until_sure(first, rival) for rival in rivals]
        if any(math.isinf(more) for more in needed):
            return None
        gaps = np.abs(self.values[first] - self.values[rivals])
        return Forecast(max(needed) + sum(needed), float(gaps @ needed))

    @property
    def _asked(self) -> float:
        """The evidence over each rival that makes a lead sure."""
        return evidence_needed(max(2, len(self.names)), LEVEL)

    def _evidence(self, first: int, other: int, more: float = 0.0) -> float:
        """Return the evidence that `first` is better than `other`, after `more` rewards of each."""
        a, b = (other, first) if self.costs else (first, other)
        better, worse = self.lows[a], self.highs[b]
        if more:
            better, worse = (self.statistic.grown(arm, more) for arm in (better, worse))
        return self.statistic.evidence(better, worse)

    def _until_sure(self, first: int, rival: int) -> float:
        """Return how many more rewards each of two arms needs; ∞ if too many."""
        asked = self._asked

        def missing(log_more: float) -> float:
            return asked - self._evidence(first, rival, math.exp(log_more))

        if missing(math.log(_MOST)) > 0:
            return math.inf
        if missing(0.0) <= 0:
            return 1.0
        return math.exp(brentq(missing, 0.0, math.log(_MOST), xtol=0.02))


def _lead_of(standing: Standing) -> Lead:
    """Return a standing's lead; while there are doubts, every other arm is a rival."""
    if standing.best is None:
        return Lead(None, False, tuple(standing.names))
    others = tuple(name for name in standing.names if name != standing.leader)
    return Lead(standing.leader, standing.sure, others if standing.doubts else standing.rivals)
