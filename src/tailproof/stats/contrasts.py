"""Compare two arms at one look: two tests that must agree, within days where days are known.

For customers with capped totals X_i, arm a earns more than arm b by

    d = Σ_t g_t (mean of a in period t − mean of b in period t)

`_by_kurtosis` is Student's interval whose degrees of freedom say how few customers decide.
`_by_permutation` gives customers the other arm, within their period; it is exact if the arm changes
nothing for anybody. Each test alone is wrong somewhere: the first for few customers of one arm, the
second for arms of different shapes. So an interval is the union of both, and "sure" needs both
tests.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr, stdtrit

from tailproof.checks import number
from tailproof.typing import Array, Index

__all__ = ["Contrast", "contrast", "holm", "of_scores"]

_DRAWS = 999
"""The number of permutations: 2.5 % of 999 + 1 is a whole number."""
_ONE_BY_ONE = 2000
"""How many of the largest totals are permuted one by one; the rest is drawn as a normal sum."""
_MOST_FREEDOM = 1e6
"""Degrees of freedom above which Student's law is the normal one."""
_POWER = 0.8
"""The chance of being sure that a forecast asks for, as planned tests do."""

Flags = NDArray[np.bool_]


class Contrast(NamedTuple):
    """How much more one arm earns than another, for one look.

    Attributes
    ----------
    difference, low, high : float
        How much more the first arm earns than the other, and its interval; infinite if nothing is
        known.
    better, worse : float
        One-sided p values of "not more" and "not less": the larger one of both tests.
    error : float
        The standard error.
    values : (float, float)
        The mean of each arm, weighted alike.
    errors : (float, float)
        Their standard errors.
    freedom : float
        Degrees of freedom.
    customers : int
        How many customers were compared; days on which an arm was missing are left out.

    Examples
    --------
    >>> x = np.repeat([0.0, 10.0, 0.0, 10.0], [900, 100, 950, 50])
    >>> found = contrast(x, np.arange(2000) < 1000)
    >>> round(found.difference, 3), found.low > 0, found.better < 0.025
    (0.5, True, True)
    """

    difference: float
    low: float
    high: float
    better: float
    worse: float
    error: float
    values: tuple[float, float]
    errors: tuple[float, float]
    freedom: float
    customers: int

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def lift(self, level: float = 0.95) -> tuple[float, float, float]:
        """Return the difference as a share of the other arm's value, with its interval.

        The interval has all r with |m_a − r m_b| ≤ t √(v_a + r² v_b), less one. It has no upper end
        if the other arm may earn nothing.

        Source: Fieller 1954. Differences: none.
        """
        (a, b), (ea, eb) = self.values, self.errors
        if not (b > 0 and self.known):
            return math.nan, -math.inf, math.inf
        t = float(stdtrit(self.freedom, (1 + level) / 2))
        q2, q1, q0 = b * b - t * t * eb * eb, a * b, a * a - t * t * ea * ea
        inside = q1 * q1 - q2 * q0
        if q2 <= 0 or inside < 0:
            return a / b - 1, -math.inf, math.inf
        root = math.sqrt(inside)
        return a / b - 1, (q1 - root) / q2 - 1, (q1 + root) / q2 - 1

    def more_customers(self, level: float = 0.95) -> float:
        """Return how many more customers make the difference sure in four cases of five.

        n ((z_level + z_power)/z)² − n, if the arms differ as they seem to. Infinite if they seem
        equal.
        """
        if not (self.error > 0 and self.difference):
            return math.inf
        asked = float(ndtri((1 + level) / 2) + ndtri(_POWER))
        ratio = (asked * self.error / abs(self.difference)) ** 2
        return max(ratio - 1, 0.0) * self.customers


