"""Intervals and evidence that hold as stated: at any sample size, for any skew, at any look.

"One look" means that the sample size was fixed before the rewards were seen. "Any look" means
that the interval may be read after every reward, and that a policy may have chosen when the arm
was played: with the stated probability it was right at all those times.

`BoundedSample` holds rewards with bounds, for means. `BinnedSample` keeps any number of rewards in
bounded memory, for a page that is read while they come.

A mean needs bounds: without them no interval holds for all laws (Bahadur and Savage 1956), and
none is offered here; `share_of_largest` says what a mean rests on instead.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, ndtri_exp

from tailproof.checks import array, number, require, whole
from tailproof.stats.order_statistics import log_mixture, rank
from tailproof.typing import Array, Index

__all__ = [
    "BinnedSample",
    "BoundedSample",
    "Largest",
    "evidence_needed",
    "mean_difference",
    "mean_evidence",
    "mean_interval",
    "mean_sequence",
    "quantile_difference",
    "quantile_evidence",
    "quantile_sequence",
    "share_of_largest",
]

_DIGITS = 52
"""Binary digits of a number, after its first."""
_KNOTS = 300
"""More distinct values are split between so many."""
_PATH = np.split(0.1 * (np.arange(64) + 0.5), [28])
"""Steps along the path of an integral; the later ones matter for few rewards only."""
_BETS = 2.0 ** np.arange(-11, 9)
"""In units of 1/(high − low); the best bet is about 3.5/(σ√n), and neighbours share their peak."""
_ALL_IN = 0.99
"""The largest share of the capital that one reward can lose."""
_TOLERANCE = 0.01
"""Evidence, a logarithm, is reported smaller than it is by up to this share, or this much."""


def _weights() -> tuple[Array, Array]:
    """Return the weights of bets on one arm, and on two arms at once.

    Both fall like 1/x² along the logarithm of the bet, and of the ratio of two bets: the price is
    least for usual sizes and grows with their logarithm only. Two arms of similar size want
    similar bets, so that they pay once for the choice.
    """
    octaves = np.log2(_BETS)
    one = 1 / (1 + ((octaves + 2) / 4) ** 2)
    two = np.sqrt(np.outer(one, one)) / (1 + np.subtract.outer(octaves, octaves) ** 2)
    return one / one.sum(), two / two.sum()


_ONE, _TWO = _weights()


@dataclass(frozen=True, eq=False)
class BoundedSample:
    """Rewards cut to [low, high], as distinct values and how often each of them came.

    Parameters
    ----------
    values : Array
        Ascending, as fractions of the way from `low` to `high`.
    counts : Array
        Of each value; not whole where many values were split between few.
    low, high : float
    upper : BoundedSample, optional
        What upper ends are computed from, as a sample of −x, where that is not the mirror image.

    Examples
    --------
    >>> sample = BoundedSample.of([0, 0, 0, 30, 500], low=0, high=100)
    >>> sample.values.tolist(), sample.counts.tolist(), sample.mean
    ([0.0, 0.3, 1.0], [3.0, 1.0, 1.0], 26.0)

    Source: our own. Differences: none.
    """

    values: Array
    counts: Array
    low: float
    high: float
    upper: "BoundedSample | None" = None

    @classmethod
    def of(
        cls, sample: ArrayLike, *, low: float, high: float, counts: ArrayLike | None = None
    ) -> "BoundedSample":
        """Return the sample cut to [low, high]; `counts` says how often each of it came.

        More than 300 distinct values are split between at most 300 of them and of even steps: a
        value between two of those counts for both, in parts that keep its mean. The logarithm of a
        bet is concave in the reward, so that this only lowers the capital, and what is said still
        holds; in `mean_interval` it spreads the law of Σ D_i x_i around the same mean. Intervals
        get about 10⁻⁴ wider.
        """
        return cls._cut(*_counted(sample, counts), low, high)

    @classmethod
    def _cut(cls, x: Array, counts: Array, low: float, high: float) -> "BoundedSample":
        low, high = number("low", low), number("high", high)
        width = number("high - low", high - low, above=0)
        fractions = np.minimum((np.clip(x, low, high) - low) / width, 1)
        values, where = np.unique(fractions, return_inverse=True)
        total = np.bincount(where, counts, len(values)).astype(np.float64)
        return cls(*_thinned(values[total > 0], total[total > 0]), low, high)

    @property
    def n(self) -> float:
        """How many rewards there are."""
        return float(self.counts.sum())

    @property
    def mean(self) -> float:
        """The mean of the rewards cut to the range; NaN of none."""
        upper = 1 - self.upper._mean if self.upper else self._mean
        return self._to_units((self._mean + upper) / 2) if self.n else math.nan

    @cached_property
    def mirrored(self) -> "BoundedSample":
        """The sample of −x: an upper end is the lower end of this."""
        values, counts = 1 - self.values[::-1], self.counts[::-1]
        return self.upper or BoundedSample(values, counts, -self.high, -self.low)

    @property
    def _mean(self) -> float:
        return min(float(self.values @ self.counts) / self.n, 1.0) if self.n else 0.5

    @property
    def _variance(self) -> float:
        """Of the mean."""
        return float(self.counts @ (self.values - self._mean) ** 2) / max(self.n, 1.0) ** 2

    def _to_units(self, fraction: float) -> float:
        return self.low + (self.high - self.low) * min(max(fraction, 0.0), 1.0)


def _counted(sample: ArrayLike, counts: ArrayLike | None) -> tuple[Array, Array]:
    """Return rewards and how often each came, both checked."""
    x = _numbers("sample", sample)
    often: Array = np.ones(len(x)) if counts is None else array("counts", counts).ravel()
    ok = len(often) == len(x) and bool(np.all((often >= 0) & (often < math.inf)))
    ok = ok and bool(np.all(often == np.floor(often)))
    require(ok, "counts", f"{len(x)} whole numbers of at least 0", counts)
    return x, often


def _thinned(values: Array, counts: Array) -> tuple[Array, Array]:
    """Split more than `_KNOTS` values, each between two of fewer: frequent ones, others, steps."""
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


@dataclass(frozen=True, eq=False)
class BinnedSample:
    """Rewards in bounded memory: those within 3 % of each other share a bin.

    However many rewards there are, those from 0.01 to 10⁶ take at most 900 bins. A statement from
    bins is a little weaker than one from the rewards, and holds as that does: a quantile is
    rounded outwards, to the least or the largest reward of its bin; for a mean the rewards of a bin
    are split between these two, in parts that keep their mean. A bin of one value loses nothing.
    Merge what is new into what is kept, and read the result as often as you like.

    Parameters
    ----------
    least, most, means : Array
        The least, the largest and the mean of the rewards in each bin, ascending.
    counts : Array
        How many rewards each bin has.

    Examples
    --------
    >>> day = BinnedSample.of([0, 0, 0, 99.5, 100, 20])
    >>> both = day.merged(BinnedSample.of([0, 101, -5]))
    >>> both.least.tolist(), both.counts.tolist()
    ([-5.0, 0.0, 20.0, 99.5, 100.0], [1.0, 4.0, 1.0, 1.0, 2.0])
    >>> quantile_sequence(both, 0.5, level=0.5)
    (0.0, 101.0)
    >>> round(both.bounded(0, 50).mean, 2)
    18.89

    Source: our own; the bins are those of HdrHistogram (Tene 2012). Differences: each bin keeps
    its least and largest value and its mean.
    """

    least: Array
    most: Array
    means: Array
    counts: Array

    @classmethod
    def of(cls, sample: ArrayLike, counts: ArrayLike | None = None) -> "BinnedSample":
        """Return the sample in bins; `counts` says how often each of it came."""
        x, often = _counted(sample, counts)
        x, often = x[often > 0] + 0.0, often[often > 0]  # −0 becomes 0
        return cls._gathered(x, x, x, often)

    def merged(self, other: "BinnedSample") -> "BinnedSample":
        """Return the rewards of both."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return self._gathered(*(np.append(*pair) for pair in pairs))

    @classmethod
    def _gathered(cls, least: Array, most: Array, means: Array, counts: Array) -> "BinnedSample":
        order = np.lexsort([most, least])
        least, most, means, counts = (part[order] for part in (least, most, means, counts))
        # The exponent and the first five binary digits of a number.
        size = np.abs(least).view(np.int64) >> (_DIGITS - 5)
        first = np.unique(np.where(least < 0, ~size, size), return_index=True)[1]
        if not len(first):
            return cls(least, most, means, counts)
        low, total = least[first], np.add.reduceat(counts, first)
        high = np.maximum.reduceat(most, first)
        # Parts of the way keep infinite and huge rewards from spoiling a sum.
        with np.errstate(invalid="ignore"):
            beyond = counts * (means - np.repeat(low, np.diff(first, append=len(least))))
            found = np.clip(low + np.add.reduceat(beyond, first) / total, low, high)
        return cls(low, high, np.where(low == high, low, found), total)

    @property
    def n(self) -> float:
        """How many rewards there are."""
        return float(self.counts.sum())

    def bounded(self, low: float, high: float) -> BoundedSample:
        """Return the rewards cut to [low, high]; the bounds need not be ends of bins."""
        least, most, means = -self.most[::-1], -self.least[::-1], -self.means[::-1]
        negated = BinnedSample(least, most, means, self.counts[::-1])
        return replace(self._cut(low, high), upper=negated._cut(-high, -low))

    def _cut(self, low: float, high: float) -> BoundedSample:
        """Return a sample whose lower ends hold.

        Cut at `high`, the logarithm of a bet is still concave in the reward, so that a split only
        lowers the capital. Cut at `low` it is not: of such a bin all rewards are taken as `low`.
        """
        split = (self.least != self.most) & (self.least >= low)
        with np.errstate(invalid="ignore"):
            part = np.where(split, (self.means - self.least) / (self.most - self.least), 0.0)
        ends = np.append(self.least, self.most)
        parts = np.append(self.counts * (1 - part), self.counts * part)
        return BoundedSample._cut(ends, parts, low, high)


