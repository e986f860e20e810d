"""Estimators of a location: an array in, an array with one axis less out.

Each estimator is a function, and a frozen object that a filter can hold. ±inf are legitimate
samples, as the limit of ever larger ones: opposite infinities cancel. NaN is refused.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from tailproof.checks import number, require, whole
from tailproof.noise import Noise
from tailproof.stats.aims import Aim, quantile_interval
from tailproof.stats.theory import block_size
from tailproof.typing import Array

__all__ = [
    "Estimator",
    "Mean",
    "MeanOfMedians",
    "Median",
    "MedianOfMeans",
    "Quantile",
    "TrimmedMean",
    "TruncatedMean",
    "WinsorizedMean",
    "mean_of_medians",
    "median_of_means",
    "truncated_mean",
]

Shape = tuple[int, ...]

_LARGEST = np.finfo(np.float64).max
_BLOCKS = 15
"""Of a robust mean of records: few, so that they are long, and enough for a level of 0.9999."""


class Source(Protocol):
    """What an estimator needs of a noise in order to draw its own error."""

    def sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        """Draw samples."""

    def sample_median(self, k: int, rng: np.random.Generator, shape: Shape) -> Array:
        """Draw medians of k samples."""


class Estimator(ABC):
    """A frozen estimator: call it on samples, or let it draw its own error under a noise."""

    equivariant: ClassVar[bool] = False
    """Whether a shift, or another unit, of the samples is that of the estimate.

    The noise alone then tells its error."""

    @abstractmethod
    def check(self, n: int) -> None:
        """Raise ``ValueError`` if n samples are not enough."""

    @abstractmethod
    def reduce(self, x: Array) -> Array:
        """Estimate along the last axis; NaN in, and only NaN in, gives NaN out."""

    def __call__(self, x: ArrayLike, axis: int = -1) -> Array:
        """Estimate along an axis."""
        samples = np.asarray(x, dtype=np.float64)
        require(samples.ndim > 0 and samples.size > 0, "x", "a non-empty array", x)
        samples = np.moveaxis(samples, axis, -1)
        self.check(samples.shape[-1])
        estimate = self.reduce(samples)
        _refuse_nan(estimate)
        return estimate

    def draw(self, noise: Source, rng: np.random.Generator, shape: Shape) -> Array:
        """Draw what the estimator would return on ``noise.sample(rng, shape)``, equal in law."""
        return self(noise.sample(rng, shape))


class _AimedAt(Estimator, Aim):
    """An estimator of a number that every arm has for itself: it is an aim too."""

    def values(self, samples: Sequence[Array]) -> Array:
        """Return the estimate from all samples of each arm."""
        return np.array([self(sample) for sample in samples])


@dataclass(frozen=True, kw_only=True)
class Mean(_AimedAt):
    """The sample mean: right for light tails, worthless without a mean.

    (1/n) Σ X_i

    >>> float(Mean()([1.0, 2.0, 6.0]))
    3.0

    Source: elementary. Differences: opposite infinities cancel.
    """

    equivariant: ClassVar[bool] = True

    def check(self, n: int) -> None:
        """Accept any number of samples."""

    def reduce(self, x: Array) -> Array:
        """Average the last axis."""
        return _mean(x)

    @property
    def mirrored(self) -> "Mean":
        """The same."""
        return self

    def estimates(self, samples: Sequence[Array], level: float) -> Array:
        """Return the median of 15 block means, between two of them, for each arm.

        The interval is the exact one for the median of a block mean, which is the mean if block
        means are symmetric: nearly so for long blocks, where there is a mean. Samples are dealt to
        blocks at random, with a fixed seed, as records may be in order.
        """
        found = []
        for sample in samples:
            dealt = np.random.default_rng(0).permutation(sample)
            count = min(_BLOCKS, len(dealt))
            means = _mean(_blocks(dealt, count, len(dealt) // count))
            found.append((float(_medians(means)), *quantile_interval(means, 0.5, level)))
        return np.array(found)

    def of(self, laws: Sequence[Noise], locations: Sequence[float]) -> Array:
        """Return the means; a law without one is refused."""
        for law in laws:
            require(law.alpha > 1, "laws", "laws that have a mean", law)
        return np.array([m + law.mean for law, m in zip(laws, locations, strict=True)])


@dataclass(frozen=True, kw_only=True)
class Median(_AimedAt):
    """The sample median: one block of all samples.

    median(X_1, …, X_n), the average of the two middle values when n is even

    >>> float(Median()([1.0, 2.0, 1e300]))
    2.0

    Source: elementary. Differences: opposite infinities cancel.
    """

    equivariant: ClassVar[bool] = True

    def check(self, n: int) -> None:
        """Accept any number of samples."""

    def reduce(self, x: Array) -> Array:
        """Take the median of the last axis."""
        return _medians(x)

    def draw(self, noise: Source, rng: np.random.Generator, shape: Shape) -> Array:
        """Draw the median from its exact law, one number instead of n."""
        return noise.sample_median(shape[-1], rng, shape[:-1])

    @property
    def mirrored(self) -> "Median":
        """The same."""
        return self

    def estimates(self, samples: Sequence[Array], level: float) -> Array:
        """Return the medians between two order statistics, see `quantile_interval`."""
        return np.array([(self(x), *quantile_interval(x, 0.5, level)) for x in samples])

    def of(self, laws: Sequence[Noise], locations: Sequence[float]) -> Array:
        """Return the medians."""
        return np.array([m + law.median for law, m in zip(laws, locations, strict=True)])


@dataclass(frozen=True)
class Quantile(_AimedAt):
    """A sample quantile: one of the samples, by its rank.

    X_(j), j = ⌊level·(n + 1) + ½⌋ of n samples in ascending order

    X_(j) = Q(U) with U ~ Beta(j, n + 1 − j), whose mean is as near to the level as it can be; see
    `tailproof.stats.medians.NoiseQuantile` for its exact law.

    Parameters
    ----------
    level : float
        Which quantile, in (0, 1): 0.95 for the value that one reward in twenty exceeds.

    Examples
    --------
    >>> float(Quantile(0.75)([1.0, 5.0, 2.0, 4.0, 3.0, 1e300, 0.0]))
    5.0

    Source: order statistics. Differences: never between two samples, which `Median` may be.
    """

    equivariant: ClassVar[bool] = True
    level: float

    def __post_init__(self) -> None:
        number("level", self.level, above=0, below=1)

    @property
    def least(self) -> int:
        """The fewest samples of which one is expected beyond the quantile."""
        return math.ceil(1 / min(self.level, 1 - self.level) - 1 - 1e-9)

    def rank(self, n: int) -> int:
        """Return j, the rank from 1 to n of the sample that is taken."""
        return min(max(math.floor(self.level * (n + 1) + 0.5), 1), n)

    def check(self, n: int) -> None:
        """Refuse fewer samples than it takes to have one on each side of the quantile."""
        rule = f"at least {self.least} for the quantile {self.level:g}"
        require(n >= self.least, "samples", rule, n)

    def reduce(self, x: Array) -> Array:
        """Take the sample of the rank along the last axis."""
        place = self.rank(x.shape[-1]) - 1
        taken = np.partition(x, place, axis=-1)[..., place]
        return np.where(np.isnan(x).any(axis=-1), np.nan, taken)

    def draw(self, noise: Source, rng: np.random.Generator, shape: Shape) -> Array:
        """Draw the quantile from its exact law, one number instead of n."""
        *outer, n = shape
        self.check(n)
        if not isinstance(noise, Noise):
            return super().draw(noise, rng, shape)
        rank = self.rank(n)
        return noise.ppf(rng.beta(rank, n + 1 - rank, tuple(outer)))

    @property
    def mirrored(self) -> "Quantile":
        """The quantile 1 − level."""
        return Quantile(round(1 - self.level, 12))

    def estimates(self, samples: Sequence[Array], level: float) -> Array:
        """Return the quantiles between two order statistics, see `quantile_interval`."""
        return np.array([(self(x), *quantile_interval(x, self.level, level)) for x in samples])

    def of(self, laws: Sequence[Noise], locations: Sequence[float]) -> Array:
        """Return the quantiles."""
        own = [float(law.ppf(self.level)) for law in laws]
        return np.array([m + x for x, m in zip(own, locations, strict=True)])


@dataclass(frozen=True)
class TrimmedMean(Estimator):
    """The mean without the smallest and the largest samples.

    (1/(n − 2g)) Σ_{g < i ≤ n−g} X_(i),  g = ⌊share·n⌋

    Parameters
    ----------
    share : float
        The share left out at each end, below ½: 0 is the mean.

    Examples
    --------
    >>> float(TrimmedMean(0.25)([1.0, 3.0, 5.0, 1e300]))
    4.0

    Source: Tukey 1962. Differences: opposite infinities cancel.
    """

    equivariant: ClassVar[bool] = True
    share: float

    def __post_init__(self) -> None:
        number("share", self.share, at_least=0, below=0.5)

    def check(self, n: int) -> None:
        """Accept any number of samples."""

    def reduce(self, x: Array) -> Array:
        """Average the last axis without its ends."""
        ends = math.floor(self.share * x.shape[-1] + 1e-9)
        return _mean(_sorted(x)[..., ends : x.shape[-1] - ends])


@dataclass(frozen=True)
class WinsorizedMean(Estimator):
    """The mean, with the smallest and the largest samples moved to the nearest one that is kept.

    (1/n) Σ min(max(X_i, X_(g+1)), X_(n−g)),  g = ⌊share·n⌋

    Parameters
    ----------
    share : float
        The share moved at each end, below ½: 0 is the mean.

    Examples
    --------
    >>> float(WinsorizedMean(0.25)([1.0, 3.0, 5.0, 1e300]))
    4.0

    Source: Dixon 1960, who names Winsor. Differences: opposite infinities cancel.
    """

    equivariant: ClassVar[bool] = True
    share: float

    def __post_init__(self) -> None:
        number("share", self.share, at_least=0, below=0.5)

    def check(self, n: int) -> None:
        """Accept any number of samples."""

    def reduce(self, x: Array) -> Array:
        """Average the last axis with its ends moved inwards."""
        ends, ranked = math.floor(self.share * x.shape[-1] + 1e-9), _sorted(x)
        low, high = ranked[..., ends, None], ranked[..., x.shape[-1] - 1 - ends, None]
        return _mean(np.clip(ranked, low, high))


@dataclass(frozen=True, kw_only=True)
class MeanOfMedians(Estimator):
    """The paper's estimator: the mean of the medians of blocks of consecutive samples.

    (1/k') Σ_j median(X_{(j−1)k+1}, …, X_{jk}),  k = ⌈n^ε⌉,  k' = ⌊n/k⌋

    Parameters
    ----------
    block : int, optional
        The block length k.
    block_exponent : float, optional
        ε in (0, 1), which sets the block length from n. One half where neither is given.

    Examples
    --------
    >>> float(MeanOfMedians(block=3)([1.0, 2.0, 900.0, 4.0, -900.0, 6.0, 7.0]))
    3.0

    Source: Algorithm 1 of Zhong et al. 2021.
    Differences: the block length may be given; opposite infinities cancel.
    """

    equivariant: ClassVar[bool] = True
    block: int | None = None
    block_exponent: float | None = None

    def __post_init__(self) -> None:
        require(
            self.block is None or self.block_exponent is None,
            "block",
            "left out when block_exponent is given",
            self.block,
        )
        if self.block is not None:
            whole("block", self.block)
        if self.block_exponent is not None:
            number("block_exponent", self.block_exponent, above=0, below=1)

    def length(self, n: int) -> int:
        """Return the block length for n samples."""
        if self.block is not None:
            return self.block
        return block_size(n, 0.5 if self.block_exponent is None else self.block_exponent)

    def check(self, n: int) -> None:
        """Refuse a block longer than the samples."""
        block = self.length(n)
        require(block <= n, "block", f"at most {n}, the number of samples", block)

    def reduce(self, x: Array) -> Array:
        """Average the block medians of the last axis."""
        k = self.length(x.shape[-1])
        return _mean(_medians(_blocks(x, x.shape[-1] // k, k)))

    def draw(self, noise: Source, rng: np.random.Generator, shape: Shape) -> Array:
        """Draw the block medians from their exact law: k' numbers instead of n."""
        *outer, n = shape
        self.check(n)
        k = self.length(n)
        return _mean(noise.sample_median(k, rng, (*outer, n // k)))


@dataclass(frozen=True, kw_only=True)
class MedianOfMeans(Estimator):
    """The median of block means: robust as long as a mean exists.

    median over k' blocks of (1/k) Σ_i X_{(j−1)k+i},  k = ⌊n/k'⌋

    Parameters
    ----------
    blocks : int
        The number k' of blocks.

    Examples
    --------
    >>> float(MedianOfMeans(blocks=3)([1.0, 3.0, 4.0, 6.0, 900.0, 800.0]))
    5.0

    Source: equation 2 of Zhong et al. 2021, there from Bubeck et al. 2013.
    Differences: opposite infinities cancel.
    """

    equivariant: ClassVar[bool] = True
    blocks: int

    def __post_init__(self) -> None:
        whole("blocks", self.blocks)

    def check(self, n: int) -> None:
        """Refuse more blocks than samples."""
        require(self.blocks <= n, "blocks", f"at most {n}, the number of samples", self.blocks)

    def reduce(self, x: Array) -> Array:
        """Take the median of the block means of the last axis."""
        return _medians(_mean(_blocks(x, self.blocks, x.shape[-1] // self.blocks)))


@dataclass(frozen=True, kw_only=True)
class TruncatedMean(Estimator):
    """The mean with large samples replaced by zero.

    (1/n) Σ X_i 1{|X_i| ≤ c}

    Parameters
    ----------
    threshold : float
        The level c.

    Examples
    --------
    >>> float(TruncatedMean(threshold=10)([1.0, 2.0, 6.0, 1e300]))
    2.25

    Source: equation 1 of Zhong et al. 2021, there from Bubeck et al. 2013. Differences: none.
    """

    threshold: float

    def __post_init__(self) -> None:
        number("threshold", self.threshold, above=0)

    def check(self, n: int) -> None:
        """Accept any number of samples."""

    def reduce(self, x: Array) -> Array:
        """Average the last axis without its large entries."""
        return _mean(np.where(np.abs(x) > self.threshold, 0.0, x))


def mean_of_medians(
    x: ArrayLike, *, block: int | None = None, block_exponent: float | None = None, axis: int = -1
) -> Array:
    """Return the mean of block medians along an axis, see `MeanOfMedians`.

    >>> float(mean_of_medians([1.0, 2.0, 900.0, 4.0, -900.0, 6.0, 7.0], block=3))
    3.0
    """
    return MeanOfMedians(block=block, block_exponent=block_exponent)(x, axis)


def median_of_means(x: ArrayLike, *, blocks: int, axis: int = -1) -> Array:
    """Return the median of block means along an axis, see `MedianOfMeans`.

    >>> float(median_of_means([1.0, 3.0, 4.0, 6.0, 900.0, 800.0], blocks=3))
    5.0
    """
    return MedianOfMeans(blocks=blocks)(x, axis)


def truncated_mean(x: ArrayLike, *, threshold: float, axis: int = -1) -> Array:
    """Return the mean without large samples along an axis, see `TruncatedMean`.

    >>> float(truncated_mean([1.0, 2.0, 6.0, 1e300], threshold=10))
    2.25
    """
    return TruncatedMean(threshold=threshold)(x, axis)


def _refuse_nan(x: Array) -> None:
    require(not np.isnan(x).any(), "x", "free of NaN", np.nan)


def _sorted(x: Array) -> Array:
    """Sort the last axis; a NaN takes the whole row with it."""
    return np.where(np.isnan(x).any(axis=-1, keepdims=True), np.nan, np.sort(x, axis=-1))


def _blocks(x: Array, count: int, k: int) -> Array:
    """Cut the last axis into consecutive blocks of k; the remainder is not used."""
    _refuse_nan(x[..., count * k :])
    return x[..., : count * k].reshape(*x.shape[:-1], count, k)


def _mean(x: Array) -> Array:
    """Average the last axis; opposite infinities cancel, and only infinities give infinities."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean: Array = np.asarray(x.mean(axis=-1))
        wild = ~np.isfinite(mean)
        if wild.any():  # NaN, infinities, or a sum that is too large for a float
            rows = x[wild]
            surplus = np.isposinf(rows).sum(axis=-1) - np.isneginf(rows).sum(axis=-1)
            finite = (np.where(np.isinf(rows), 0.0, rows) / x.shape[-1]).sum(axis=-1)
            limit = np.where(surplus == 0, 0.0, np.copysign(np.inf, surplus))
            mean[wild] = limit + np.clip(finite, -_LARGEST, _LARGEST)
    return mean


def _medians(x: Array) -> Array:
    """Take the median of the last axis; only NaN gives NaN."""
    *outer, k = x.shape
    rows = x.reshape(-1, k)
    middles = np.empty((len(rows), 2 - k % 2))
    # Many short rows are fastest by a sorting network over whole columns, others by partition.
    pick = _middles_by_network if k <= 13 and len(rows) > 500 else _middles_by_partition
    step = max(1, (1 << 17) // k)  # the samples in hand stay in the cache
    for start in range(0, len(rows), step):
        pick(rows[start : start + step], middles[start : start + step])
    return (middles[:, 0] if k % 2 else _mean(middles)).reshape(outer)


def _middles_by_partition(rows: Array, middles: Array) -> None:
    half = rows.shape[1] // 2
    parts = np.partition(rows, half, axis=1)
    middles[:, -1] = parts[:, half]
    if middles.shape[1] == 2:
        middles[:, 0] = parts[:, :half].max(axis=1)
    if np.isnan(rows.min()):
        middles[np.isnan(rows).any(axis=1)] = np.nan


def _middles_by_network(rows: Array, middles: Array) -> None:
    count, k = rows.shape
    column = list(rows.T)
    buffer = list(np.empty((k, count)))
    low_spare, high_spare = np.empty((2, count))
    for low, high, low_needed, high_needed in _network(k):
        a, b = column[low], column[high]
        if low_needed:
            column[low] = np.minimum(a, b, out=low_spare)
            low_spare, buffer[low] = buffer[low], low_spare
        if high_needed:
            column[high] = np.maximum(a, b, out=high_spare)
            high_spare, buffer[high] = buffer[high], high_spare
    middles[:, 0] = column[(k - 1) // 2]
    middles[:, -1] = column[k // 2]


@cache
def _network(k: int) -> list[tuple[int, int, bool, bool]]:
    """List the comparisons that bring the middle of k values to its place.

    Batcher's merge exchange (Knuth, volume 3, algorithm 5.2.2M) sorts k values whatever they are.
    Each entry names two places and whether the smaller and the larger value are needed later;
    comparisons on which no middle value depends are left out.
    """
    pairs = []
    top = p = (1 << (k - 1).bit_length()) // 2
    while p:
        q, r, d = top, 0, p
        while True:
            pairs += [(i, i + d) for i in range(k - d) if i & p == r]
            if q == p:
                break
            q, r, d = q // 2, p, q - p
        p //= 2
    needed = {(k - 1) // 2, k // 2}
    kept = []
    for low, high in reversed(pairs):
        if low in needed or high in needed:
            kept.append((low, high, low in needed, high in needed))
            needed |= {low, high}
    return kept[::-1]
