"""Intervals for one arm and evidence between two, at any sample size and however skewed.

"One look": the sample size was fixed before the rewards were seen. "Any look": you may read the
interval after every reward, and a policy may have chosen when to play the arm; with the stated
probability the interval is right at all those times at once. All of this is proved, except for
`mean_interval`, which is proved in a special case and measured otherwise.

A mean needs bounds: without them no interval holds for all laws (Bahadur and Savage 1956), so none
is offered; `share_of_largest` says how much a mean depends on its largest rewards.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr, ndtri, ndtri_exp

from tailproof.checks import array, number, require, whole
from tailproof.stats.betting import largest_bet, log_capital, log_capital_needed
from tailproof.stats.order_statistics import log_mixture, rank
from tailproof.typing import Array, Index

__all__ = [
    "BoundedSample",
    "Largest",
    "evidence_needed",
    "mean_difference",
    "mean_evidence",
    "mean_interval",
    "mean_sequence",
    "quantile_difference",
    "quantile_evidence",
    "quantile_interval",
    "quantile_sequence",
    "share_of_largest",
]

_KNOTS = 300
"""The most distinct values of a sample, about; see `BoundedSample.of`."""
_PATH = np.split(0.1 * (np.arange(64) + 0.5), [28])
"""Steps along the path of an integral; the later part is needed only if rewards are few."""
_BETS = 2.0 ** np.arange(-11, 9)
"""In units of 1/(high − low); the peak at the best bet, about 3.5/(σ√n), spans two bets."""
_TOLERANCE = 0.01
"""Evidence, a logarithm, is understated by up to this share of it, or by this much if below 1."""


def _weights() -> tuple[Array, Array]:
    """Return the weights of bets on one arm, and on two arms at once.

    Both fall like 1/x² in the logarithm of the bet, and of the ratio of two bets: unusual bets cost
    evidence, but little. Arms with equally many rewards want similar bets, so these weigh most.
    """
    octaves = np.log2(_BETS)
    single = 1 / (1 + ((octaves + 2) / 4) ** 2)
    two = np.sqrt(np.outer(single, single)) / (1 + np.subtract.outer(octaves, octaves) ** 2)
    return single / single.sum(), two / two.sum()


_ONE, _TWO = _weights()


@dataclass(frozen=True, eq=False)
class BoundedSample:
    """Rewards cut to [low, high]: the distinct values, and how often each occurred.

    Parameters
    ----------
    values : Array
        Ascending, as fractions of the way from `low` to `high`.
    counts : Array
        How often each value occurred; not whole if there were too many values, see `of`.
    low, high : float

    Examples
    --------
    >>> sample = BoundedSample.of([0, 0, 0, 30, 500], low=0, high=100)
    >>> sample.values.tolist(), sample.counts.tolist(), sample.mean
    ([0.0, 0.3, 1.0], [3.0, 1.0, 1.0], 26.0)

    """

    values: Array
    counts: Array
    low: float
    high: float

    @classmethod
    def of(
        cls, sample: ArrayLike, *, low: float, high: float, counts: ArrayLike | None = None
    ) -> "BoundedSample":
        """Return the sample cut to [low, high]; `counts` says how often each reward occurred.

        More than 300 distinct values are replaced by about 300 knots: a value between two knots
        counts for both, in parts that keep its mean. The logarithm of a bet's gain is concave in
        the reward, so this only lowers the capital, and any-look statements still hold. In
        `mean_interval` it spreads the law of Σ D_i x_i around the same mean. Intervals get about
        10⁻⁴ wider.
        """
        x, often = _counted(sample, counts)
        low, high = number("low", low), number("high", high)
        width = number("high - low", high - low, above=0)
        fractions = np.minimum((np.clip(x, low, high) - low) / width, 1)
        values, where = np.unique(fractions, return_inverse=True)
        total = np.bincount(where, often, len(values)).astype(np.float64)
        return cls(*_thinned(values[total > 0], total[total > 0]), low, high)

    @property
    def n(self) -> float:
        """How many rewards there are."""
        return float(self.counts.sum())

    @property
    def mean(self) -> float:
        """The mean of the cut rewards; NaN if there are none."""
        return self._to_units(self._mean) if self.n else math.nan

    @cached_property
    def mirrored(self) -> "BoundedSample":
        """The sample of −x: an upper end is the lower end of this."""
        return BoundedSample(1 - self.values[::-1], self.counts[::-1], -self.high, -self.low)

    @property
    def _mean(self) -> float:
        return min(float(self.values @ self.counts) / self.n, 1.0) if self.n else 0.5

    @property
    def _variance(self) -> float:
        """The variance of the mean."""
        return float(self.counts @ (self.values - self._mean) ** 2) / max(self.n, 1.0) ** 2

    def _to_units(self, fraction: float) -> float:
        return self.low + (self.high - self.low) * min(max(fraction, 0.0), 1.0)


def _counted(sample: ArrayLike, counts: ArrayLike | None) -> tuple[Array, Array]:
    """Return rewards and how often each occurred, both checked."""
    x = _numbers("sample", sample)
    often: Array = np.ones(len(x)) if counts is None else array("counts", counts).ravel()
    ok = len(often) == len(x) and bool(np.all((often >= 0) & (often < math.inf)))
    ok = ok and bool(np.all(often == np.floor(often)))
    require(ok, "counts", f"{len(x)} whole numbers of at least 0", counts)
    return x, often


def _thinned(values: Array, counts: Array) -> tuple[Array, Array]:
    """Split more than `_KNOTS` values between knots: frequent values, any values, even steps."""
    if len(values) <= _KNOTS:
        return values, counts
    last, third = len(values) - 1, _KNOTS // 3
    frequent = np.searchsorted(np.cumsum(counts), np.linspace(0, counts.sum(), third))
    others = np.linspace(0, last, third).astype(np.int64)
    picked = values[np.minimum(np.append(frequent, others), last)]
    knots = np.union1d(picked, np.linspace(values[0], values[-1], third))
    left = np.minimum(np.searchsorted(knots, values, side="right") - 1, len(knots) - 2)
    right_part = counts * (values - knots[left]) / (knots[left + 1] - knots[left])
    ends, parts = np.append(left, left + 1), np.append(counts - right_part, right_part)
    return knots, np.bincount(ends, parts, len(knots)).astype(np.float64)


def mean_interval(sample: BoundedSample, level: float = 0.95) -> tuple[float, float]:
    """Return an interval for the mean of bounded rewards, for one look.

    Its upper end is the quantile of Σ D_i x_i at (1 + level)/2, with x₀ = high beside the sample
    and D uniform on the simplex (Dirichlet(1, …, 1)); its lower end likewise, with x₀ = low. For
    rewards of two values, low and high, it is the interval of Clopper and Pearson.

    Coverage is proved if rewards have only two values, at any n. For other laws it is a conjecture
    without a known counterexample; `make bench-statements` measures it. `mean_sequence` is proved
    for all laws within the bounds.

    >>> clicks = BoundedSample.of([0] * 18 + [1] * 2, low=0, high=1)
    >>> [round(end, 4) for end in mean_interval(clicks)]
    [0.0123, 0.317]

    Source: Gaffke 2005; the conjecture: Learned-Miller and Thomas 2020; a proof for similar
    intervals: Phan, Thomas and Learned-Miller 2021; the weights: Rubin 1981. Differences: the law
    of Σ D_i x_i is computed, not simulated.
    """
    tail = (1 - number("level", level, at_least=0.5, below=1)) / 2
    return _gaffke(sample, tail), -_gaffke(sample.mirrored, tail)


def _gaffke(sample: BoundedSample, tail: float) -> float:
    """Return the lower end: the m that Σ D_i x_i is below with probability `tail`."""
    x, counts = np.append(sample.values, 0.0), np.append(sample.counts, 1.0)
    middle = float(x @ counts / counts.sum())
    if middle < 1e-100:  # squares would underflow
        return sample.low
    # The law is log-concave: beyond its mean the tail is at least 1/e (Grünbaum 1960), and beyond t
    # standard deviations it is at most e^(1 − t).
    deviation = math.sqrt(float(counts @ (x - middle) ** 2)) / counts.sum()
    reach = min(2 * (1 - math.log(tail)) * deviation, middle * (1 - 1e-9))

    def missing(m: float) -> float:  # nearly linear, as the law is nearly normal
        return float(ndtri_exp(_log_tail(m - x, counts)) - ndtri(tail))

    return sample._to_units(_root(missing, middle - reach, middle, 1e-9 * reach))


def _root(function: Callable[[float], float], low: float, high: float, step: float) -> float:
    from scipy.optimize import brentq

    return float(brentq(function, low, high, xtol=step))


def _log_tail(gap: Array, counts: Array) -> float:
    """Return ln P(Σ E_i gap_i ≥ 0) for exponential E_i, which is ln P(Σ D_i gap_i ≥ 0).

    P = (1/2πi) ∫ e^K(s) ds/s,  K(s) = −Σ ln(1 − s gap_i)

    The path starts at the saddle point of K and bends like the steepest path there, so the
    trapezoidal rule converges geometrically: with 64 points the relative error is about 10⁻⁷ at
    n = 1 and 10⁻⁹ for larger n.
    """
    ends = 1 / gap.min(), 1 / gap.max()
    inset = 1e-13 * (ends[1] - ends[0])
    bracket = ends[0] + inset, ends[1] - inset
    saddle = _root(lambda s: float(counts @ (gap / (1 - s * gap))), *bracket, inset)
    slopes = gap / (1 - saddle * gap)
    second, third = counts @ slopes**2, 2 * counts @ slopes**3
    scale = 1 / math.sqrt(second)
    bend = third / (3 * second) * scale
    start = max(saddle, scale / 2)  # away from the pole at 0
    total = 0.0
    for u in _PATH:
        path = start + scale * (1j * np.sinh(u) + bend * (np.cosh(u) - 1))
        speed = scale * (1j * np.cosh(u) + bend * np.sinh(u))
        cumulant = -(np.log(1 - np.multiply.outer(path, gap)) * counts).sum(-1)
        integrand = (np.exp(cumulant) * speed / path).imag
        total += float(integrand.sum())
        if abs(integrand[-1]) < 1e-12 * total:
            break
    return math.log(max(0.1 / math.pi * total, 1e-300))


def mean_sequence(sample: BoundedSample, level: float = 0.95) -> tuple[float, float]:
    """Return an interval for the mean of bounded rewards, for any look.

    All m with C(x, m) and C(−x, −m) below 2/(1 − level), for the capital

    C(x, m) = Σ_j w_j Π_i (1 + λ_j (x_i − m)),  λ_j = min(2^j/(high − low), 0.99/(m − low))

    of a bettor on means above m. If the mean is at most m, C is a supermartingale that starts at 1
    and is never negative, so it ever reaches 2/(1 − level) with a probability of at most
    (1 − level)/2 (Ville 1939). This proves it for all laws within the bounds, all sample sizes and
    all ways to choose when to play the arm.

    >>> clicks = BoundedSample.of([0] * 18 + [1] * 2, low=0, high=1)
    >>> [round(end, 4) for end in mean_sequence(clicks)]
    [0.0016, 0.4973]

    Source: Waudby-Smith and Ramdas 2024, hedged capital. Differences: a mixture of constant bets
    in place of bets that follow the rewards, so the order of the rewards does not matter.
    """
    asked = log_capital_needed(level)
    return _betting(sample, asked), -_betting(sample.mirrored, asked)


def _betting(sample: BoundedSample, asked: float) -> float:
    """Return the lower end: the least m whose log capital is below `asked`."""

    def missing(m: float) -> float:
        return asked - log_capital(_log_capitals(sample, m), np.log(_ONE))

    if missing(0.0) >= 0:
        return sample.low
    return sample._to_units(_root(missing, 0.0, sample._mean, 1e-13) - 1e-13)


def _log_capitals(sample: BoundedSample, m: ArrayLike) -> Array:
    """Return ln Π (1 + λ_j (x_i − m)) of shape m.shape + (bets,); each falls as m grows."""
    at = np.asarray(m)[..., None]
    bets = np.minimum(_BETS, largest_bet(at))
    logs = np.empty(bets.shape)
    for j in np.ndindex(at.shape[:-2]):  # one row of points at a time stays in the cache
        gains = 1 + bets[j][..., None] * (sample.values - at[j][..., None])
        logs[j] = np.log(gains) @ sample.counts
    return logs


def mean_evidence(a: BoundedSample, b: BoundedSample, difference: float = 0.0) -> float:
    """Return the logarithm of the evidence that mean(a) − mean(b) exceeds a difference.

    E = inf_m Σ_jk w_jk Π_i (1 + λ_j (a_i − m − difference)) Π_i (1 − λ_k (b_i − m))

    If the mean of a is at most the mean of b plus the difference, then some m lies between: at that
    m the sum is a supermartingale that starts at 1, and E is no larger. So E ever reaches e^f with
    a probability of at most e^−f, for all laws within the bounds, all sample sizes and all ways to
    choose the arms. `evidence_needed` says how much is enough.

    >>> control = BoundedSample.of([0], counts=[1000], low=0, high=1)
    >>> better = BoundedSample.of([0, 1], counts=[980, 20], low=0, high=1)
    >>> round(mean_evidence(better, control), 2), round(mean_evidence(control, better), 2)
    (11.18, -1.59)

    Source: Waudby-Smith and Ramdas 2024 for the capital; the infimum is our own, after the
    universal inference of Wasserman, Ramdas and Balakrishnan 2020. Differences: none.
    """
    _alike(a, b)
    shift = number("difference", difference) / (a.high - a.low)
    if shift < -1:
        return math.inf
    other = b.mirrored

    def halves(m: Array) -> tuple[Array, Array]:
        return _log_capitals(a, np.minimum(m + shift, 1)), _log_capitals(other, 1 - m)

    return _least(halves, _joined, max(0.0, -shift), 1.0)


def _alike(a: BoundedSample, b: BoundedSample) -> None:
    same = (a.low, a.high) == (b.low, b.high)
    require(same, "b", f"cut to [{a.low:g}, {a.high:g}] like a", (b.low, b.high))


def _joined(first: Array, second: Array) -> Array:
    """Return the logarithm of the mixture over pairs of bets, one on each arm."""
    tops = first.max(-1, keepdims=True), second.max(-1, keepdims=True)
    pairs = (np.exp(first - tops[0]) @ _TWO) * np.exp(second - tops[1])
    joined: Array = np.log(pairs.sum(-1)) + tops[0][..., 0] + tops[1][..., 0]
    return joined


def _least(
    halves: Callable[[Array], tuple[Array, Array]],
    join: Callable[[Array, Array], Array],
    low: float,
    high: float,
    finest: float = 1e-15,
) -> float:
    """Return a lower bound, close to the minimum, on a function between two points.

    The function joins a falling half with a growing half, so within a cell it is at least the
    falling half at the right end joined with the growing half at the left end. Cells that may hold
    a lower value are split in eight, unless they are no wider than `finest`.
    """
    left, right, best = np.array([low]), np.array([high]), math.inf
    while len(left):
        grid = np.linspace(left, right, 9, axis=-1)
        falls, grows = halves(grid)
        best = min(best, float(join(falls, grows).min()))
        bound = best - _TOLERANCE * max(1.0, abs(best))
        lower = (join(falls[:, 1:], grows[:, :-1]) < bound) & (np.diff(grid) > finest)
        left, right = grid[:, :-1][lower], grid[:, 1:][lower]
    return bound


def mean_difference(a: BoundedSample, b: BoundedSample, level: float = 0.95) -> tuple[float, float]:
    """Return an interval for mean(a) − mean(b), for any look.

    All differences d with `mean_evidence(a, b, d)` and `mean_evidence(b, a, -d)` below
    ln(2/(1 − level)); proved like the evidence.

    >>> control = BoundedSample.of([0, 1], counts=[950, 50], low=0, high=1)
    >>> better = BoundedSample.of([0, 1], counts=[900, 100], low=0, high=1)
    >>> [round(end, 3) for end in mean_difference(better, control)]
    [0.008, 0.093]

    Source: as for `mean_evidence`. Differences: none.
    """
    _alike(a, b)
    asked = log_capital_needed(level)
    return _lowest_mean_difference(a, b, asked), -_lowest_mean_difference(b, a, asked)


def _lowest_mean_difference(a: BoundedSample, b: BoundedSample, asked: float) -> float:
    """Return the least difference whose evidence is below `asked`."""
    width, observed = a.high - a.low, a._mean - b._mean
    deviation = math.sqrt(a._variance + b._variance) + 1 / (1 + min(a.n, b.n))

    def missing(difference: float) -> float:
        return asked - mean_evidence(a, b, width * difference)

    reach, least = 5 * deviation, observed
    while least > -1:
        least, reach = max(observed - reach, -1.0), 2 * reach
        if missing(least) < 0:
            break
    else:
        return -width
    step = 5e-3 * deviation  # as fine as the evidence is
    return width * max(_root(missing, least, observed, step) - step, -1.0)


def evidence_needed(arms: int, level: float = 0.95) -> float:
    """Return the evidence over every other arm that makes a leader of K arms sure.

    ln(K/(1 − level))

    A is called sure when its evidence over each other arm reaches this, which is wrong if another
    arm is as good or better. Let * be a best arm, and B another best arm if there is a tie. A wrong
    claim for an arm other than * needs evidence over *; a wrong claim for * needs evidence over B.
    These are at most K events, each with a probability of at most (1 − level)/K over all looks.

    >>> round(evidence_needed(2), 3), round(evidence_needed(5), 3)
    (3.689, 4.605)

    Source: our own; the union bound. Differences: K in place of all K(K − 1) pairs.
    """
    number("level", level, above=0, below=1)
    return math.log(whole("arms", arms, at_least=2) / (1 - level))


def quantile_interval(
    sample: ArrayLike, quantile: float, level: float = 0.95
) -> tuple[float, float]:
    """Return two of the samples between which the quantile lies, for one look.

    [X_(l), X_(u)], P(Bin(n, q) < l) ≤ (1 − level)/2 and P(Bin(n, q) ≥ u) ≤ (1 − level)/2

    Proved for any law, with or without atoms. With too few samples an end is infinite.

    >>> quantile_interval(np.arange(1.0, 101.0), 0.5, 0.95)
    (40.0, 61.0)

    Source: Thompson 1936. Differences: none.
    """
    x = _ranked("sample", sample)
    n, tail = len(x), (1 - level) / 2
    reach = 20 + 10 * math.sqrt(n * quantile * (1 - quantile))  # negligible beyond
    first, last = max(0, int(n * quantile - reach)), min(n, int(n * quantile + reach))
    below = bdtr(np.arange(first, last + 1, dtype=np.float64), n, quantile)
    low = first + int(np.searchsorted(below, tail, side="right"))
    high = first + int(np.searchsorted(below, 1 - tail)) + 1
    return _nth(x, low), _nth(x, high)


def quantile_sequence(
    sample: ArrayLike, quantile: float, level: float = 0.95
) -> tuple[float, float]:
    """Return two of the samples between which the quantile lies, for any look.

    [X_(n+1−l), X_(u)],  u = min{s : ln M_n(s) ≥ ln(2/(1 − level))} at π = quantile, and l likewise
    at 1 − quantile, M the mixture of `log_mixture`

    Proved for any law, with or without atoms, all sample sizes and all ways to choose when to play
    the arm. With too few samples an end is infinite.

    >>> quantile_sequence(np.arange(1.0, 101.0), 0.5)
    (35.0, 66.0)

    Source: Howard and Ramdas 2022. Differences: the mixture of Robbins 1970 in place of their
    stitched bound.
    """
    number("quantile", quantile, above=0, below=1)
    x = _ranked("sample", sample)
    n, asked = len(x), log_capital_needed(level)
    last, high = int(rank(n, asked, 1 - quantile)), int(rank(n, asked, quantile))
    return _nth(x, n + 1 - last), _nth(x, high)


def quantile_evidence(
    a: ArrayLike,
    b: ArrayLike,
    quantile: float,
    difference: float = 0.0,
    *,
    repeats: tuple[float, float] = (1.0, 1.0),
) -> float:
    """Return the logarithm of the evidence that quantile(a) − quantile(b) exceeds a difference.

    E = inf_q M(n_a, #{a > q + difference}; 1 − π) M(n_b, #{b < q}; π),  M from `log_mixture`

    If the quantile of a is at most the quantile of b plus the difference, then some q lies between,
    and there both factors are supermartingales that start at 1. So E ever reaches e^f with a
    probability of at most e^−f, for all laws, sample sizes and ways to choose the arms. In a
    forecast a number of a stands for `repeats[0]` rewards, and a number of b for `repeats[1]`.

    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.standard_cauchy(1000) + 1, rng.standard_cauchy(1000)
    >>> round(quantile_evidence(a, b, 0.5)), round(quantile_evidence(b, a, 0.5))
    (69, -11)

    Source: our own, after Howard and Ramdas 2022, who compare two arms by their intervals.
    Differences: one infimum in place of two intervals.
    """
    number("quantile", quantile, above=0, below=1)
    x, y = _ranked("a", a), _ranked("b", b)
    if number("difference", difference):  # 0.1 + 0.7 < 0.8 is no evidence
        y = np.nextafter(y + difference, math.inf)
    pooled = np.unique(np.concatenate([[-math.inf], x, y]))  # the infimum is at one of them

    def halves(index: Array) -> tuple[Array, Array]:
        q = pooled[np.minimum(index.astype(np.int64), len(pooled) - 1)]
        above, below = len(x) - np.searchsorted(x, q, side="right"), np.searchsorted(y, q)
        return (
            _log_mixture(repeats[0] * len(x), repeats[0] * above, 1 - quantile),
            _log_mixture(repeats[1] * len(y), repeats[1] * below, quantile),
        )

    size = 8.0 ** math.ceil(math.log(max(len(pooled), 8), 8))  # so cells end at whole numbers
    return _least(halves, np.add, 0.0, size, finest=1.0)


def _log_mixture(n: float, s: ArrayLike, quantile: float) -> Array:
    """Return `log_mixture`, at least −ln(n + 1), its smallest value, where it would underflow."""
    return np.maximum(log_mixture(n, s, quantile), -math.log1p(n))


def quantile_difference(
    a: ArrayLike, b: ArrayLike, quantile: float, level: float = 0.95
) -> tuple[float, float]:
    """Return an interval for quantile(a) − quantile(b), for any look.

    All differences d with `quantile_evidence(a, b, π, d)` and `quantile_evidence(b, a, π, -d)`
    below ln(2/(1 − level)); proved like the evidence. With too few samples an end is infinite.

    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.standard_cauchy(1000) + 1, rng.standard_cauchy(1000)
    >>> [round(end, 2) for end in quantile_difference(a, b, 0.5)]
    [0.71, 1.37]

    Source: as for `quantile_evidence`. Differences: none.
    """
    number("quantile", quantile, above=0, below=1)
    asked = log_capital_needed(level)
    x, y, lowest = _ranked("a", a), _ranked("b", b), _lowest_quantile_difference
    return lowest(x, y, quantile, asked), -lowest(y, x, quantile, asked)


def _lowest_quantile_difference(a: Array, b: Array, quantile: float, asked: float) -> float:
    """Return the least difference whose evidence is below `asked`.

    If k of b lie below q, then q is at most b_(k+1). The remaining evidence allows at most s of a
    above q, and a_(n−s) is the least value with at most s above it.
    """
    n, m = len(a), len(b)
    most_evidence = asked + math.log1p(n) + math.log1p(m) + 5
    above, below = _near(n, 1 - quantile, most_evidence), _near(m, quantile, most_evidence)
    falls = _log_mixture(n, above, 1 - quantile)
    grows = _log_mixture(m, below, quantile)
    grows[0] = -math.log1p(m)  # stands for all smaller counts too
    room = asked - grows
    allowed = room > -math.log1p(n)
    most = above[np.maximum(np.searchsorted(falls, room[allowed]) - 1, 0)]
    least = np.append(-math.inf, a)[n - most]
    largest = np.append(b, math.inf)[below[allowed]]
    with np.errstate(invalid="ignore"):
        ends = least - largest
    return float(np.where(np.isnan(ends), -math.inf, ends).min())


def _near(n: int, quantile: float, evidence: float) -> Index:
    """Return the counts near n × quantile; by Bernstein's bound all others have more evidence."""
    reach = evidence + math.sqrt(2 * evidence * n * quantile * (1 - quantile))
    return np.arange(max(0, int(n * quantile - reach)), min(n, int(n * quantile + reach)) + 1)


def _ranked(name: str, sample: ArrayLike) -> Array:
    return np.sort(_numbers(name, sample))


def _nth(ranked: Array, place: int) -> float:
    """Return the sample of this rank; −∞ below the first and ∞ beyond the last."""
    if 1 <= place <= len(ranked):
        return float(ranked[place - 1])
    return -math.inf if place < 1 else math.inf


def _numbers(name: str, sample: ArrayLike) -> Array:
    x: Array = array(name, sample).ravel()
    require(not np.isnan(x).any(), name, "without NaN", sample)
    return x


class Largest(NamedTuple):
    """How much a mean depends on its largest rewards; see `share_of_largest`."""

    share: float
    mean: float
    one_more: float


def share_of_largest(sample: ArrayLike, count: int = 10) -> Largest:
    """Return how much a mean depends on its largest rewards (Lorenz 1905), for lack of an interval.

    share = Σ |x| over the `count` rewards with the largest |x| / Σ |x|
    one_more = (Σ x + x_max)/(n + 1), the mean if the reward with the largest |x| occurred once more

    >>> share, mean, one_more = share_of_largest([0] * 95 + [10] * 4 + [1000], count=1)
    >>> round(share, 3), round(mean, 2), round(one_more, 2)
    (0.962, 10.4, 20.2)
    """
    x = _ranked("sample", sample)
    require(len(x) > 0 and bool(np.isfinite(x[[0, -1]]).all()), "sample", "finite rewards", sample)
    largest = max(float(x[-1]), float(x[0]), key=abs)
    if largest == 0:
        return Largest(0.0, 0.0, 0.0)
    x /= abs(largest)  # sums of huge rewards would overflow
    sizes, total = np.sort(np.abs(x)), float(x.sum())
    share = float(sizes[-whole("count", count) :].sum() / sizes.sum())
    one_more = (total + math.copysign(1, largest)) / (len(x) + 1)
    return Largest(share, abs(largest) * (total / len(x)), abs(largest) * one_more)
