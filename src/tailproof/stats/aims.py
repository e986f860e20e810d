"""Aims: the number that a policy maximises, computed from an arm's law or its recorded rewards.

`Median`, `Quantile`, `Mean` and `Location` are both estimators and aims; `CappedMean` depends on
all arms. Each aim has its properties as attributes, so no caller asks for its class.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tailproof.bisection import bisect
from tailproof.checks import number, require
from tailproof.formatting import short
from tailproof.noise import Noise
from tailproof.settings import Named
from tailproof.stats.comparison import MeanWithin, Statistic, Unbounded
from tailproof.typing import Array

__all__ = ["Aim", "CappedMean", "check_aim"]


Ends = tuple[float, float]


class Aim(Named, ABC):
    """What a policy should maximise.

    Attributes
    ----------
    level : float, optional
        The level of a quantile; None for other aims.
    share : float, optional
        The share of purchases below the cap; None if there is no cap.
    averages : bool
        Whether rewards count by their size, as money does: a mean, capped or not.
    central : bool
        Whether it is the centre of symmetric rewards, however heavy their tails.
    symmetric : bool
        Whether it is defined for symmetric rewards only.

    Examples
    --------
    >>> CappedMean(0.99).words(), CappedMean(0.99).words(cap=300.0), CappedMean(0.99).bounded
    ('the mean of rewards capped at the 0.99-quantile of rewards that are not zero', 'the mean
    of rewards capped at 300', True)
    """

    level: float | None
    share: float | None
    averages: ClassVar[bool] = False
    central: ClassVar[bool] = False
    symmetric: ClassVar[bool] = False

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
    def among(self, samples: Sequence[Array], *, light: bool = False) -> Statistic:
        """Return the statistic that compares these arms; see `tailproof.stats.comparison`.

        `light` says that the tails are known to be light: it matters to a mean without bounds.
        """

    @abstractmethod
    def of(self, laws: Sequence[Noise], locations: Sequence[float]) -> Array:
        """Return the exact aim of each arm, whose reward is its location plus noise of its law."""

    @property
    def mirrored(self) -> "Aim":
        """The aim to maximise for −X in order to minimise this aim for X; by default itself."""
        return self

    @property
    def bounded(self) -> bool:
        """Whether a single reward can move it by a bounded amount only."""
        return self.level is not None or self.share is not None

    def cap(self, samples: Sequence[Array]) -> Ends | None:
        """Return the range to which rewards are cut; None if they are not."""
        return None

    def check_differs(self, samples: Sequence[Array]) -> None:
        """Raise ``ValueError`` if the aim is the same for all these arms."""
        return

    def words(self, size: str = "", *, cap: float | None = None) -> str:
        """Name it in a sentence; `size` is largest or smallest."""
        return " ".join(filter(None, ["the", size, self.name]))


def check_aim(name: str, aim: object) -> None:
    """Raise ``ValueError`` unless `aim` is an aim."""
    require(isinstance(aim, Aim), name, "an aim such as Median()", aim)


@dataclass(frozen=True)
class CappedMean(Aim):
    """The mean of rewards cut to a range that is the same for all arms.

    E min(max(X, low), high), high = max(Q(share), 0), low = min(Q(1 − share), 0), Q the quantiles
    of the rewards that are not zero, each arm weighing the same

    It exists for every law, and depends on how often and how much is earned, up to the cap. Neither
    zeros (visitors who buy nothing) nor the number of plays of an arm move the cap. Experiment
    platforms call it winsorising, or capping at a percentile.

    Parameters
    ----------
    share : float
        The share of purchases below the cap; above ½.

    Examples
    --------
    >>> arms = [np.array([0.0, 0.0, 0.0, 9.0]), np.array([0.0, 1.0, 1.0, 1e6])]
    >>> CappedMean(0.75).range(arms), CappedMean(0.75).values(arms).tolist()
    ((0.0, 9.0), [2.25, 2.75])

    Source: Dixon 1960 for winsorising; experiment platforms use one range for all arms.
    Differences: both ends are cut, so refunds need no mean either; zero has a meaning, so adding a
    constant to all rewards can change which arm leads.
    """

    averages: ClassVar[bool] = True
    level = None
    share: float = 0.99

    def __post_init__(self) -> None:
        number("share", self.share, above=0.5, below=1)

    def range(self, samples: Sequence[Array]) -> tuple[float, float]:
        """Return the ends of the range, each of which is zero or a sample."""
        bought = [sample[sample != 0] for sample in samples]
        pooled = np.concatenate(bought)
        if not len(pooled):
            return 0.0, 0.0
        shares = [1 / max(1, len(sample)) for sample in samples]
        weights = np.repeat(shares, [len(purchases) for purchases in bought])
        order = np.argsort(pooled, kind="stable")
        reached = np.cumsum(weights[order])
        levels = reached[-1] * np.array([1 - self.share, self.share]) * (1 - 1e-12)  # for rounding
        low, high = pooled[order[np.searchsorted(reached, levels)]].tolist()
        return min(low, 0.0), max(high, 0.0)

    def values(self, samples: Sequence[Array]) -> Array:
        """Return the mean of the cut samples of each arm."""
        low, high = self.range(samples)
        capped = np.array([np.clip(sample, low, high).mean() for sample in samples])
        means = np.array([_mean(sample) for sample in samples])
        return self._told_apart(capped, means, high)

    def cap(self, samples: Sequence[Array]) -> Ends:
        """Return the ends of the range."""
        return self.range(samples)

    def check_differs(self, samples: Sequence[Array]) -> None:
        """Raise ``ValueError`` if the cap hides all differences."""
        self.values(samples)

    def words(self, size: str = "", *, cap: float | None = None) -> str:
        """Name it, with its cap if that is known."""
        quantile = f"the {self.share:g}-quantile of rewards that are not zero"
        at = quantile if cap is None else f"{cap:,.4g}"
        return " ".join(filter(None, ["the", size, f"mean of rewards capped at {at}"]))

    def among(self, samples: Sequence[Array], *, light: bool = False) -> Statistic:
        """Return the mean of rewards cut to the range of these arms."""
        low, high = self.range(samples)
        if not 0 < high - low < math.inf:
            return Unbounded()
        ends = f"at {high:,.4g}" if low == 0 else f"at {low:,.4g} and {high:,.4g}"
        return MeanWithin(low, high, f"rewards are capped {ends}")

    def of(self, laws: Sequence[Noise], locations: Sequence[float]) -> Array:
        """Return high − ∫ F(x) dx from low to high."""
        rule = f"one for each of {len(laws)} laws"
        require(len(laws) == len(locations), "locations", rule, locations)
        arms = list(zip(laws, locations, strict=True))
        low, high = (_of_purchases(arms, at) for at in (1 - self.share, self.share))
        low, high = min(low, 0.0), max(high, 0.0)
        capped = np.array([high - _integral(law, low - m, high - m) for law, m in arms])
        means = np.array([m + law.mean if law.alpha > 1 else math.inf for law, m in arms])
        return self._told_apart(capped, means, high)

    def _told_apart(self, capped: Array, means: Array, high: float) -> Array:
        """Return the capped means, unless the cap alone makes them equal."""
        if len(capped) > 1 and np.all(capped == capped[0]) and np.any(means != means[0]):
            raise ValueError(
                f"share={self.share:g} caps rewards at {high:g}, and there all arms have the same "
                f"mean, {capped[0]:g}: use a larger share or the plain mean"
            )
        return capped


def crossing(
    names: Sequence[str], samples: Sequence[Array], cap: float, *, costs: bool = False
) -> str:
    """Name the cap nearest to this one at which the leader changes; empty if it never does.

    Caps are compared from the median purchase to the largest; the leader is the arm with the
    largest mean of rewards up to the cap. Rewards below zero count as they are.

    >>> often, much = np.repeat([0.0, 10.0], [50, 50]), np.repeat([0.0, 60.0], [80, 20])
    >>> crossing(["often", "much"], [often, much], cap=60)
    'Below a cap of 25 often leads, above it much.'
    """
    names, samples = zip(*(x for x in zip(names, samples, strict=True) if len(x[1])), strict=True)
    bought = np.unique(np.concatenate([sample[sample > 0] for sample in samples]))
    caps = bought[len(bought) // 2 :]
    if not (len(caps) and np.isfinite(caps[-1])):
        return ""
    # E min(X, c) is piecewise linear in c, so the leader changes where two lines cross; a fine
    # grid is enough, as the place is shown to three digits
    grid = np.geomspace(caps[0] / 4, caps[-1], 4096)
    curves = np.array([_capped(sample, grid) for sample in samples])
    ahead = curves.argmin(axis=0) if costs else curves.argmax(axis=0)
    changes = np.flatnonzero(np.diff(ahead))
    if not len(changes):
        return ""
    at = changes[np.abs(np.log(grid[changes] / cap)).argmin()]
    place = math.sqrt(grid[at] * grid[at + 1])
    below, above = names[ahead[at]], names[ahead[at + 1]]
    return f"Below a cap of {short(float(f'{place:.3g}'))} {below} leads, above it {above}."


def _capped(ranked: Array, caps: Array) -> Array:
    """Return the means of sorted samples, each cut from above."""
    below = np.searchsorted(ranked, caps)
    sums = np.append(0.0, np.cumsum(ranked))
    capped_means: Array = (sums[below] + (len(ranked) - below) * caps) / len(ranked)
    return capped_means


def _mean(sample: Array) -> float:
    with np.errstate(invalid="ignore", over="ignore"):
        return float(sample.mean())


def _of_purchases(arms: Sequence[tuple[Noise, float]], level: float) -> float:
    """Return a quantile of the rewards that are not zero, of the equal mixture of the arms."""
    zeros = [float(law.cdf(-m) - law.cdf(np.nextafter(-m, -np.inf))) for law, m in arms]
    if min(zeros) == 1:
        return 0.0
    ends = [
        float(law.ppf(min(max(at, 1e-300), 1.0))) + m
        for (law, m), zero in zip(arms, zeros, strict=True)
        for at in (level * (1 - zero), level * (1 - zero) + zero)
    ]
    asked = level * (1 - float(np.mean(zeros)))

    def reached(x: Array) -> NDArray[np.bool_]:
        below = np.mean([float(law.cdf(x - m)) for law, m in arms])
        return np.asarray(below - (np.mean(zeros) if x >= 0 else 0.0) >= asked)

    _, high = bisect(reached, np.array(min(ends)), np.array(max(ends)), halvings=200)
    return float(high)


def _integral(law: Noise, low: float, high: float) -> float:
    """Return ∫ F(x) dx from low to high, in pieces between quantiles of the law."""
    from scipy.integrate import quad

    levels = np.concatenate([np.geomspace(1e-9, 0.5, 30), 1 - np.geomspace(0.5, 1e-9, 30)])
    ends = np.unique(np.clip([low, *law.ppf(levels).tolist(), high], low, high))
    pieces = [quad(lambda x: float(law.cdf(x)), *piece, epsrel=1e-9)[0] for piece in pairwise(ends)]
    return float(sum(pieces))