@dataclass(frozen=True, eq=False)
class _Cells:
    """Totals of two arms by period: everything that both tests need."""

    x: Array
    weight: Array
    cell: Index
    """Twice the number of the period, plus 1 for the second arm."""
    share: Array
    """g: the weight of each period."""

    @classmethod
    def of(
        cls, x: Array, first: Flags, period: Index | None, weight: Array | None, moved: bool
    ) -> "_Cells | None":
        """Leave out periods with fewer than two customers of an arm; None if none are left."""
        places = np.zeros(len(x), np.int64) if period is None else period
        cell = 2 * places + ~first
        counts = np.bincount(cell, minlength=2 * (int(places.max(initial=0)) + 1)).reshape(-1, 2)
        enough: Flags = np.asarray((counts >= 2).all(axis=1))
        if not enough.any():
            return None
        kept = enough[places]
        new = (np.cumsum(enough) - 1)[places[kept]]
        w = np.ones(len(x)) if weight is None else weight
        cell, w = 2 * new + ~first[kept], w[kept]
        size = np.square(np.bincount(cell, w)) / np.bincount(cell, w * w)
        pairs = size.reshape(-1, 2)
        share = 1 / (1 / pairs).sum(axis=1)
        share = np.sqrt(share) if moved else share
        return cls(x[kept], w, cell, share / share.sum())

    @property
    def counts(self) -> Array:
        """How many customers each cell has."""
        return np.bincount(self.cell, minlength=2 * len(self.share)).astype(np.float64)

    def parts(self) -> tuple[Array, Array]:
        """Return the mean of each cell, and each customer's part in the error of the difference.

        The squares add up to the variance.
        """
        w, n = self.weight, self.counts
        sums = np.bincount(self.cell, w)
        means = np.bincount(self.cell, w * self.x) / sums
        scale = (np.repeat(self.share, 2) / sums * np.sqrt(n / (n - 1)))[self.cell]
        return means, scale * w * (self.x - means[self.cell])


def contrast(
    x: Array,
    first: Flags,
    *,
    period: Index | None = None,
    weight: Array | None = None,
    moved: bool = False,
    level: float = 0.95,
    draws: int = _DRAWS,
    seed: int = 0,
) -> Contrast:
    """Compare the capped totals of two arms, for one look.

    d ± t_ν √Σz²,  z_i = ±g_t (X_i − mean of its cell)/n √(n/(n − 1)),
    ν = 2 (Σz²)²/(Σz⁴ − (Σz²)²/N), at least 2 and at most Welch's

    joined with the studentised permutation of customers within periods.

    Parameters
    ----------
    x : array
        Capped totals of the customers of two arms.
    first : array of bool
        Whether a customer has the first arm.
    period : array of int, optional
        Within which customers are compared; growth and weekends then cancel.
    weight : array, optional
        One over the propensity; then there is no permutation.
    moved : bool
        Whether the shares of arms changed from period to period. Then g ∝ √h in place of h, the
        harmonic mean of counts: each period has the same variance, whatever made its shares.
    level : float
    draws, seed : int
        Of permutations; none with 0.

    Source: Satterthwaite 1946 for ν; Janssen 1997, Chung and Romano 2013 for the permutation;
    Hadad, Hirshberg, Zhan, Wager and Athey 2021 for the weights of periods. Differences: the two
    are joined; totals beyond the 2000 largest are drawn together, as a normal number.
    """
    number("level", level, above=0, below=1)
    cells = _Cells.of(x, first, period, weight, moved)
    if cells is None:
        return _NOTHING
    result = _by_kurtosis(cells, level)
    if weight is not None or not draws or not result.error:
        return result
    return _by_permutation(result, _permuted(cells, draws, np.random.default_rng(seed)), level)


_NOTHING = Contrast(
    0.0, -math.inf, math.inf, 1.0, 1.0, 0.0, (math.nan, math.nan), (0.0, 0.0), 2.0, 0
)


def _by_kurtosis(cells: _Cells, level: float) -> Contrast:
    """Return d ± t_ν √Σz²; no interval if customers of an arm do not differ."""
    means, z = cells.parts()
    squares = np.bincount(cells.cell, z * z)
    first, second = (cells.share @ means.reshape(-1, 2)).tolist()
    errors = np.sqrt(squares.reshape(-1, 2).sum(axis=0)).tolist()
    total = float(squares.sum())
    result = _NOTHING._replace(
        difference=first - second,
        values=(first, second),
        errors=(errors[0], errors[1]),
        customers=len(z),
    )
    if total <= 0:
        return result
    welch = total**2 / float((squares**2 / (cells.counts - 1)).sum())
    return _student(result, math.sqrt(total), min(_freedom(z), welch), level)


def _student(contrast: Contrast, error: float, freedom: float, level: float) -> Contrast:
    """Return the contrast with Student's interval and p values."""
    half = float(stdtrit(freedom, (1 + level) / 2)) * error
    better, worse = (float(stdtr(freedom, side * contrast.difference / error)) for side in (-1, 1))
    return contrast._replace(
        low=contrast.difference - half,
        high=contrast.difference + half,
        better=better,
        worse=worse,
        error=error,
        freedom=freedom,
    )


def _by_permutation(contrast: Contrast, drawn: Array, level: float) -> Contrast:
    """Return the contrast joined with Student's t over redrawn arms of the customers."""
    count = len(drawn) + 1
    t, slack = contrast.difference / contrast.error, 1e-9
    joined = contrast._replace(
        better=max(contrast.better, (1 + int((drawn >= t - slack).sum())) / count),
        worse=max(contrast.worse, (1 + int((drawn <= t + slack).sum())) / count),
    )
    tail = int((1 - level) / 2 * count)
    if not tail:
        return joined
    ranked = np.sort(drawn) * contrast.error
    return joined._replace(
        low=min(contrast.low, contrast.difference - float(ranked[-tail])),
        high=max(contrast.high, contrast.difference - float(ranked[tail - 1])),
    )