def mean_interval(sample: BoundedSample, level: float = 0.95) -> tuple[float, float]:
    """Return an interval for the mean of bounded rewards, for one look.

    Its upper end is the quantile of Σ D_i x_i at (1 + level)/2, with x₀ = high beside the sample
    and D uniform on the simplex (Dirichlet(1, …, 1)); its lower end likewise, with x₀ = low. For
    rewards of two values, low and high, it is the interval of Clopper and Pearson.

    What is proved: coverage for two values, at any n. For other laws it is a conjecture without a
    known counterexample; `make bench-statements` measures it. `mean_sequence` is proved for all.

    >>> clicks = BoundedSample.of([0] * 18 + [1] * 2, low=0, high=1)
    >>> [round(end, 4) for end in mean_interval(clicks)]
    [0.0123, 0.317]

    Source: Gaffke 2005; the conjecture by Learned-Miller and Thomas 2020, a proof for close
    relatives by Phan, Thomas and Learned-Miller 2021; Rubin 1981 for the weights. Differences: the
    law of Σ D_i x_i is computed, not simulated.
    """
    tail = (1 - number("level", level, at_least=0.5, below=1)) / 2
    return _gaffke(sample, tail), -_gaffke(sample.mirrored, tail)


def _gaffke(sample: BoundedSample, tail: float) -> float:
    """Return the lower end: the m that Σ D_i x_i is below with probability `tail`."""
    x, counts = np.append(sample.values, 0.0), np.append(sample.counts, 1.0)
    middle = float(x @ counts / counts.sum())
    if middle < 1e-100:  # squares would underflow
        return sample.low
    # The law is log-concave: at its mean the tail is at least 1/e (Grünbaum 1960), and t standard
    # deviations beyond it is at most e^(1 − t).
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

    The path starts at the saddle point of K and bends as the steepest one does there, so that the
    trapezoidal rule converges geometrically: 64 points leave about 10⁻⁷ of P at n = 1, 10⁻⁹ later.
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

    of a bettor on means above m. While the mean is at most m, C is a supermartingale that starts
    at 1 and never falls below 0, so that it ever reaches 2/(1 − level) with a probability of at
    most (1 − level)/2 (Ville 1939): proved for all laws within the bounds, all sizes, all ways to
    choose when to play the arm. The weights w are fixed, so the order of the rewards does not
    matter.

    >>> clicks = BoundedSample.of([0] * 18 + [1] * 2, low=0, high=1)
    >>> [round(end, 4) for end in mean_sequence(clicks)]
    [0.0016, 0.4973]

    Source: Waudby-Smith and Ramdas 2024, hedged capital. Differences: a mixture of constant bets
    in place of bets that follow the rewards, so that order does not matter.
    """
    asked = math.log(2 / (1 - number("level", level, above=0, below=1)))
    return _betting(sample, asked), -_betting(sample.mirrored, asked)


def _betting(sample: BoundedSample, asked: float) -> float:
    """Return the lower end: the least m whose capital is below what is asked."""

    def missing(m: float) -> float:
        return asked - float(np.logaddexp.reduce(_log_capitals(sample, m) + np.log(_ONE)))

    if missing(0.0) >= 0:
        return sample.low
    return sample._to_units(_root(missing, 0.0, sample._mean, 1e-13) - 1e-13)


def _log_capitals(sample: BoundedSample, m: ArrayLike) -> Array:
    """Return ln Π (1 + λ_j (x_i − m)) for each m and bet: m.shape + (bets,); each falls with m."""
    at = np.asarray(m)[..., None]
    bets = np.minimum(_BETS, _ALL_IN / np.maximum(at, 1e-300))
    found = np.empty(bets.shape)
    for j in np.ndindex(at.shape[:-2]):  # one row of points at a time stays in the cache
        gains = 1 + bets[j][..., None] * (sample.values - at[j][..., None])
        found[j] = np.log(gains) @ sample.counts
    return found


def mean_evidence(a: BoundedSample, b: BoundedSample, difference: float = 0.0) -> float:
    """Return the logarithm of the evidence that the mean of a exceeds that of b by a difference.

    E = inf_m Σ_jk w_jk Π_i (1 + λ_j (a_i − m − difference)) Π_i (1 − λ_k (b_i − m))

    If the mean of a is at most that of b plus the difference, then some m lies between: at that m
    the sum is a supermartingale that starts at 1, and E is no larger. So E ever reaches e^f with a
    probability of at most e^−f, for all laws within the bounds, any sizes and any way to choose
    the arms. The weights favour bets of similar size on both arms. See `evidence_needed`.

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
    found: Array = np.log(pairs.sum(-1)) + tops[0][..., 0] + tops[1][..., 0]
    return found


