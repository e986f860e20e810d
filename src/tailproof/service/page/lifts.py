"""What each arm earns beyond the control, with an interval for any look."""

from tailproof.stats.comparison import LEVEL, Comparison
from tailproof.stats.intervals import mean_difference

__all__ = ["Lift", "lifts"]

_MOST = 12
"""With more arms than this no lift gets an interval; each takes some hundredths of a second."""

Lift = tuple[float, float, float]


def lifts(comparison: Comparison, control: str) -> dict[str, Lift]:
    """Return how much more each arm earns than the control, with intervals for any look.

    All of them hold together with 95 %. None are given for quantiles, or without a cap or bounds.

    >>> import numpy as np
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
    told = {}
    for place, name in enumerate(names):
        arms = [
            comparison.lows[place],
            comparison.highs[place],
            comparison.lows[base],
            comparison.highs[base],
        ]
        if place == base or not all(arm.n for arm in arms):
            continue
        low = mean_difference(arms[0], arms[3], level)[0]
        high = mean_difference(arms[1], arms[2], level)[1]
        told[name] = float(comparison.values[place] - comparison.values[base]), low, high
    return told
