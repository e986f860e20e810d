"""Arms compared for any look: by the rewards in their histograms, or by weighted rewards."""

from collections.abc import Sequence

import numpy as np

from tailproof.stats.aims import Aim
from tailproof.stats.comparison import LEVEL, Comparison, Lead, Unbounded
from tailproof.stats.histograms import Histogram
from tailproof.stats.intervals import mean_difference
from tailproof.stats.uplift import Worth
from tailproof.typing import Array

__all__ = ["Lift", "compared", "lead_by_intervals", "lifts", "shown_alone"]

Lift = tuple[float, float, float]
"""How much more an arm earns than the control, with the ends of the interval."""
_MOST = 12
"""With more arms than this no lift gets an interval; each takes some hundredths of a second."""


def compared(
    aim: Aim, names: Sequence[str], samples: Sequence[Histogram], *, costs: bool = False
) -> Comparison:
    """Compare arms by all their rewards.

    >>> from tailproof import Mean
    >>> red, blue = Histogram(), Histogram()
    >>> red.add([0, 0, 1] * 100)
    >>> blue.add([0, 1, 1] * 100)
    >>> compared(Mean(), ["red", "blue"], [red, blue]).lead
    Lead(arm='blue', sure=True, rivals=())
    """
    exact = all(sample.exact for sample in samples)
    lows = [sample.low for sample in samples]
    statistic = aim.among(lows)
    if aim.averages and not aim.bounded and not exact:
        statistic = Unbounded()  # a frequent largest reward may be an effect of rounding
    highs = None if exact else [sample.high for sample in samples]
    return Comparison.of(statistic, names, lows, highs, costs=costs, any_look=True)


def lifts(comparison: Comparison, control: str) -> dict[str, Lift]:
    """Return how much more each arm earns than the control, with intervals.

    All of them hold together with 95 %. None are given for quantiles, or without a cap or bounds.

    >>> from tailproof.stats.comparison import MeanWithin
    >>> sales = [np.repeat([0.0, 10.0], [1900, 100]), np.repeat([0.0, 10.0], [1800, 200])]
    >>> arms = Comparison.of(MeanWithin(0, 10), ["old", "new"], sales, any_look=True)
    >>> [round(end, 2) for end in lifts(arms, "old")["new"]]
    [0.5, 0.21, 0.8]
    """
    names = list(comparison.names)
    if comparison.statistic.range is None or control not in names or not 1 < len(names) <= _MOST:
        return {}
    base, level = names.index(control), 1 - (1 - LEVEL) / (len(names) - 1)
    found, (lows, highs) = {}, (comparison.lows, comparison.highs)
    for place, name in enumerate(names):
        if place != base and lows[place].n and lows[base].n:
            low = mean_difference(lows[place], highs[base], level)[0]
            high = mean_difference(highs[place], lows[base], level)[1]
            found[name] = float(comparison.values[place] - comparison.values[base]), low, high
    return found


def shown_alone(worth: Worth, arms: int) -> Array:
    """Return what each arm would have earned if it alone had been shown, of shape (K, 3).

    The estimate weighs rewards by 1/p; then come the ends of its interval. NaN where it is unknown.
    """
    table, level = np.full((arms, 3), np.nan), 1 - (1 - LEVEL) / max(1, arms)
    for row, gain in zip(table, worth.arms, strict=False):
        estimate, scale = gain.estimate(level), worth.scale
        if estimate is not None and scale is not None:
            low, high = np.maximum([estimate.low, estimate.high], scale.low - estimate.other)
            row[:] = estimate.first, *np.minimum(estimate.other + np.array([low, high]), scale.high)
    return table


def lead_by_intervals(names: Sequence[str], table: Array, *, costs: bool = False) -> Lead:
    """Return the arm with the best estimate, sure if its interval is beyond all others.

    >>> lead_by_intervals(["red", "blue"], np.array([[3.0, 2.0, 4.0], [6.0, 5.0, 7.0]]))
    Lead(arm='blue', sure=True, rivals=())
    """
    value, low, high = -table[:, [0, 2, 1]].T if costs else table.T
    if np.isnan(value).any():
        return Lead(None, False, tuple(names))
    best = int(value.argmax())
    rivals = [i for i in range(len(names)) if i != best and high[i] >= low[best]]
    return Lead(names[best], not rivals, tuple(names[i] for i in rivals))
