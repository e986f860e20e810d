"""The exact law of the median or quantile of a block, and of the mean of several block medians.

The sample of rank j among k of a law with quantile function Q is Q(U), U ~ Beta(j, k + 1 − j). The
median has j = (k+1)/2 if k is odd, and is the mean of two samples if k is even. Nothing here is
random.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincinv, betaln, expit, log_expit, logit, logsumexp, ndtri

from tailproof.bisection import bisect
from tailproof.checks import number, require, whole
from tailproof.noise import Noise
from tailproof.stats.estimators import Quantile
from tailproof.typing import Array

if TYPE_CHECKING:
    from scipy.interpolate import CubicSpline

__all__ = [
    "MedianLaw",
    "NoiseMedian",
    "NoiseQuantile",
    "SampleMedian",
    "exceedance",
    "median_scale",
    "scale",
]


class MedianLaw(ABC):
    """The law of the error M of the median of a block of k samples."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """E M², possibly inf."""

    @abstractmethod
    def exceedance(self, z: Array) -> Array:
        """Return P(|M| > z)."""

    @abstractmethod
    def cells(self, width: float, count: int) -> Array:
        """Return P(|M − j·width| < width/2) for |j| ≤ count, j = 0 in the middle."""


@dataclass(frozen=True)
class NoiseMedian(MedianLaw):
    """The law of the median of k samples of a noise.

    odd k: P(M > z) = I_{F(−z)}(a, a), a = (k+1)/2, with the regularised incomplete beta function;
    even k: ∫ b(u) min(1, F(Q(u) − 2z)/(1 − u))^(k/2) du, b the density of Beta(k/2, k/2+1)

    >>> from tailproof.noise import Cauchy
    >>> round(7 * NoiseMedian(Cauchy(), 7).variance, 3)
    4.285

    Source: order statistics of uniform samples. Differences: P is tabulated over ln z; beyond the
    table it is the power law with tail index α⌈k/2⌉.
    """

    noise: Noise
    block: int

    def __post_init__(self) -> None:
        _check_law(self.noise)

    @property
    def tail_index(self) -> float:
        """α⌈k/2⌉: moments of M exist below this order."""
        return self.noise.alpha * ((self.block + 1) // 2)

    @cached_property
    def variance(self) -> float:
        """E M² = ∫ 2z P(|M| > z) dz."""
        if self.tail_index <= 2:
            return math.inf
        log_z, tail = self._table
        inside = np.trapezoid(2 * np.exp(2 * log_z) * tail, log_z)
        rest = 2 * math.exp(2 * log_z[-1]) * tail[-1] / (self.tail_index - 2)
        return float(inside + rest)

    def exceedance(self, z: Array) -> Array:
        """Return P(|M| > z)."""
        first, last = self._curve.x[[0, -1]]
        with np.errstate(divide="ignore"):
            at = np.log(z)
        far = min(self.tail_index, 1e9) * np.maximum(at - last, 0)
        return np.where(at < first, 1.0, np.exp(self._curve(np.clip(at, first, last)) - far))

    def cells(self, width: float, count: int) -> Array:
        """Return P(|M − j·width| < width/2) for |j| ≤ count, j = 0 in the middle."""
        above = self.exceedance(np.linspace(width / 2, width * (count + 0.5), count + 1)) / 2
        right = above[:-1] - above[1:]
        return np.concatenate([right[::-1], [1 - 2 * above[0]], right])

    @cached_property
    def _curve(self) -> "CubicSpline":
        from scipy.interpolate import CubicSpline

        log_z, tail = self._table
        return CubicSpline(log_z[tail > 0], np.log(tail[tail > 0]))

    @cached_property
    def _table(self) -> tuple[Array, Array]:
        """P(|M| > z) over ln z."""
        from scipy.interpolate import CubicSpline

        log_z, tail = _log_tails(self.noise)
        k = self.block
        if k % 2:
            return log_z, 2 * betainc((k + 1) / 2, (k + 1) / 2, tail)
        # The minimum is below 1 up to u = F(z), and 1 above. Over s = logit u, b(u) du = exp(k/2 ln
        # u + (k/2 + 1) ln(1 − u)) ds / B.
        log_f = CubicSpline(log_z, np.log(np.maximum(tail, 1e-300)))
        log_z, tail = log_z[::4], tail[::4]
        y, dy = np.polynomial.legendre.leggauss(64)
        width = 8 + 80 / k
        s = (np.log1p(-tail) - np.log(np.maximum(tail, 1e-300)))[:, None] - width * (1 + y) / 2
        log_above = -np.logaddexp(0, s)
        log_b = k / 2 * -np.logaddexp(0, -s) + (k / 2 + 1) * log_above - betaln(k / 2, k / 2 + 1)
        upper = 2 * np.exp(log_z)[:, None] - self.noise.scale * self.noise._quantile(s)
        needed = log_f(np.clip(np.log(upper), log_z[0], log_z[-1]))
        share = np.exp(log_b + k / 2 * (needed - log_above)) @ dy * width / 2
        return log_z, 2 * (share + betainc(k / 2 + 1, k / 2, tail))


@dataclass(frozen=True)
class NoiseQuantile(MedianLaw):
    """The law of the error of a sample quantile of k samples of a noise, symmetric or not.

    M = Q(U) − Q(level), U ~ Beta(j, k + 1 − j), j the rank that `tailproof.Quantile` takes

    >>> from tailproof.noise import Cauchy
    >>> law = NoiseQuantile(Cauchy(), 7, Quantile(0.5))
    >>> round(7 * law.variance, 3), round(float(law.exceedance(np.array(1.0))), 4)
    (4.285, 0.1411)

    Source: order statistics of uniform samples. Differences: none.
    """

    noise: Noise
    block: int
    quantile: Quantile

    def __post_init__(self) -> None:
        self.quantile.check(self.block)

    @cached_property
    def variance(self) -> float:
        """E M² = ∫ (Q(u) − Q(level))² b(u) du, integrated over logit u; inf if it diverges."""
        below, above = self._ranks
        s = np.linspace(-700, 700, 140_001)
        log_b = below * log_expit(s) + above * log_expit(-s) - betaln(below, above)
        with np.errstate(divide="ignore", over="ignore"):
            log_size = np.log(np.abs(self.noise.scale * self.noise._quantile(s) - self._centre))
        log_height = log_b + 2 * log_size
        if max(log_height[0], log_height[-1]) > log_height.max() - 40:  # it diverges
            return math.inf
        return float(np.exp(logsumexp(log_height)) * (s[1] - s[0]))

    def exceedance(self, z: Array) -> Array:
        """Return P(|M| > z)."""
        return self._below(self._centre - z) + 1 - self._below(self._centre + z)

    def cells(self, width: float, count: int) -> Array:
        """Return P(|M − j·width| < width/2) for |j| ≤ count, j = 0 in the middle."""
        ends = np.linspace(-count - 0.5, count + 0.5, 2 * count + 2)
        return np.diff(self._below(self._centre + width * ends))

    def _below(self, x: Array) -> Array:
        probability: Array = betainc(*self._ranks, self.noise.cdf(x))
        return probability

    @property
    def _ranks(self) -> tuple[int, int]:
        """The parameters j and k + 1 − j of the beta law."""
        rank = self.quantile.rank(self.block)
        return rank, self.block + 1 - rank

    @cached_property
    def _centre(self) -> float:
        return float(self.noise.ppf(self.quantile.level))


@cache
def _log_tails(noise: Noise) -> tuple[Array, Array]:
    """Tabulate F(−z) over ln z, from the centre to where samples are negligibly rare."""
    middle, top = (_log_level(lambda z: 2 * noise.cdf(-z), level) for level in (0.5, 2e-14))
    low, top = middle - 14, min(top, middle + 300)  # smaller z add nothing to a variance
    log_z = np.linspace(low, top, 2 + int((top - low) / 0.025))
    return log_z, noise.cdf(-np.exp(log_z))


def _log_level(beyond: Callable[[Array], Array], level: float) -> float:
    """Return the ln z at which P(|M| > z) = level, by bisection."""

    def rarer(log_z: Array) -> NDArray[np.bool_]:
        return np.asarray(~(beyond(np.array(math.exp(float(log_z)))) > level))

    _, high = bisect(rarer, np.array(-700.0), np.array(700.0), halvings=50)
    return float(high)


@dataclass(frozen=True, eq=False)
class SampleMedian(MedianLaw):
    """The law of the median of k draws from given samples, k odd; samples are centred and sorted.

    M = x_(i) with probability I_{i/n}(a, a) − I_{(i−1)/n}(a, a), a = (k+1)/2

    >>> round(SampleMedian(np.array([-1.0, 0.0, 2.0]), 3).variance, 4)
    1.2963

    Source: Maritz and Jarrett 1978. Differences: any k, not only the sample size.
    """

    samples: Array
    block: int

    @cached_property
    def weights(self) -> Array:
        """The probability that each sample is the median."""
        n, a = len(self.samples), (self.block + 1) / 2
        half = np.diff(betainc(a, a, np.arange((n + 1) // 2 + 1) / n))
        return np.concatenate([half, half[: n // 2][::-1]])  # the other half is its mirror image

    @cached_property
    def variance(self) -> float:
        """E M², without samples that are the median less than once in 10¹² blocks."""
        counts = self.weights > 1e-12
        with np.errstate(over="ignore"):
            return float((self.weights[counts] * self.samples[counts] ** 2).sum())

    def exceedance(self, z: Array) -> Array:
        """Return P(|M| > z)."""
        size, left = self._sizes
        return left[np.searchsorted(size, z, side="right")]

    @cached_property
    def _sizes(self) -> tuple[Array, Array]:
        """The sorted |samples|, and the probability that |M| is at least each of them."""
        order = np.argsort(np.abs(self.samples))
        left = np.cumsum(self.weights[order][::-1])[::-1]
        return np.abs(self.samples[order]), np.append(left, 0.0)

    def cells(self, width: float, count: int) -> Array:
        """Return P(|M − j·width| < width/2) for |j| ≤ count, j = 0 in the middle."""
        with np.errstate(over="ignore"):
            place = np.rint(self.samples / width)
        inside = np.abs(place) <= count
        at = (place[inside] + count).astype(np.int64)
        return np.bincount(at, self.weights[inside], minlength=2 * count + 1).astype(np.float64)


def exceedance(law: MedianLaw, blocks: int, z: ArrayLike) -> Array:
    """Return P(|mean of the block medians| > z).

    >>> from tailproof.noise import Cauchy
    >>> float(exceedance(NoiseMedian(Cauchy(), 1), 5, 1.0).round(3))
    0.5

    Source: exact for one block, a discrete convolution for several. If one block median exceeds
    32 times the sum in question, the sum is counted as exceeding it. Differences: none. Up to 50
    blocks, probabilities above 1e-4 are right to one part in a thousand.
    """
    errors = np.asarray(z, dtype=np.float64)
    require(bool(np.all(errors >= 0)), "z", "at least 0", z)
    if whole("blocks", blocks) == 1:
        return law.exceedance(errors)
    probability = np.empty(errors.shape)
    for index, error in np.ndenumerate(errors):
        places, tail = _sum_tail(law, blocks, float(error))
        probability[index] = np.interp(blocks * error, places, tail)
    return probability


def scale(law: MedianLaw, blocks: int, delta: float) -> float:
    """Return the standard deviation of the normal law with the same error quantile at level δ.

    z_δ / Φ⁻¹(1 − δ/2), where P(|mean of the block medians| > z_δ) = δ

    >>> from tailproof.noise import Cauchy, Normal
    >>> round(scale(NoiseMedian(Normal(2), 1), 4, 0.01), 3)
    1.0
    >>> round(scale(NoiseMedian(Cauchy(), 15), 1, 0.01), 3)
    0.517

    Source: the definition. Differences: for normal noise this is its standard deviation, while the
    sub-Gaussian bound 2 exp(−z²/2R²) would give an R that is a fifth smaller at δ = 0.01. The mean
    of more than 1 000 block medians with finite variance is taken as normal.
    """
    number("delta", delta, above=0, below=1)
    if whole("blocks", blocks) > 1000 and law.variance < math.inf:
        return math.sqrt(law.variance / blocks)
    error = math.exp(_log_level(law.exceedance, delta)) / math.sqrt(blocks)
    if blocks > 1:
        for _ in range(6):  # the table is finest near the error it is built for
            places, tail = _sum_tail(law, blocks, error)
            last, error = error, float(np.interp(-delta, -tail, places)) / blocks
            if 0.8 < error / last < 1.25:
                break
    return error / float(ndtri(1 - delta / 2))


def median_scale(noise: Noise, *, block: int, failure: float) -> float:
    """Return the sub-Gaussian scale of block medians, rare large ones excluded.

    σ² = sup_h 2 ln E[cosh(hM) | |M| ≤ q]/h²,  P(|M| > q) = failure,  M the median of the block

    This is exact: given |M| ≤ q, E exp(hM) ≤ exp(σ²h²/2) for every h. Without the condition no σ
    exists, since M has a power tail of index α(block + 1)/2.

    Parameters
    ----------
    noise : Noise
    block : int
        The block length, odd.
    failure : float
        P(|M| > q), the probability that a median is excluded.

    Examples
    --------
    >>> from tailproof.noise import Cauchy
    >>> round(41 * median_scale(Cauchy(), block=41, failure=1e-5) ** 2, 2)
    3.56

    Source: our own; the law of M is the law of `tailproof.noise.Noise.sample_median`.
    Differences: none.
    """
    _check_law(noise)
    require(whole("block", block) % 2 == 1, "block", "odd", block)
    number("failure", failure, above=0, below=1)
    half = (block + 1) / 2
    s = np.linspace(0, -logit(betaincinv(half, half, failure / 2)), 2001)
    log_mass = half * (log_expit(s) + log_expit(-s))  # the density of the logit of Beta
    log_mass[[0, -1]] -= np.log(2)  # the ends of the trapezoidal rule
    log_mass -= logsumexp(log_mass)
    size = noise.ppf(expit(s))
    h = np.geomspace(1e-2, 1e3, 300)[:, None] / size[-1]
    log_cosh = np.logaddexp(h * size, -h * size) - np.log(2)
    return float(np.sqrt((2 * logsumexp(log_mass + log_cosh, axis=1) / h[:, 0] ** 2).max()))


def _check_law(noise: Noise) -> None:
    ok = noise.symmetric and noise.continuous
    require(ok, "noise", "a symmetric law with a density", noise)


def _sum_tail(law: MedianLaw, blocks: int, error: float) -> tuple[Array, Array]:
    """Return points x and P(|sum of the block medians| > x), finest near x = blocks · error."""
    from scipy.fft import irfft, rfft

    typical = math.exp(_log_level(law.exceedance, 0.5)) * math.sqrt(blocks)
    reach = max(32 * blocks * error, 40 * typical)
    count = (3**10 - 1) // 2  # 3¹⁰ cells: odd, and fast to transform
    width = reach / (count + 0.5)
    cells = law.cells(width, count)
    sums = np.maximum(irfft(rfft(np.roll(cells, -count)) ** blocks, len(cells)), 0)
    folded = sums[1 : count + 1] + sums[: -count - 1 : -1]  # |sum| = 1, 2, … widths
    jump = 1 - float(min(cells.sum(), 1.0)) ** blocks
    tail = jump + np.concatenate([np.cumsum(folded[::-1])[::-1], [0.0]])
    places = width * (np.arange(count + 1) + 0.5)
    return np.concatenate([[0.0], places]), np.concatenate([[1.0], tail])
