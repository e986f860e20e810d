"""Estimates and score intervals: the parameter at which weighted scores have mean zero.

An aim θ solves E_π ψ(Y; θ) = 0, and with the weights w = π(a|x)/p

    z_i(θ) = w_i ψ(y_i; θ) − C_i,   C_i = w_i h(x_i, a_i) − Σ_a π(a|x_i) h(x_i, a)

has mean zero at the truth for any model h that is learned from other rows. The estimate makes Σ z =
0. The interval has all θ with |Σ z| ≤ t √Σz², t of Student's law with Satterthwaite's degrees of
freedom. Each end is computed with one made-up reward beyond that end, for rewards too rare to have
been seen.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from tailproof.bisection import first_integer
from tailproof.judging.models import CrossFit
from tailproof.typing import Array, Index

__all__ = [
    "Estimate",
    "Weighted",
    "by_unit",
    "cautious",
    "critical",
    "largest_share",
    "location",
    "mean",
    "norm",
    "quantile",
]


class Estimate(NamedTuple):
    """An estimate, its interval, and the part of its error that each unit has.

    The squares of `influence` add up to the square of the standard error.
    """

    value: float
    low: float
    high: float
    influence: Array
    errors: Array | None = None


class Weighted(NamedTuple):
    """Rewards with the weights of a rule, which every estimate takes.

    `raw` is π/p, and `steady` the factor that makes its variance the same in all rows of an
    adaptive log, else one. `probabilities` is None for the logged choices, whose weights are one.
    """

    reward: Array
    raw: Array
    steady: Array | float
    probabilities: Array | None
    arm: Index
    unit: Index | None
    model: CrossFit | None

    @property
    def weight(self) -> Array:
        """The weight of each row."""
        return np.asarray(self.raw * self.steady)

    def control(self, score: Array, low: float, high: float) -> Array:
        """Return C, which has mean zero, times the factor in [0, 1] that lowers variance most."""
        if self.model is None or self.probabilities is None:
            return np.zeros(len(score))
        h = self.model.predict(score, low, high)
        chosen = h[np.arange(len(h)), self.arm]
        c = self.steady * (self.raw * chosen - (self.probabilities * h).sum(axis=1))
        units, z = by_unit(c, self.unit), by_unit(self.weight * score, self.unit)
        square = float(units @ units)
        return np.asarray(c * (min(max(float(z @ units) / square, 0.0), 1.0) if square else 0.0))


def by_unit(values: Array, unit: Index | None) -> Array:
    """Return the sum within each unit."""
    return values if unit is None else np.asarray(np.bincount(unit, values), dtype=np.float64)


def critical(z: Array, level: float) -> float:
    """Return the quantile of Student's law for Σz/√Σz², with Satterthwaite's degrees of freedom.

    ν = 2 (Σz²)²/(Σz⁴ − (Σz²)²/n), at least 2

    Source: Satterthwaite 1946. Differences: moments are estimated.
    """
    top = float(np.abs(z).max(initial=0.0)) or 1.0
    square = np.square(z / top)
    total = float(square.sum())
    spread = float(square @ square) - total**2 / len(z)
    freedom = max(2 * total**2 / spread, 2.0) if spread > 0 else math.inf
    return float(stdtrit(min(freedom, 1e6), (1 + level) / 2))


def cautious(level: float) -> float:
    """Return a level with a fifth less error: a margin for intervals that hold only asymptotically.

    A capped mean needs none, since its made-up rewards are at the cap.

    >>> round(cautious(0.95), 3)
    0.96
    """
    return 1 - 0.8 * (1 - level)


def quantile(given: Weighted, tau: float, level: float) -> Estimate:
    """Return the quantile: ψ = 1{y ≤ θ} − τ."""
    y, w, unit = given.reward, given.weight, given.unit
    order = np.argsort(y, kind="stable")
    ranked = y[order]
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))
    values, below = ranked[last], np.cumsum(w[order])[last]

    def first(wanted: float) -> float:
        """Return the least value with so much weight up to it."""
        at = int(np.searchsorted(below, wanted * (1 - 1e-12)))
        return float(values[min(at, len(values) - 1)])

    total = float(w.sum())
    c = given.control(np.where(y <= first(tau * total), 1 - tau, -tau), -tau, 1 - tau)
    value = first(tau * total + float(c.sum()))

    def scores(q: float) -> Array:
        return by_unit(w * ((y <= q) - tau) - c, unit)

    at_value = scores(value)
    bar, typical = critical(at_value, cautious(level)), _typical(w, unit)

    def t(q: float, extra: float) -> float:
        z = scores(q)
        return (float(z.sum()) + extra) / math.sqrt(max(float(z @ z) + extra**2, 1e-300))

    def search(extra: float, asked: float) -> int:
        """Return the index of the first value whose t exceeds the critical value."""

        def beyond(index: Index) -> NDArray[np.bool_]:
            return np.asarray(t(float(values[index]), extra) > asked)

        return int(first_integer(beyond, -1, len(values)))

    start, end = search(typical * (1 - tau), -bar), search(-typical * tau, bar)
    surely_above = start > 0 or t(-math.inf, typical * (1 - tau)) <= -bar
    low = float(values[start]) if surely_above and start < len(values) else -math.inf
    high = float(values[end]) if end < len(values) else math.inf
    return Estimate(value, low, high, _spread_over(-at_value, (high - low) / (2 * bar)))


def mean(
    given: Weighted,
    level: float,
    ends: tuple[float, float] | None = None,
    *,
    of_totals: bool = False,
) -> Estimate:
    """Return the mean, of rewards cut to `ends` if given: ψ = y − θ (Fieller 1954).

    With `of_totals` the ends bound the total of a unit, and rewards were scaled so that totals stay
    between the ends: then the made-up unit has the mean number of rows, and its total is an end.
    """
    y = given.reward if ends is None else np.clip(given.reward, *ends)
    largest = [float(np.abs(y).max()), *(abs(end) for end in ends or ())]
    unit_of_reward = max(largest) or 1.0  # so that squares are numbers
    v, w = y / unit_of_reward, given.weight
    bounds = None if ends is None else (ends[0] / unit_of_reward, ends[1] / unit_of_reward)
    pilot = float(w @ v / w.sum())
    low, high = (float(v.min()), float(v.max())) if bounds is None else bounds
    c = given.control(v - pilot, low - pilot, high - pilot)
    u, units = by_unit(w * v - c, given.unit), by_unit(w, given.unit)
    sums = np.array([u.sum(), units.sum(), u @ u, u @ units, units @ units])
    value = float(sums[0] / sums[1])
    z = u - value * units
    bar = critical(z, level)

    def roots(extra: Array | float) -> tuple[float, float]:
        """Return the ends of {θ: (a − θb)² ≤ t² Σ(u − θw)²}."""
        a, b, uu, uw, ww = sums + extra
        q2, q1, q0 = b * b - bar**2 * ww, a * b - bar**2 * uw, a * a - bar**2 * uu
        inside = q1 * q1 - q2 * q0
        if q2 <= 0 or inside < 0:
            return -math.inf, math.inf
        return (q1 - math.sqrt(inside)) / q2, (q1 + math.sqrt(inside)) / q2

    if bounds is None:
        low, high = roots(0.0)
    else:
        size, rows = _typical(w, given.unit), 1.0
        if of_totals:
            size, rows = _typical(w, None), len(w) / len(units)
        made_up = [
            size * np.array([e, rows, size * e * e, size * e * rows, size * rows**2])
            for e in bounds
        ]
        low = max(float(roots(made_up[0])[0]), bounds[0])
        high = min(float(roots(made_up[1])[1]), bounds[1])
    value = min(max(value, low), high)
    influence = _spread_over(z, unit_of_reward * (high - low) / (2 * bar))
    return Estimate(unit_of_reward * value, unit_of_reward * low, unit_of_reward * high, influence)


def location(given: Weighted, level: float) -> Estimate:
    """Return the mean over visitors of where the noise is centred, if it is symmetric.

    V = mean_x Σ_a π(a|x) q(x, a) + c,  Σ w s_a ψ((y − q(x, a) − c)/s_a) = 0,
    ψ(u) = (ν + 1)u/(ν + u²)

    with q, s and ν of a regression with Student's noise, learned from other rows. c corrects q
    where q is wrong (doubly robust, to first order).
    """
    w, model = given.weight, given.model
    assert model is not None
    y, q, scale, df, middle, spread = model.locations
    chosen = q[np.arange(len(y)), given.arm]
    base = chosen if given.probabilities is None else (given.probabilities * q).sum(axis=1)
    r = y - chosen
    c = 0.0
    for _ in range(100):
        weights = w * (df + 1) / (df + np.square((r - c) / scale))
        step = float(weights @ (r - c) / weights.sum())
        c += step
        if abs(step) < 1e-9:
            break
    u = np.square((r - c) / scale)
    scores = w * (r - c) * (df + 1) / (df + u)
    slope = float((w * (df + 1) * (df - u) / np.square(df + u)).sum())
    # the error that the mean over visitors adds; within folds, whose models differ by chance
    folds = np.bincount(model.part)
    visitors = base - (np.bincount(model.part, base) / np.maximum(folds, 1))[model.part]
    value = float(base.mean()) + c
    influence = by_unit(scores / max(slope, 1e-300) + visitors / len(y), given.unit)
    # one more reward, made up, where the score is largest: at u = √ν
    typical, largest = _typical(w, given.unit), (df + 1) / (2 * math.sqrt(df))
    made_up = typical * largest * float(np.average(scale, weights=w)) / max(slope, 1e-300)
    half = critical(influence, cautious(level)) * math.hypot(norm(influence), made_up) + made_up
    low, high = (middle + spread * (value + side * half) for side in (-1, 1))
    return Estimate(middle + spread * value, low, high, spread * influence, r - c)


def _typical(weight: Array, unit: Index | None) -> float:
    """Return Σw²/Σw: the weight that a unit has, seen from its weight."""
    units = by_unit(weight, unit)
    return float(units @ units) / float(units.sum())


def _spread_over(z: Array, error: float) -> Array:
    """Return the standard error as a vector in the direction of z; NaN if it is infinite."""
    if not math.isfinite(error):
        return np.full(len(z), math.nan)
    direction = z / (float(np.abs(z).max()) or 1.0)
    return direction * (error / (norm(direction) or 1.0))


def largest_share(influence: Array) -> float:
    """Return the share of the variance that one unit has; zero without variance."""
    size = norm(influence)
    return float(np.abs(influence).max() / size) ** 2 if size else 0.0


def norm(z: Array) -> float:
    """Return √Σz², of numbers of any size."""
    top = float(np.abs(z).max(initial=0.0))
    return top * math.sqrt(float(np.square(z / top).sum())) if top > 0 else top
