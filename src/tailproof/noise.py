"""Symmetric noise laws, from tame to those without a mean.

Each law states its truths (tail index, tail constant, Fisher information, quantiles) and can draw
the median of k samples from its exact law, at the price of one draw instead of k.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import simpson
from scipy.interpolate import CubicHermiteSpline, CubicSpline, PPoly
from scipy.optimize import minimize_scalar
from scipy.special import betaln, expit, gamma, gammaln, log_ndtr, logit, ndtr, ndtri, stdtr

from tailproof.checks import number, require, whole

__all__ = ["Cauchy", "Laplace", "Noise", "Normal", "Stable", "StudentT", "SymmetricPareto"]

Array = NDArray[np.float64]
Shape = tuple[int, ...]


class Noise(ABC):
    """A law symmetric about zero: a standard law, stretched by its scale.

    A law of your own needs a `scale`, an `alpha`, and the standard law's `_pdf`, `_cdf` and
    `_sample`; the rest follows from these, and closed forms may replace it.
    """

    scale: float

    def __post_init__(self) -> None:
        number("scale", self.scale, above=0)

    @property
    @abstractmethod
    def alpha(self) -> float:
        """The tail index: the largest α with P(|η| > y) ≤ c/y^α; inf for light tails."""

    @property
    def fisher_information(self) -> float:
        """The Fisher information about the location in one sample; inf where it is not finite."""
        # ∫ f'²/f dx over w = ln x, where f' = (df/dw)/x; so close to the top that rounding would
        # speak louder than the slope, there is nothing to add.
        top = self._pdf(np.zeros(()))
        w = np.arange(-100, 40, 0.02) - np.log(top)
        f = self._pdf(np.exp(w))
        w, f = w[f > 1e-100 * top], f[f > 1e-100 * top]
        slope = np.where(f > top * (1 - 1e-9), 0.0, CubicSpline(w, f)(w, 1))
        return 2 * float(simpson(slope**2 / f * np.exp(-w), x=w)) / self.scale / self.scale

    def pdf(self, x: ArrayLike) -> Array:
        """Return the density."""
        with np.errstate(over="ignore"):
            return self._pdf(np.asarray(x, dtype=np.float64) / self.scale) / self.scale

    def cdf(self, x: ArrayLike) -> Array:
        """Return P(η ≤ x), with full relative accuracy in the lower tail."""
        with np.errstate(over="ignore"):
            return self._cdf(np.asarray(x, dtype=np.float64) / self.scale)

    def ppf(self, u: ArrayLike) -> Array:
        """Return the quantile function."""
        levels = np.asarray(u, dtype=np.float64)
        require(bool(np.all((levels >= 0) & (levels <= 1))), "u", "between 0 and 1", u)
        s = logit(levels)
        with np.errstate(over="ignore"):
            inside = self.scale * self._quantile(np.clip(s, -709, 709))
        return np.where(np.isinf(s), s, inside)

    def sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        """Draw independent samples."""
        with np.errstate(over="ignore"):
            return self.scale * self._sample(rng, shape)

    def sample_median(self, k: int, rng: np.random.Generator, shape: Shape) -> Array:
        """Draw independent medians of k samples, one or two quantiles each.

        odd k: Q(U), U ~ Beta((k+1)/2, (k+1)/2);
        even k: (Q(U₁) + Q(U₂))/2, U₁ ~ Beta(k/2, k/2+1), U₂ = 1 − (1 − U₁) V^(2/k)

        >>> rng = np.random.default_rng(0)
        >>> bool(np.all(np.abs(Cauchy().sample_median(233, rng, (1000,))) < 1))
        True

        Source: order statistics of uniform samples, through the quantile function Q.
        Differences: U is drawn by its logit, which is 2 asinh(T/√(k+1)) with T ~ Student-t(k+1).
        """
        with np.errstate(over="ignore", invalid="ignore"):
            if whole("k", k) % 2:
                s = 2 * np.arcsinh(rng.standard_t(k + 1, shape) / math.sqrt(k + 1))
                return self.scale * self._quantile(s)
            lower = rng.beta(k / 2, k / 2 + 1, shape)
            above_upper = (1 - lower) * rng.random(shape) ** (2 / k)
            total = self._quantile(logit(lower)) + self._quantile(-logit(above_upper))
            return self.scale / 2 * np.where(np.isnan(total), 0.0, total)  # infinities cancel

    def tail_constant(self, alpha: float | None = None) -> float:
        """Return the smallest c such that P(|η| > y) ≤ c/y^α for every y > 0.

        >>> round(Cauchy().tail_constant(), 4)
        0.6366
        >>> round(Normal().tail_constant(alpha=2), 4)
        0.3314

        Source: the definition of an α-heavy tail in Zhong et al. 2021.
        Differences: any α up to the law's own may be asked for, which the paper allows.
        """
        with np.errstate(over="ignore"):
            return float(np.exp(self._log_tail_constant(alpha)))

    def unit_scale(self, alpha: float | None = None) -> float:
        """Return the number c^(1/α) by which to divide for P(|η| > y) ≤ 1/y^α.

        >>> round(StudentT(0.5).unit_scale(), 4)
        0.4114
        """
        return math.exp(self._log_tail_constant(alpha) / (self.alpha if alpha is None else alpha))

    def _log_tail_constant(self, alpha: float | None) -> float:
        if alpha is None:
            require(self.alpha < math.inf, "alpha", "given for a law with light tails", alpha)
            alpha = self.alpha
        number("alpha", alpha, above=0, at_most=self.alpha)

        def height(log_y: ArrayLike) -> Array:
            log_tail = self._log_tail(np.exp(log_y))
            exact = log_tail > -700  # further out floats are no longer dense
            return np.where(exact, alpha * np.asarray(log_y) + log_tail, -math.inf)

        grid = np.linspace(-100, 700, 3201)
        heights = height(grid)
        peak = int(np.argmax(heights))
        found = minimize_scalar(
            lambda log_y: -max(float(height(log_y)), -1e300),
            bounds=(grid[max(peak - 1, 0)], grid[min(peak + 1, len(grid) - 1)]),
            method="bounded",
            options={"xatol": 1e-10},
        )
        limit = self._log_tail_limit if alpha == self.alpha else -math.inf
        return max(limit, float(heights[peak]), -float(found.fun)) + alpha * math.log(self.scale)

    def _log_tail(self, y: Array) -> Array:
        """Logarithm of P(|η| > y) of the standard law."""
        with np.errstate(divide="ignore"):
            return math.log(2) + np.log(self._cdf(-y))

    @property
    def _log_tail_limit(self) -> float:
        """Logarithm of lim y^α P(|η| > y) of the standard law."""
        return -math.inf

    @abstractmethod
    def _pdf(self, x: Array) -> Array: ...

    @abstractmethod
    def _cdf(self, x: Array) -> Array: ...

    @abstractmethod
    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array: ...

    def _quantile(self, s: Array) -> Array:
        """Quantile of the standard law at the level whose logit is s."""
        curve = _quantile_curve(replace(self, scale=1.0))  # type: ignore[type-var]
        return np.copysign(np.sinh(curve(np.abs(s))) / self._pdf(np.zeros(())), s)


@cache
def _quantile_curve(law: Noise) -> PPoly:
    """Tabulate v = asinh(f(0) x) against s = logit F(x) for x ≥ 0.

    Both a smooth centre and a power tail make this curve smooth, and straight far out, so that
    a cubic through exact values and slopes keeps ten digits at most levels; the sharp centre of
    a stable law with an index below 0.5 keeps at least five.
    """
    height = law._pdf(np.zeros(()))
    v = np.sinh(np.linspace(0, math.asinh(650), 4096))
    x = np.sinh(v) / height
    tail, density = law._cdf(-x), law._pdf(x)
    seen = (tail > 1e-300) & (density > 1e-300)
    v, tail, density = v[seen], tail[seen], density[seen]
    s = np.log1p(-tail) - np.log(tail)
    slope = height / np.cosh(v) * tail * (1 - tail) / density
    curve = CubicHermiteSpline(s, v, slope)
    curve.extend(np.array([[0.0], [0.0], [slope[-1]], [v[-1]]]), np.array([np.inf]))
    return curve


@dataclass(frozen=True)
class StudentT(Noise):
    """Student's t: no variance for df ≤ 2, no mean for df ≤ 1.

    f(x) = (1 + x²/df)^(−(df+1)/2) / (√df B(1/2, df/2)), stretched by `scale`; α = df

    >>> StudentT(0.5).alpha, StudentT(3).fisher_information
    (0.5, 0.6666666666666666)

    Source: section 2.3 of Zhong et al. 2021. Differences: a scale.
    """

    df: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        number("df", self.df, above=0)
        super().__post_init__()

    @property
    def alpha(self) -> float:
        """The degrees of freedom."""
        return self.df

    @property
    def fisher_information(self) -> float:
        """(df + 1) / (df + 3) / scale²."""
        return (self.df + 1) / (self.df + 3) / self.scale / self.scale

    @property
    def _log_tail_limit(self) -> float:
        log_beta = float(betaln(0.5, self.df / 2))
        return math.log(2) + (self.df / 2 - 1) * math.log(self.df) - log_beta

    def _pdf(self, x: Array) -> Array:
        spread = np.hypot(1, x / math.sqrt(self.df))
        log_height = -float(betaln(0.5, self.df / 2)) - math.log(self.df) / 2
        return np.exp(log_height - (self.df + 1) * np.log(spread))

    def _cdf(self, x: Array) -> Array:
        # SciPy's stdtr loses the tail where x² overflows; there the leading term is exact.
        far = np.exp(self._log_tail_limit - self.df * np.log(np.maximum(-x, 1e50))) / 2
        return np.where(x < -1e50, far, stdtr(self.df, x))

    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return rng.standard_t(self.df, shape)


@dataclass(frozen=True)
class Cauchy(Noise):
    """The Cauchy law: Student's t with one degree of freedom, without a mean.

    f(x) = 1 / (π (1 + x²)), stretched by `scale`; α = 1

    >>> float(Cauchy().ppf(0.75).round(12))
    1.0

    Source: section 2.3 of Zhong et al. 2021. Differences: a scale.
    """

    scale: float = 1.0

    @property
    def alpha(self) -> float:
        """One."""
        return 1.0

    @property
    def fisher_information(self) -> float:
        """1 / (2 scale²)."""
        return 0.5 / self.scale / self.scale

    @property
    def _log_tail_limit(self) -> float:
        return math.log(2 / math.pi)

    def _pdf(self, x: Array) -> Array:
        return 1 / math.pi / np.hypot(1, x) / np.hypot(1, x)

    def _cdf(self, x: Array) -> Array:
        return np.arctan2(1, -x) / math.pi

    def _quantile(self, s: Array) -> Array:
        return np.copysign(1 / np.tan(math.pi * expit(-np.abs(s))), s)

    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return rng.standard_cauchy(shape)


@dataclass(frozen=True)
class Stable(Noise):
    """The symmetric α-stable law: sums of its samples have its own shape.

    E exp(itη) = exp(−|scale·t|^α), α = index < 2

    >>> float(Stable(1.0).cdf(1.0).round(12)), float(Stable(0.5).cdf(-1.0).round(6))
    (0.75, 0.27128)

    Source: samples by Chambers, Mallows and Stuck 1976; given its uniform angle θ that formula
    leaves one exponential variable, so P(η > x) is a one-dimensional integral (Zolotarev, Nolan).
    Differences: α = 2 is left to `Normal`, whose tail is light, and α < 0.02 to no one.
    """

    index: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        number("index", self.index, at_least=0.02, below=2)
        super().__post_init__()

    @property
    def alpha(self) -> float:
        """The index of stability."""
        return self.index

    @property
    def _log_tail_limit(self) -> float:
        return math.log(2 / math.pi * gamma(self.index) * math.sin(math.pi * self.index / 2))

    def _pdf(self, x: Array) -> Array:
        if self.index == 1:
            return Cauchy()._pdf(x)
        return _stable(self, np.abs(x), density=True)

    def _cdf(self, x: Array) -> Array:
        if self.index == 1:
            return Cauchy()._cdf(x)
        beyond = _stable(self, np.abs(x), density=False)
        return np.where(x > 0, 1 - beyond, beyond)

    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        alpha = self.index
        angle = rng.uniform(-math.pi / 2, math.pi / 2, shape)
        with np.errstate(divide="ignore"):
            log_size = np.log(np.abs(np.sin(alpha * angle))) - np.log(np.cos(angle)) / alpha
            spread = np.log(np.cos((1 - alpha) * angle)) - np.log(rng.standard_exponential(shape))
            return np.copysign(np.exp(log_size + (1 - alpha) / alpha * spread), angle)


@dataclass(frozen=True)
class SymmetricPareto(Noise):
    """A Pareto law with a random sign: it meets the paper's tail bound with equality.

    P(|η| > y) = (scale/y)^index for y ≥ scale; α = index

    >>> SymmetricPareto(0.5).ppf([0.25, 0.75]).tolist()
    [-4.0, 4.0]

    Source: the extreme case of definition 1 of Zhong et al. 2021. Differences: none.
    """

    index: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        number("index", self.index, above=0)
        super().__post_init__()

    @property
    def alpha(self) -> float:
        """The Pareto index."""
        return self.index

    @property
    def fisher_information(self) -> float:
        """Infinite: the density jumps."""
        return math.inf

    @property
    def _log_tail_limit(self) -> float:
        return 0.0

    def _pdf(self, x: Array) -> Array:
        size = np.maximum(np.abs(x), 1)
        return np.where(np.abs(x) < 1, 0.0, self.index / 2 * size ** (-self.index - 1))

    def _cdf(self, x: Array) -> Array:
        tail = np.maximum(np.abs(x), 1) ** -self.index / 2
        return np.where(x < 0, tail, 1 - tail)

    def _quantile(self, s: Array) -> Array:
        return np.sign(s) * (2 * expit(-np.abs(s))) ** (-1 / self.index)

    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return self._quantile(rng.logistic(size=shape))


@dataclass(frozen=True)
class Normal(Noise):
    """The normal law with standard deviation `scale`.

    f(x) = exp(−x²/2) / √(2π), stretched by `scale`; α = ∞

    >>> Normal(2.0).fisher_information
    0.25

    Source: elementary. Differences: none.
    """

    scale: float = 1.0

    @property
    def alpha(self) -> float:
        """Infinite."""
        return math.inf

    @property
    def fisher_information(self) -> float:
        """1 / scale²."""
        return 1 / self.scale / self.scale

    def _pdf(self, x: Array) -> Array:
        return np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)

    def _cdf(self, x: Array) -> Array:
        return ndtr(x)

    def _log_tail(self, y: Array) -> Array:
        return math.log(2) + log_ndtr(-y)

    def _quantile(self, s: Array) -> Array:
        return np.copysign(ndtri(expit(-np.abs(s))), s)

    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return rng.standard_normal(shape)


@dataclass(frozen=True)
class Laplace(Noise):
    """The Laplace law.

    f(x) = exp(−|x|)/2, stretched by `scale`; α = ∞

    >>> Laplace(0.5).fisher_information
    4.0

    Source: elementary. Differences: none.
    """

    scale: float = 1.0

    @property
    def alpha(self) -> float:
        """Infinite."""
        return math.inf

    @property
    def fisher_information(self) -> float:
        """1 / scale²."""
        return 1 / self.scale / self.scale

    def _pdf(self, x: Array) -> Array:
        return np.exp(-np.abs(x)) / 2

    def _cdf(self, x: Array) -> Array:
        tail = np.exp(-np.abs(x)) / 2
        return np.where(x < 0, tail, 1 - tail)

    def _log_tail(self, y: Array) -> Array:
        return -y

    def _quantile(self, s: Array) -> Array:
        return np.copysign(np.logaddexp(0, np.abs(s)) - math.log(2), s)

    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return rng.laplace(size=shape)


def _stable(law: Stable, x: Array, density: bool) -> Array:
    """Return f(x), or P(η > x), of a standard stable law with α ≠ 1 for x ≥ 0.

    P(η > x) = (1/π) ∫ w(z(θ)) dθ over 0 < θ < π/2, w(z) = exp(−z) for α > 1, 1 − exp(−z) for α < 1,
    ln z = α/(α−1) (ln x + ln cos θ / α − ln sin αθ) + ln cos((α−1)θ), monotone in θ.

    Over t = logit(2θ/π) the integrand is smooth and dies out on both sides of the t where z = 1;
    the trapezoid rule is centred there, fine by |1 − α| at first and even further out.
    """
    alpha = law.index
    flat = x.reshape(-1)
    values = np.where(np.isnan(flat), np.nan, gamma(1 + 1 / alpha) / math.pi if density else 0.5)
    with np.errstate(divide="ignore", over="ignore"):
        log_x = np.log(flat)
        far = alpha * log_x > 50  # the leading term of the tail is exact here
        tail = np.exp(law._log_tail_limit - alpha * log_x[far]) / 2
        values[far] = alpha * tail / flat[far] if density else tail

        fine = abs(1 - alpha) / 2
        reach = 100 + 6 / alpha
        tau = np.arange(-reach, reach, 0.2)
        rise = math.sqrt((1 - fine) / (1 + fine))
        lag = 2 / math.sqrt(1 - fine**2) * np.arctanh(rise * np.tanh(tau / 2))
        step = 0.2 * (1 - 1 / (1 + fine * np.cosh(tau)))
        near = ~far & (log_x > -70 - gammaln(1 + 1 / alpha))
        for part in np.array_split(np.flatnonzero(near), 1 + x.size // 1024):
            centre = _stable_centre(alpha, log_x[part])
            t = np.clip(centre[:, None] + tau - lag, -740, 740)
            log_z = _stable_exponent(alpha, log_x[part, None], t)
            z = np.exp(log_z)
            inner = centre < 0  # near zero 1/2 − P(η > x) is the small part, 1 − w its integrand
            if density:
                w = np.exp(log_z - z - log_x[part, None]) * alpha / abs(alpha - 1)
            else:
                w = np.where(inner[:, None] == (alpha < 1), np.exp(-z), -np.expm1(-z))
            sums = (w * expit(t) * expit(-t) * step).sum(axis=1) / 2
            values[part] = np.where(inner, 0.5 - sums, sums) if not density else sums
    return values.reshape(x.shape)


def _stable_exponent(alpha: float, log_x: Array, t: Array) -> Array:
    """Return ln z at the angle θ = (π/2) expit(t)."""
    angle, coangle = math.pi / 2 * expit(t), math.pi / 2 * expit(-t)
    bend = np.log(np.sin(coangle)) / alpha - np.log(np.sin(alpha * angle))
    return alpha / (alpha - 1) * (log_x + bend) + np.log(np.cos((alpha - 1) * angle))


def _stable_centre(alpha: float, log_x: Array) -> Array:
    """Return the t at which z = 1, by bisection."""
    low, high = np.full_like(log_x, -740.0), np.full_like(log_x, 740.0)
    for _ in range(60):
        middle = (low + high) / 2
        before = _stable_exponent(alpha, log_x, middle) * (alpha - 1) > 0
        low, high = np.where(before, middle, low), np.where(before, high, middle)
    return low
