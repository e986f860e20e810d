"""The base class of noise laws: a law defines a few functions, the others are derived."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from tailproof.bisection import first_integer
from tailproof.checks import check_fields, number, require, whole
from tailproof.settings import Named
from tailproof.typing import Array, Index

if TYPE_CHECKING:
    from scipy.interpolate import PPoly

__all__ = ["Array", "Noise", "Shape", "check_laws"]

Shape = tuple[int, ...]


class Noise(Named, ABC):
    """The law of a noise η: a standard law, multiplied by `scale`.

    A subclass is a frozen dataclass that defines `scale`, `alpha`, and `_pdf`, `_cdf` and `_sample`
    of the standard law; everything else is derived from these, and may be overridden by closed
    forms. Set ``symmetric = False`` if the law is not symmetric about zero, and
    ``continuous = False`` if it has atoms. Either way it has no tail constant and no Fisher
    information; a law with atoms has no density either.
    """

    symmetric: bool = True
    """Whether η and −η have the same law."""
    continuous: bool = True
    """Whether there is a density; False for a law with atoms."""
    scale: float

    def __post_init__(self) -> None:
        check_fields(self)
        number("scale", self.scale, above=0)

    @property
    @abstractmethod
    def alpha(self) -> float:
        """The tail index: the largest α with P(|η| > y) ≤ c/y^α; inf for light tails."""

    @property
    def mean(self) -> float:
        """E η, NaN if it does not exist."""
        self._require(self.symmetric, "mean", "is not symmetric")
        return 0.0 if self.alpha > 1 else math.nan

    @property
    def median(self) -> float:
        """The median of η: zero if it is symmetric, otherwise the ½-quantile."""
        return 0.0 if self.symmetric else float(self.ppf(0.5))

    @property
    def support(self) -> tuple[float, float]:
        """The smallest and the largest value, infinite if unbounded."""
        low, high = self._support
        return self.scale * low, self.scale * high

    @property
    def fisher_information(self) -> float:
        """The Fisher information about the location in one sample, possibly inf."""
        self._require_symmetric_density("Fisher information")
        return self._fisher_information / self.scale / self.scale

    @property
    def _fisher_information(self) -> float:
        """The Fisher information of the standard law, by numerical integration."""
        from scipy.integrate import simpson
        from scipy.interpolate import CubicSpline

        # ∫ f'²/f dx over w = ln x, where f' = (df/dw)/x. Near the mode the slope contributes only
        # the error of the density, which is up to 7e-8 for a stable law with an index near 1.
        top = self._pdf(np.zeros(()))
        w = np.arange(-100, 40, 0.02) - np.log(top)
        f = self._pdf(np.exp(w))
        w, f = w[f > 1e-100 * top], f[f > 1e-100 * top]
        slope = np.where(f > top * (1 - 1e-6), 0.0, CubicSpline(w, f)(w, 1))
        return 2 * float(simpson(slope**2 / f * np.exp(-w), x=w))

    def pdf(self, x: ArrayLike) -> Array:
        """Return the density, which a law with atoms does not have."""
        self._require(self.continuous, "density", "has atoms")
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
            inside = self.scale * self._quantile(np.clip(s, -709, 709))  # exp(709) is finite
        low, high = self.support
        return np.where(np.isinf(s), np.where(s < 0, low, high), inside)

    def scaled(self, c: float) -> Self:
        """Return the law of c·η, c > 0.

        >>> from tailproof.noise import Cauchy
        >>> Cauchy(2.0).scaled(100)
        Cauchy(scale=200.0)
        """
        law: Any = self
        scaled: Self = replace(law, scale=self.scale * number("c", c, above=0))
        return scaled

    def sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        """Draw independent samples."""
        with np.errstate(over="ignore"):
            return self.scale * self._sample(rng, shape)

    def sample_median(self, k: int, rng: np.random.Generator, shape: Shape) -> Array:
        """Draw independent medians of k samples, from one or two quantiles each.

        odd k: Q(U), U ~ Beta((k+1)/2, (k+1)/2);
        even k: (Q(U₁) + Q(U₂))/2, U₁ ~ Beta(k/2, k/2+1), U₂ = 1 − (1 − U₁) V^(2/k)

        >>> from tailproof.noise import Cauchy
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
            middle = self._quantile(logit(lower)) / 2 + self._quantile(-logit(above_upper)) / 2
            return self.scale * np.where(np.isnan(middle), 0.0, middle)  # infinities cancel

    def tail_constant(self, alpha: float | None = None) -> float:
        """Return the smallest c such that P(|η| > y) ≤ c/y^α for every y > 0.

        >>> from tailproof.noise import Cauchy, Normal
        >>> round(Cauchy().tail_constant(), 4)
        0.6366
        >>> round(Normal().tail_constant(alpha=2), 4)
        0.3314

        Source: the definition of an α-heavy tail in Zhong et al. 2021.
        Differences: `alpha` may be any α up to the law's own, as the paper allows.
        """
        with np.errstate(over="ignore"):
            return float(np.exp(self._log_tail_constant(alpha)))

    def unit_scale(self, alpha: float | None = None) -> float:
        """Return c^(1/α): the noise divided by it satisfies P(|η| > y) ≤ 1/y^α.

        >>> from tailproof.noise import StudentT
        >>> round(StudentT(0.5).unit_scale(), 4)
        0.4114
        """
        return math.exp(self._log_tail_constant(alpha) / (self.alpha if alpha is None else alpha))

    def _require(self, ok: bool, quantity: str, fault: str) -> None:
        if not ok:
            raise ValueError(f"the {quantity} is not available for {self}, which {fault}")

    def _require_symmetric_density(self, quantity: str) -> None:
        self._require(self.symmetric, quantity, "is not symmetric")
        self._require(self.continuous, quantity, "has atoms")

    def _log_tail_constant(self, alpha: float | None) -> float:
        from scipy.optimize import minimize_scalar

        self._require_symmetric_density("tail constant")
        if alpha is None:
            if self.alpha == math.inf:
                raise ValueError(f"pass alpha: {self} has light tails, so any alpha is possible")
            alpha = self.alpha
        number("alpha", alpha, above=0, at_most=self.alpha)

        def height(log_y: ArrayLike) -> Array:
            log_tail = self._log_tail(np.exp(log_y))
            exact = log_tail > -700  # further out floats are too coarse
            return np.where(exact, alpha * np.asarray(log_y) + log_tail, -math.inf)

        grid = np.linspace(-100, 700, 3201)
        heights = height(grid)
        peak = int(np.argmax(heights))
        minimum = minimize_scalar(
            lambda log_y: -max(float(height(log_y)), -1e300),
            bounds=(grid[max(peak - 1, 0)], grid[min(peak + 1, len(grid) - 1)]),
            method="bounded",
            options={"xatol": 1e-10},
        )
        limit = self._log_tail_limit if alpha == self.alpha else -math.inf
        return max(limit, float(heights[peak]), -float(minimum.fun)) + alpha * math.log(self.scale)

    def _log_tail(self, y: Array) -> Array:
        """Logarithm of P(|η| > y) of the standard law."""
        with np.errstate(divide="ignore"):
            return math.log(2) + np.log(self._cdf(-y))

    @property
    def _log_tail_limit(self) -> float:
        """Logarithm of lim y^α P(|η| > y) of the standard law."""
        return -math.inf

    @property
    def _support(self) -> tuple[float, float]:
        """The smallest and the largest value of the standard law."""
        return -math.inf, math.inf

    def _pdf(self, x: Array) -> Array:
        raise NotImplementedError("a law with a density must define _pdf")

    @abstractmethod
    def _cdf(self, x: Array) -> Array: ...

    @abstractmethod
    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array: ...

    def _quantile(self, s: Array) -> Array:
        """Quantile of the standard law at the level whose logit is s."""
        if not (self.symmetric and self.continuous):
            return self._bisect_quantile(s)
        curve = _quantile_curve(replace(self, scale=1.0))  # type: ignore[type-var]
        return np.copysign(np.sinh(curve(np.abs(s))) / self._pdf(np.zeros(())), s)

    def _bisect_quantile(self, s: Array) -> Array:
        """Return the least float x with F(x) ≥ u, or minus that for 1 − u if symmetric and u > ½.

        Floats are ordered like the integers that `_bits` maps them to: 64 halvings find x.
        """
        level = expit(-np.abs(s) if self.symmetric else s)
        ends = (np.full(level.shape, _bits(np.array(x))) for x in (-math.inf, math.inf))
        x = _float(first_integer(lambda bits: self._cdf(_float(bits)) >= level, *ends))
        return np.where(s < 0, x, np.where(s > 0, 0.0 - x, 0.0)) if self.symmetric else x