def _least(
    halves: Callable[[Array], tuple[Array, Array]],
    join: Callable[[Array, Array], Array],
    low: float,
    high: float,
    finest: float = 1e-15,
) -> float:
    """Return a lower bound on the least value between two points, close to it.

    The value joins a half that falls with one that grows, so that in a cell it is at least what
    the first is at the right and the second at the left. Cells that may hold a lower value are
    split in eight, unless they are no wider than `finest`.
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
    """Return an interval for the mean of a minus that of b, for any look.

    All differences d with `mean_evidence(a, b, d)` and `mean_evidence(b, a, -d)` below
    ln(2/(1 − level)): proved as that is.

    >>> control = BoundedSample.of([0, 1], counts=[950, 50], low=0, high=1)
    >>> better = BoundedSample.of([0, 1], counts=[900, 100], low=0, high=1)
    >>> [round(end, 3) for end in mean_difference(better, control)]
    [0.008, 0.093]

    Source: as for `mean_evidence`. Differences: none.
    """
    _alike(a, b)
    asked = math.log(2 / (1 - number("level", level, above=0, below=1)))
    return _lowest_mean_difference(a, b, asked), -_lowest_mean_difference(b, a, asked)


def _lowest_mean_difference(a: BoundedSample, b: BoundedSample, asked: float) -> float:
    """Return the least difference whose evidence is below what is asked."""
    width, found = a.high - a.low, a._mean - b._mean
    deviation = math.sqrt(a._variance + b._variance) + 1 / (1 + min(a.n, b.n))

    def missing(difference: float) -> float:
        return asked - mean_evidence(a, b, width * difference)

    reach, least = 5 * deviation, found
    while least > -1:
        least, reach = max(found - reach, -1.0), 2 * reach
        if missing(least) < 0:
            break
    else:
        return -width
    step = 5e-3 * deviation  # as fine as the evidence is
    return width * max(_root(missing, least, found, step) - step, -1.0)


def evidence_needed(arms: int, level: float = 0.95) -> float:
    """Return the evidence of the leader over every rival at which it is surely the best of K arms.

    ln(K/(1 − level))

    "A leads" is said when the evidence of A over each other arm reaches it, and is wrong if some
    other arm is as good as A or better. Fix a best arm *, and a second one, B, if there is a tie.
    A wrong claim about an arm other than * needs its evidence over *; a wrong claim about * needs
    its evidence over B. That makes K events, or K − 1 without a tie, each of a probability of at
    most (1 − level)/K over all looks together.

    >>> round(evidence_needed(2), 3), round(evidence_needed(5), 3)
    (3.689, 4.605)

    Source: our own; the union bound. Differences: K where all pairs would ask for K(K − 1).
    """
    number("level", level, above=0, below=1)
    return math.log(whole("arms", arms, at_least=2) / (1 - level))


class _Ranked(NamedTuple):
    """Values in ascending order, and how many rewards are at most each of them.

    Both begin with −∞, which none is at most, and end with ∞ for one more reward.
    """

    values: Array
    at_most: Index

    @classmethod
    def of(cls, values: Array, at_most: Index) -> "_Ranked":
        n = len(at_most) and at_most[-1]
        ends = [-math.inf], [math.inf]
        ranks = np.concatenate([[0], at_most, [n + 1]])
        return cls(np.concatenate([ends[0], values, ends[1]]), ranks)

    @property
    def n(self) -> int:
        return int(self.at_most[-1]) - 1

    def nth(self, rank: ArrayLike) -> Array:
        """Return the value of each rank, from 0 to n + 1."""
        found: Array = self.values[np.searchsorted(self.at_most, rank)]
        return found

    def below(self, q: Array) -> Index:
        """Return how many are less than each q."""
        return self.at_most[np.searchsorted(self.values[1:-1], q)]

    def above(self, q: Array) -> Index:
        """Return how many are more than each q."""
        return self.n - self.at_most[np.searchsorted(self.values[1:-1], q, side="right")]


def _ranked(name: str, sample: ArrayLike | BinnedSample) -> tuple[_Ranked, _Ranked]:
    """Return the rewards rounded down, and rounded up; both are the same without bins."""
    if isinstance(sample, BinnedSample):
        at_most = np.cumsum(sample.counts).astype(np.int64)
        return _Ranked.of(sample.least, at_most), _Ranked.of(sample.most, at_most)
    x = np.sort(_numbers(name, sample))
    exact = _Ranked.of(x, np.arange(1, len(x) + 1))
    return exact, exact


def quantile_sequence(
    sample: ArrayLike | BinnedSample, quantile: float, level: float = 0.95
) -> tuple[float, float]:
    """Return two of the samples between which the quantile lies, for any look.

    [X_(n+1−l), X_(u)],  u = min{s : ln M_n(s) ≥ ln(2/(1 − level))} at π = quantile, and l likewise
    at 1 − quantile, M the mixture of `log_mixture`

    Proved for any law, with atoms or without, all sizes and all ways to choose when to play the
    arm. Where there are too few samples an end is infinite.

    >>> quantile_sequence(np.arange(1.0, 101.0), 0.5)
    (35.0, 66.0)

    Source: Howard and Ramdas 2022. Differences: the mixture of Robbins 1970 in place of their
    stitched bound.
    """
    number("quantile", quantile, above=0, below=1)
    down, up = _ranked("sample", sample)
    asked = math.log(2 / (1 - number("level", level, above=0, below=1)))
    last, high = rank(up.n, asked, 1 - quantile), rank(up.n, asked, quantile)
    return float(down.nth(up.n + 1 - last)), float(up.nth(high))


def quantile_evidence(
    a: ArrayLike | BinnedSample,
    b: ArrayLike | BinnedSample,
    quantile: float,
    difference: float = 0.0,
) -> float:
    """Return the logarithm of the evidence that a quantile of a exceeds that of b by a difference.

    E = inf_q M(n_a, #{a > q + difference}; 1 − π) M(n_b, #{b < q}; π),  M that of `log_mixture`

    If the quantile of a is at most that of b plus the difference, then some q lies between, and
    there both factors are supermartingales that start at 1: E ever reaches e^f with a probability
    of at most e^−f, for all laws, sizes and ways to choose the arms. Equal quantiles lead nothing.

    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.standard_cauchy(1000) + 1, rng.standard_cauchy(1000)
    >>> round(quantile_evidence(a, b, 0.5)), round(quantile_evidence(b, a, 0.5))
    (69, -11)

    Source: our own, from Howard and Ramdas 2022, who compare two arms by their intervals.
    Differences: one infimum in place of two intervals.
    """
    number("quantile", quantile, above=0, below=1)
    x, y = _ranked("a", a)[0], _ranked("b", b)[1]
    if number("difference", difference):  # 0.1 + 0.7 < 0.8 is no evidence
        y = y._replace(values=np.nextafter(y.values + difference, math.inf))
    pooled = np.unique(np.append(x.values, y.values))  # the infimum is at one of them

    def halves(index: Array) -> tuple[Array, Array]:
        q = pooled[np.minimum(index.astype(np.int64), len(pooled) - 1)]
        falls = _log_mixture(x.n, x.above(q), 1 - quantile)
        return falls, _log_mixture(y.n, y.below(q), quantile)

    size = 8.0 ** math.ceil(math.log(max(len(pooled), 8), 8))  # so cells end at whole numbers
    return _least(halves, np.add, 0.0, size, finest=1.0)


def _log_mixture(n: int, s: ArrayLike, quantile: float) -> Array:
    """Return `log_mixture`, which grows with s from −ln(n + 1), also where that underflows."""
    return np.maximum(log_mixture(n, s, quantile), -math.log1p(n))


def quantile_difference(
    a: ArrayLike | BinnedSample, b: ArrayLike | BinnedSample, quantile: float, level: float = 0.95
) -> tuple[float, float]:
    """Return an interval for the quantile of a minus that of b, for any look.

    All differences d with `quantile_evidence(a, b, π, d)` and `quantile_evidence(b, a, π, -d)`
    below ln(2/(1 − level)): proved as that is. Where there are too few samples an end is infinite.

    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.standard_cauchy(1000) + 1, rng.standard_cauchy(1000)
    >>> [round(end, 2) for end in quantile_difference(a, b, 0.5)]
    [0.71, 1.37]

    Source: as for `quantile_evidence`. Differences: none.
    """
    number("quantile", quantile, above=0, below=1)
    asked = math.log(2 / (1 - number("level", level, above=0, below=1)))
    (x, x_up), (y, y_up) = _ranked("a", a), _ranked("b", b)
    lowest = _lowest_quantile_difference
    return lowest(x, y_up, quantile, asked), -lowest(y, x_up, quantile, asked)


def _lowest_quantile_difference(a: _Ranked, b: _Ranked, quantile: float, asked: float) -> float:
    """Return the least difference whose evidence is below what is asked.

    Of each count k of b below q, the largest q is b_(k+1); the evidence that is still allowed for
    a says how many of it, s at most, may lie above, and a_(n−s) is the least value that has so few.
    """
    most_evidence = asked + math.log1p(a.n) + math.log1p(b.n) + 5
    above, below = (_near(n, pi, most_evidence) for n, pi in ((a.n, 1 - quantile), (b.n, quantile)))
    falls = _log_mixture(a.n, above, 1 - quantile)
    grows = _log_mixture(b.n, below, quantile)
    grows[0] = -math.log1p(b.n)  # it stands for all smaller counts too
    room = asked - grows
    allowed = room > -math.log1p(a.n)
    most = above[np.maximum(np.searchsorted(falls, room[allowed]) - 1, 0)]
    least, largest = a.nth(a.n - most), b.nth(below[allowed] + 1)
    with np.errstate(invalid="ignore"):
        ends = least - largest
    return float(np.where(np.isnan(ends), -math.inf, ends).min())


def _near(n: int, quantile: float, evidence: float) -> Index:
    """Return the counts of n near the quantile; by Bernstein's bound, others have more evidence."""
    reach = evidence + math.sqrt(2 * evidence * n * quantile * (1 - quantile))
    return np.arange(max(0, int(n * quantile - reach)), min(n, int(n * quantile + reach)) + 1)


def _numbers(name: str, sample: ArrayLike) -> Array:
    x: Array = array(name, sample).ravel()
    require(not np.isnan(x).any(), name, "without NaN", sample)
    return x


class Largest(NamedTuple):
    """What a mean rests on; see `share_of_largest`."""

    share: float
    mean: float
    one_more: float


def share_of_largest(sample: ArrayLike, count: int = 10) -> Largest:
    """Return what the largest rewards contribute, where no interval for the mean can hold.

    share = Σ |x| of the `count` largest by size / Σ |x|;  one_more = (Σ x + x_max)/(n + 1), the
    mean if the largest by size came once more

    >>> share, mean, one_more = share_of_largest([0] * 95 + [10] * 4 + [1000], count=1)
    >>> round(share, 3), round(mean, 2), round(one_more, 2)
    (0.962, 10.4, 20.2)

    Source: our own; the share is that of Lorenz 1905. Differences: none.
    """
    x = np.sort(_numbers("sample", sample))
    require(len(x) > 0 and bool(np.isfinite(x[[0, -1]]).all()), "sample", "finite rewards", sample)
    largest = max(float(x[-1]), float(x[0]), key=abs)
    if largest == 0:
        return Largest(0.0, 0.0, 0.0)
    x /= abs(largest)  # sums of huge rewards would overflow
    sizes, total = np.sort(np.abs(x)), float(x.sum())
    share = float(sizes[-whole("count", count) :].sum() / sizes.sum())
    one_more = (total + math.copysign(1, largest)) / (len(x) + 1)
    return Largest(share, abs(largest) * (total / len(x)), abs(largest) * one_more)