def of_scores(scores: Array, level: float = 0.95) -> Contrast:
    """Compare two arms by a score of each customer, whose mean is the difference; one look.

    >>> of_scores(np.array([1.0, 2.0, 0.0, 1.5, 0.5])).difference
    1.0

    Source: Satterthwaite 1946 for the degrees of freedom.
    """
    n = len(scores)
    if n < 2:
        return _NOTHING
    mean = float(scores.mean())
    z = (scores - mean) / n * math.sqrt(n / (n - 1))
    error = math.sqrt(float(z @ z))
    result = _NOTHING._replace(difference=mean, customers=n)
    return _student(result, error, min(_freedom(z), n - 1), level) if error > 0 else result


def _freedom(z: Array) -> float:
    """Return ν = 2 (Σz²)²/(Σz⁴ − (Σz²)²/n), at least 2."""
    square = np.square(z / float(np.abs(z).max()))
    total = float(square.sum())
    spread = float(square @ square) - total**2 / len(z)
    return min(max(2 * total**2 / spread, 2.0), _MOST_FREEDOM) if spread > 0 else _MOST_FREEDOM


def _permuted(cells: _Cells, draws: int, rng: np.random.Generator) -> Array:
    """Return Student's t of customers whose arms were drawn anew within their period."""
    n = cells.counts.reshape(-1, 2)
    bought = np.flatnonzero(cells.x)
    sizes = np.abs(cells.x[bought])
    bar = 0.0
    if len(sizes) > _ONE_BY_ONE:
        bar = float(np.partition(sizes, -_ONE_BY_ONE)[-_ONE_BY_ONE])
    difference, variance = np.zeros(draws), np.zeros(draws)
    period = cells.cell[bought] // 2
    order = np.argsort(period, kind="stable")
    ends = np.searchsorted(period[order], np.arange(len(n) + 1))
    for t, share in enumerate(cells.share.tolist()):
        v = np.sort(cells.x[bought[order[ends[t] : ends[t + 1]]]])  # any order of customers
        first, second = n[t].tolist()
        s, q = _drawn(v, np.abs(v) >= bar, int(first + second), int(first), draws, rng)
        rest, rest_q = float(v.sum()) - s, float(v @ v) - q
        difference += share * (s / first - rest / second)
        within = (q - s * s / first) / first / (first - 1)
        within += (rest_q - rest**2 / second) / second / (second - 1)
        variance += share**2 * np.maximum(within, 0.0)
    return np.asarray(difference / np.sqrt(np.maximum(variance, 1e-300)))


def _drawn(
    v: Array, large: Flags, n: int, size: int, draws: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return Σv and Σv² of the totals that fall to an arm of `size` of the n customers."""
    few, rest = v[large], v[~large]
    s, q = np.zeros(draws), np.zeros(draws)
    large_drawn: Index = np.zeros(draws, np.int64)
    if len(few):
        large_drawn = rng.hypergeometric(len(few), n - len(few), size, draws)
        keys = rng.random((draws, len(few)), dtype=np.float32)
        ranked = np.sort(keys, axis=1)
        last = ranked[np.arange(draws), np.maximum(large_drawn, 1) - 1]
        inside = (keys <= np.where(large_drawn > 0, last, -1.0)[:, None]).astype(np.float64)
        s, q = inside @ few, inside @ (few * few)
    if len(rest):
        m = rng.hypergeometric(len(rest), n - len(few) - len(rest), size - large_drawn)
        both = np.column_stack([rest, rest * rest])
        middle = both - both.mean(axis=0)
        spread = middle.T @ middle / len(rest)
        factor = np.sqrt(m * (len(rest) - m) / max(len(rest) - 1, 1))
        values, vectors = np.linalg.eigh(spread)
        normal = rng.standard_normal((draws, 2)) * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
        s = s + m * both[:, 0].mean() + factor * normal[:, 0]
        q = q + m * both[:, 1].mean() + factor * normal[:, 1]
    return s, q


def holm(p: Array) -> Array:
    """Return p values adjusted for testing several hypotheses, so that all hold together.

    p_(i) becomes max_{j ≤ i} min(1, (m + 1 − j) p_(j))

    >>> holm(np.array([0.01, 0.04, 0.03])).round(3).tolist()
    [0.03, 0.06, 0.06]

    Source: Holm 1979. Differences: none.
    """
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order])
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted
