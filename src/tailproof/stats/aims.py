"""Aims: the number that a policy maximises, computed from an arm's law or its recorded rewards.

`Median`, `Quantile` and `Mean` are both estimators and aims; `CappedMean` depends on all arms.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import bdtr, stdtrit

from tailproof.checks import number, require
from tailproof.noise import Noise
from tailproof.typing import Array

__all__ = ["Aim", "CappedMean", "quantile_interval", "student_interval"]


class Aim(ABC):
    """What a policy should maximise."""

    @property
    def name(self) -> str:
        """The name of the aim on the command line.

        >>> CappedMean(0.99).name
        'capped_mean(0.99)'
        """
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(self).__name__).lower()
        values = ", ".join(f"{value:g}" for value in vars(self).values())
        return f"{words}({values})" if values else words

    @abstractmethod
    def values(self, samples: Sequence[Array]) -> Array:
        """Return the aim of each arm, taking its samples as the whole population."""

    @abstractmethod
    def estimates(self, samples: Sequence[Array], level: float) -> Array:
        """Return the estimate and the ends of an interval of confidence `level`: (K, 3)."""

    @abstractmethod
    def of(self, laws: Sequence[Noise], locations: Sequence[float]) -> Array:
        """Return the exact aim of each arm, whose reward is its location plus noise of its law."""

    @property
    def mirrored(self) -> "Aim":
        """The aim to maximise for −X in order to minimise this one for X; by default the same."""
        return self


@dataclass(frozen=True)
class CappedMean(Aim):
    """The mean of rewards clipped to a range that is the same for all arms.

    E min(max(X, low), high), low and high the (1 − share)- and share-quantiles of all rewards
    pooled

    It exists for every law, and depends on how often and how much is earned, up to the cap.
    Experiment platforms call it winsorising, or capping at a percentile.

    Parameters
    ----------
    share : float
        The share of all rewards that are below the cap, above ½.

    Examples
    --------
    >>> arms = [np.array([0.0, 0.0, 0.0, 9.0]), np.array([1.0, 1.0, 1.0, 1e6])]
    >>> CappedMean(0.75).values(arms).tolist()
    [0.25, 1.0]

    Source: Dixon 1960 for winsorising; experiment platforms use one range for all arms.
    Differences: both ends are clipped, so that losses may have no mean either.
    """

    share: float = 0.99

    def __post_init__(self) -> None:
        number("share", self.share, above=0.5, below=1)

    def range(self, samples: Sequence[Array]) -> tuple[float, float]:
        """Return the ends of the range, which are two of the pooled samples."""
        pooled = np.concatenate(samples)
        ends = np.quantile(pooled, [1 - self.share, self.share], method="inverted_cdf")
        return float(ends[0]), float(ends[1])

    def values(self, samples: Sequence[Array]) -> Array:
        """Return the mean of the clipped samples of each arm."""
        low, high = self.range(samples)
        return np.array([np.clip(sample, low, high).mean() for sample in samples])

    def estimates(self, samples: Sequence[Array], level: float) -> Array:
        """Return the capped means with Student's intervals: clipped rewards have all moments."""
        low, high = self.range(samples)
        with np.errstate(invalid="ignore"):  # a cap may be infinite
            return np.array([student_interval(np.clip(x, low, high), level) for x in samples])

    def of(self, laws: Sequence[Noise], locations: Sequence[float]) -> Array:
        """Return high − ∫ F(x) dx from low to high."""
        rule = f"one for each of {len(laws)} laws"
        require(len(laws) == len(locations), "locations", rule, locations)
        low, high = (_pooled(laws, locations, at) for at in (1 - self.share, self.share))
        return np.array(
            [
                high - _integral(law, low - location, high - location)
                for law, location in zip(laws, locations, strict=True)
            ]
        )


def _pooled(laws: Sequence[Noise], locations: Sequence[float], level: float) -> float:
    """Return the quantile of the equal mixture of the laws, by bisection between theirs."""
    own = [float(law.ppf(level)) + m for law, m in zip(laws, locations, strict=True)]
    low, high = min(own), max(own)
    for _ in range(200):
        middle = low / 2 + high / 2
        below = [float(law.cdf(middle - m)) for law, m in zip(laws, locations, strict=True)]
        if np.mean(below) < level:
            low = middle
        else:
            high = middle
    return high


def _integral(law: Noise, low: float, high: float) -> float:
    """Return ∫ F(x) dx from low to high, in pieces between quantiles of the law."""
    from scipy.integrate import quad

    levels = np.concatenate([np.geomspace(1e-9, 0.5, 30), 1 - np.geomspace(0.5, 1e-9, 30)])
    ends = np.unique(np.clip([low, *law.ppf(levels).tolist(), high], low, high))
    pieces = [quad(lambda x: float(law.cdf(x)), *piece, epsrel=1e-9)[0] for piece in pairwise(ends)]
    return float(sum(pieces))


def student_interval(sample: Array, level: float) -> tuple[float, float, float]:
    """Return the mean and Student's interval around it.

    X̄ ± t_{n−1}((1 + level)/2) s/√n

    >>> [round(x, 2) for x in student_interval(np.array([1.0, 2.0, 3.0, 4.0]), 0.95)]
    [2.5, 0.45, 4.55]

    Source: Student 1908. Differences: none.
    """
    n, mean = len(sample), float(sample.mean())
    if n < 2 or not math.isfinite(mean):
        return mean, -math.inf, math.inf
    half = float(stdtrit(n - 1, (1 + level) / 2)) * float(sample.std(ddof=1)) / math.sqrt(n)
    return mean, mean - half, mean + half


def quantile_interval(sample: Array, quantile: float, level: float) -> tuple[float, float]:
    """Return two of the samples that enclose the quantile with probability at least `level`.

    [X_(l), X_(u)], P(Bin(n, q) < l) ≤ (1 − level)/2 and P(Bin(n, q) ≥ u) ≤ (1 − level)/2

    It is valid for any law, with or without atoms; with too few samples an end is infinite.

    >>> quantile_interval(np.arange(1.0, 101.0), 0.5, 0.95)
    (40.0, 61.0)

    Source: Thompson 1936. Differences: none.
    """
    n, tail = len(sample), (1 - level) / 2
    reach = 20 + 10 * math.sqrt(n * quantile * (1 - quantile))  # negligible beyond
    first, last = max(0, int(n * quantile - reach)), min(n, int(n * quantile + reach))
    below = bdtr(np.arange(first, last + 1, dtype=np.float64), n, quantile)
    low = first + int(np.searchsorted(below, tail, side="right"))
    high = first + int(np.searchsorted(below, 1 - tail)) + 1
    ranked = np.concatenate([[-math.inf], np.sort(sample), [math.inf]])
    return float(ranked[low]), float(ranked[min(high, n + 1)])