def check_laws(laws: Sequence[Noise]) -> tuple[Noise, ...]:
    """Return the laws as a tuple, or raise if there are none or one of them is not a law."""
    checked = tuple(laws)
    ok = len(checked) > 0 and all(isinstance(law, Noise) for law in checked)
    require(ok, "laws", "one or more noise laws", laws)
    return checked


def _bits(x: Array) -> Index:
    """Map floats to integers of the same order."""
    bits = x.view(np.int64)
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def _float(bits: Index) -> Array:
    """Return the inverse of `_bits`."""
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits).view(np.float64)


@cache
def _quantile_curve(law: Noise) -> "PPoly":
    """Tabulate v = asinh(f(0) x) against s = logit F(x) for x ≥ 0.

    The curve is smooth for a smooth centre, and straight far out for a power tail, so a cubic
    through exact values and slopes is right to ten digits at most levels; at the sharp centre of a
    stable law with an index below 0.5, to at least five.
    """
    from scipy.interpolate import CubicHermiteSpline

    points = np.geomspace(1e-2, 1e2, 9)
    if not np.allclose(law._cdf(points), 1 - law._cdf(-points), atol=1e-9):
        raise ValueError(f"{law} is not symmetric about zero: set symmetric = False in its class")
    height = law._pdf(np.zeros(()))
    v = np.sinh(np.linspace(0, math.asinh(650), 4096))
    x = np.sinh(v) / height
    tail, density = law._cdf(-x), law._pdf(x)
    seen = (tail > 1e-300) & (density > 1e-300)
    v, tail, density = v[seen], tail[seen], density[seen]
    s = np.log1p(-tail) - np.log(tail)
    if not (np.diff(s) > 0).all():
        raise ValueError(
            f"{law} has a _cdf that is not exact far below 0, where it must be small and growing: "
            "write arctan2(1, -x)/π, say, in place of 0.5 + arctan(x)/π"
        )
    slope = height / np.cosh(v) * tail * (1 - tail) / density
    curve = CubicHermiteSpline(s, v, slope)
    curve.extend(np.array([[0.0], [0.0], [slope[-1]], [v[-1]]]), np.array([np.inf]))
    return curve
