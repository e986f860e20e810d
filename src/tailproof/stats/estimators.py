"""Estimators of a location: they reduce one axis of an array.

Each estimator is a frozen dataclass, which a filter can store; some also have a function. Samples
may be ±inf, as limits of ever larger samples: opposite infinities cancel. NaN raises an error.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from tailproof.checks import Fraction, Positive, Range, check_fields, require
from tailproof.noise import Noise
from tailproof.settings import Named
from tailproof.stats.aims import Aim
from tailproof.stats.comparison import MeanWithin, Ranked, Statistic, Unbounded
from tailproof.stats.theory import block_size
from tailproof.typing import Array

__all__ = [
    "Estimator",
    "Location",
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
_COMMON = 5
"""How often the least and the largest reward must have come to be taken for bounds."""
_Share = Annotated[float, Range(at_least=0, below=0.5)]


class Source(Protocol):
    """What an estimator needs from a noise to draw its own error."""

    def sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        """Draw samples."""

    def sample_median(self, k: int, rng: np.random.Generator, shape: Shape) -> Array:
        """Draw medians of k samples."""


class Estimator(Named, ABC):
    """An estimator of a location: call it on samples, or let it draw its error under a noise."""

    equivariant: ClassVar[bool] = False
    """Whether the estimate shifts and scales with the samples.

    Its error then depends on the noise alone."""

    def __post_init__(self) -> None:
        check_fields(self)

    def check(self, n: int) -> None:
        """Raise ``ValueError`` if n samples are not enough; by default one is."""
        require(n > 0, "x", "at least one sample", n)

    @abstractmethod
    def reduce(self, x: Array) -> Array:
        """Estimate along the last axis; the result is NaN if and only if a sample is NaN."""

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
        """Draw from the law of the estimate on ``noise.sample(rng, shape)``."""
        return self(noise.sample(rng, shape))


class _EstimatorAim(Estimator, Aim):
    """An estimator that is also an aim: its value depends on one arm alone."""

    share = None

    def values(self, samples: Sequence[Array]) -> Array:
        """Return the estimate from all samples of each arm."""
        return np.array([self(sample) for sample in samples])

    def of(self, laws: Sequence[Noise], locations: Sequence[float]) -> Array:
        """Return the exact value for the law of each arm, plus its location."""
        return np.array([m + self._of_law(law) for law, m in zip(laws, locations, strict=True)])

    @abstractmethod
    def _of_law(self, law: Noise) -> float: ...


@dataclass(frozen=True, kw_only=True)
class Mean(_EstimatorAim):
    """The sample mean: best for light tails, useless if the law has no mean.

    (1/n) Σ X_i

    >>> float(Mean()([1.0, 2.0, 6.0]))
    3.0

    Source: elementary. Differences: opposite infinities cancel.
    """

    equivariant: ClassVar[bool] = True
    averages: ClassVar[bool] = True
    level = None

    def reduce(self, x: Array) -> Array:
        """Average the last axis."""
        return _mean(x)

    def among(self, samples: Sequence[Array], *, light: bool = False) -> Statistic:
        """Return the mean, with bounds where they can be assumed; without, no lead is ever sure.

        The least and the largest reward are bounds if both are common, as with clicks and ratings.
        For `light` tails, an end that is not common is moved outwards by the range of the rewards.
        """
        some = [x for x in samples if len(x)]
        if not some:
            return Unbounded()
        low, high = min(float(x.min()) for x in some), max(float(x.max()) for x in some)
        seen = (sum(np.count_nonzero(x == end) for x in samples) for end in (low, high))
        common = [count >= _COMMON for count in seen]
        if not 0 < high - low < math.inf or not (light or all(common)):
            return Unbounded()
        reach = high - low
        low, high = low - reach * (not common[0]), high + reach * (not common[1])
        return MeanWithin(low, high, f"rewards are assumed to lie between {low:.4g} and {high:.4g}")

    def _of_law(self, law: Noise) -> float:
        require(law.alpha > 1, "laws", "laws that have a mean", law)
        return law.mean


class _Centre(_EstimatorAim):
    """Where symmetric rewards are centred, estimated by the middle of a sample."""

    equivariant: ClassVar[bool] = True
    central: ClassVar[bool] = True

    def reduce(self, x: Array) -> Array:
        """Take the median of the last axis."""
        return _medians(x)

    def draw(self, noise: Source, rng: np.random.Generator, shape: Shape) -> Array:
        """Draw the median from its exact law, one number instead of n."""
        return noise.sample_median(shape[-1], rng, shape[:-1])

    def among(self, samples: Sequence[Array], *, light: bool = False) -> Statistic:
        """Return the middle order statistic."""
        return Ranked(0.5, self)

    def _of_law(self, law: Noise) -> float:
        return law.median


@dataclass(frozen=True, kw_only=True)
class Median(_Centre):
    """The sample median: one block of all samples.

    median(X_1, …, X_n), the average of the two middle values when n is even

    >>> float(Median()([1.0, 2.0, 1e300]))
    2.0

    Source: elementary. Differences: opposite infinities cancel.
    """

    level = 0.5


@dataclass(frozen=True, kw_only=True)
class Location(_Centre):
    """Where symmetric rewards are centred: their median, and their mean if they have one.

    For rewards that scatter around a level with extreme outliers. `judge` averages it over
    visitors, V = E_x Σ_a π(a|x) m(x, a) with y = m(x, a) + noise, by the score of Student's t: it
    has the smallest error of all aims if the noise is symmetric and m linear in the features, and
    the verdict checks the symmetry. Of one sample it is the `Median`.

    >>> Location().name, float(Location()([1.0, 2.0, 1e300]))
    ('location', 2.0)

    Source: the score of Student's t: Lange, Little and Taylor 1989. Differences: features enter
    linearly, and the verdict checks that the noise is symmetric.
    """

    level = 0.5
    symmetric: ClassVar[bool] = True
    bounded = False


@dataclass(frozen=True)
class Quantile(_EstimatorAim):
    """A sample quantile: the sample of a given rank.

    X_(j), j = ⌊level·(n + 1) + ½⌋ of n samples in ascending order

    X_(j) = Q(U) with U ~ Beta(j, n + 1 − j); no other rank brings the mean of U closer to `level`.
    `tailproof.stats.medians.NoiseQuantile` is its exact law.

    Parameters
    ----------
    level : float
        In (0, 1): 0.95 is the value that one reward in twenty exceeds.

    Examples
    --------
    >>> float(Quantile(0.75)([1.0, 5.0, 2.0, 4.0, 3.0, 1e300, 0.0]))
    5.0

    Source: order statistics. Differences: always one of the samples, unlike `Median`.
    """

    equivariant: ClassVar[bool] = True
    level: Fraction

    @property
    def least(self) -> int:
        """The fewest samples of which at least one is expected on each side of the quantile."""
        return math.ceil(1 / min(self.level, 1 - self.level) - 1 - 1e-9)

    def rank(self, n: int) -> int:
        """Return the rank j of n samples, from 1 to n."""
        return min(max(math.floor(self.level * (n + 1) + 0.5), 1), n)

    def check(self, n: int) -> None:
        """Raise ``ValueError`` for fewer than `least` samples."""
        rule = f"at least {self.least} for the quantile {self.level:g}"
        require(n >= self.least, "samples", rule, n)

    def reduce(self, x: Array) -> Array:
        """Take the sample of this rank along the last axis."""
        place = self.rank(x.shape[-1]) - 1
        quantile = np.partition(x, place, axis=-1)[..., place]
        return np.where(np.isnan(x).any(axis=-1), np.nan, quantile)

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

    def check_differs(self, samples: Sequence[Array]) -> None:
        """Raise ``ValueError`` if it is the same for all arms: none could be told apart."""
        values = self.values(samples)
        if len(values) > 1 and np.all(values == values[0]):
            raise ValueError(
                f"the {self.name} cannot tell your arms apart: it is {values[0]:g} for all of "
                "them. Next: aim at the capped mean, or at another quantile"
            )

    def words(self, size: str = "", *, cap: float | None = None) -> str:
        """Name it."""
        return " ".join(filter(None, ["the", size, f"{self.level:g}-quantile"]))

    def among(self, samples: Sequence[Array], *, light: bool = False) -> Statistic:
        """Return the order statistic of this level."""
        return Ranked(self.level, self, self.least)

    def _of_law(self, law: Noise) -> float:
        return float(law.ppf(self.level))


@dataclass(frozen=True)
class TrimmedMean(Estimator):
    """The mean without the smallest and the largest samples.

    (1/(n − 2g)) Σ_{g < i ≤ n−g} X_(i),  g = ⌊share·n⌋,  0 ≤ share < ½

    >>> float(TrimmedMean(0.25)([1.0, 3.0, 5.0, 1e300]))
    4.0

    Source: Tukey 1962. Differences: opposite infinities cancel.
    """

    equivariant: ClassVar[bool] = True
    share: _Share

    def reduce(self, x: Array) -> Array:
        """Average the last axis without its ends."""
        ends = math.floor(self.share * x.shape[-1] + 1e-9)
        return _mean(_sorted(x)[..., ends : x.shape[-1] - ends])


@dataclass(frozen=True)
class WinsorizedMean(Estimator):
    """The mean with the smallest and the largest samples replaced by the nearest remaining one.

    (1/n) Σ min(max(X_i, X_(g+1)), X_(n−g)),  g = ⌊share·n⌋,  0 ≤ share < ½

    >>> float(WinsorizedMean(0.25)([1.0, 3.0, 5.0, 1e300]))
    4.0

    Source: Dixon 1960, who names Winsor. Differences: opposite infinities cancel.
    """

    equivariant: ClassVar[bool] = True
    share: _Share

    def reduce(self, x: Array) -> Array:
        """Average the last axis with its ends clipped."""
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
        ε in (0, 1), which sets the block length from n; ½ if neither is given.

    Examples
    --------
    >>> float(MeanOfMedians(block=3)([1.0, 2.0, 900.0, 4.0, -900.0, 6.0, 7.0]))
    3.0

    Source: Algorithm 1 of Zhong et al. 2021.
    Differences: the block length may be given; opposite infinities cancel.
    """

    equivariant: ClassVar[bool] = True
    block: Annotated[int, Range(at_least=1)] | None = None
    block_exponent: Fraction | None = None

    def __post_init__(self) -> None:
        if self.block is not None and self.block_exponent is not None:
            raise ValueError(
                "pass either block or block_exponent, "
                f"got block={self.block!r} and block_exponent={self.block_exponent!r}"
            )
        super().__post_init__()

    def length(self, n: int) -> int:
        """Return the block length for n samples."""
        if self.block is not None:
            return self.block
        return block_size(n, 0.5 if self.block_exponent is None else self.block_exponent)

    def check(self, n: int) -> None:
        """Raise ``ValueError`` if the block is longer than n."""
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

    median_j (1/k) Σ_i X_{(j−1)k+i},  j ≤ k' = blocks,  k = ⌊n/k'⌋

    >>> float(MedianOfMeans(blocks=3)([1.0, 3.0, 4.0, 6.0, 900.0, 800.0]))
    5.0

    Source: equation 2 of Zhong et al. 2021, there from Bubeck et al. 2013.
    Differences: opposite infinities cancel.
    """

    equivariant: ClassVar[bool] = True
    blocks: Annotated[int, Range(at_least=1)]

    def check(self, n: int) -> None:
        """Raise ``ValueError`` if there are more blocks than samples."""
        require(self.blocks <= n, "blocks", f"at most {n}, the number of samples", self.blocks)

    def reduce(self, x: Array) -> Array:
        """Take the median of the block means of the last axis."""
        return _medians(_mean(_blocks(x, self.blocks, x.shape[-1] // self.blocks)))


@dataclass(frozen=True, kw_only=True)
class TruncatedMean(Estimator):
    """The mean with large samples replaced by zero.

    (1/n) Σ X_i 1{|X_i| ≤ threshold}

    >>> float(TruncatedMean(threshold=10)([1.0, 2.0, 6.0, 1e300]))
    2.25

    Source: equation 1 of Zhong et al. 2021, there from Bubeck et al. 2013. Differences: none.
    """

    threshold: Positive

    def reduce(self, x: Array) -> Array:
        """Average the last axis with large samples set to zero."""
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
    """Return the mean along an axis with large samples set to zero, see `TruncatedMean`.

    >>> float(truncated_mean([1.0, 2.0, 6.0, 1e300], threshold=10))
    2.25
    """
    return TruncatedMean(threshold=threshold)(x, axis)


def _refuse_nan(x: Array) -> None:
    require(not np.isnan(x).any(), "x", "free of NaN", np.nan)


def _sorted(x: Array) -> Array:
    """Sort the last axis; a row with a NaN becomes all NaN."""
    return np.where(np.isnan(x).any(axis=-1, keepdims=True), np.nan, np.sort(x, axis=-1))


def _blocks(x: Array, count: int, k: int) -> Array:
    """Split the last axis into consecutive blocks of k, dropping the remainder."""
    _refuse_nan(x[..., count * k :])
    return x[..., : count * k].reshape(*x.shape[:-1], count, k)


def _mean(x: Array) -> Array:
    """Average the last axis; opposite infinities cancel, and finite rows stay finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean: Array = np.asarray(x.mean(axis=-1))
        odd = ~np.isfinite(mean)
        if odd.any():  # NaN, infinities, or a sum that is too large for a float
            rows = x[odd]
            surplus = np.isposinf(rows).sum(axis=-1) - np.isneginf(rows).sum(axis=-1)
            finite = (np.where(np.isinf(rows), 0.0, rows) / x.shape[-1]).sum(axis=-1)
            limit = np.where(surplus == 0, 0.0, np.copysign(np.inf, surplus))
            mean[odd] = limit + np.clip(finite, -_LARGEST, _LARGEST)
    return mean


def _medians(x: Array) -> Array:
    """Take the median of the last axis; it is NaN only if a sample is."""
    *outer, k = x.shape
    rows = x.reshape(-1, k)
    middles = np.empty((len(rows), 2 - k % 2))
    # A sorting network over whole columns is fastest for many short rows, partition for others.
    pick = _middles_by_network if k <= 13 and len(rows) > 500 else _middles_by_partition
    step = max(1, (1 << 17) // k)  # so that these rows stay in the cache
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
    """List the comparisons that move the median of k values to the middle.

    The comparisons are Batcher's merge exchange (Knuth, volume 3, algorithm 5.2.2M), a sorting
    network, without the comparisons on which no middle value depends. Each entry holds two
    positions, and whether the smaller and the larger value are needed later.
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
