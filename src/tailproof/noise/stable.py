"""Stable laws."""

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated

import numpy as np
from scipy.special import expit, gamma, gammaln

from tailproof.checks import Range
from tailproof.noise.base import Array, Noise, Shape
from tailproof.noise.heavy_tailed import Cauchy

if TYPE_CHECKING:
    from scipy.interpolate import PPoly

__all__ = ["Stable"]


@dataclass(frozen=True)
class Stable(Noise):
    """The α-stable law: a sum of its samples has the same law up to location and scale.

    E exp(itη) = exp(−|scale·t|^α (1 − i β sign(t) tan(πα/2))), α = index < 2, β = skewness

    The right tail has the share (1 + β)/2 of the mass far out; β = 0 is symmetric. For α > 1 the
    mean is 0, for α < 1 and β = 1 all values are positive.

    >>> float(Stable(1.0).cdf(1.0).round(12)), float(Stable(0.5).cdf(-1.0).round(6))
    (0.75, 0.27128)
    >>> float(Stable(0.5, skewness=1.0).cdf(1.0).round(6))  # Lévy's law
    0.317311

    Source: samples by Chambers, Mallows and Stuck 1976; given its uniform angle θ that formula
    leaves one exponential variable, so P(η > x) is a one-dimensional integral (Zolotarev, Nolan).
    Differences: use `Normal` for α = 2, whose tail is light; α < 0.02 is not supported, and α
    within 0.01 of 1 only without skewness: the location of skewed laws tends to infinity there.
    """

    index: Annotated[float, Range(at_least=0.02, below=2)]
    scale: float = 1.0
    skewness: Annotated[float, Range(at_least=-1, at_most=1)] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.skewness and abs(self.index - 1) < 0.01:
            raise ValueError(
                f"index must differ from 1 by 0.01 or more for a skewed law, got {self.index}"
            )

    @property
    def alpha(self) -> float:
        """The index of stability."""
        return self.index

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        """Whether the skewness is zero."""
        return self.skewness == 0

    @property
    def mean(self) -> float:
        """0 for α > 1, else NaN."""
        return 0.0 if self.index > 1 else math.nan

    @property
    def _support(self) -> tuple[float, float]:
        one_sided = self.index < 1 and abs(self.skewness) == 1
        low = 0.0 if one_sided and self.skewness > 0 else -math.inf
        return low, 0.0 if one_sided and self.skewness < 0 else math.inf

    @property
    def _log_tail_limit(self) -> float:
        return math.log(2 / math.pi * gamma(self.index) * math.sin(math.pi * self.index / 2))

    def _pdf(self, x: Array) -> Array:
        if self.index == 1:
            return Cauchy()._pdf(x)
        if self.symmetric:
            return _stable(self.index, 0.0, np.abs(x), density=True)
        right = _stable(self.index, self.skewness, np.maximum(x, 0), density=True)
        left = _stable(self.index, -self.skewness, np.maximum(-x, 0), density=True)
        return np.where(x < 0, left, right)

    def _cdf(self, x: Array) -> Array:
        if self.index == 1:
            return Cauchy()._cdf(x)
        if self.symmetric:
            beyond = _stable(self.index, 0.0, np.abs(x), density=False)
            return np.where(x > 0, 1 - beyond, beyond)
        above = _stable(self.index, self.skewness, np.maximum(x, 0), density=False)
        below = _stable(self.index, -self.skewness, np.maximum(-x, 0), density=False)
        return np.where(x > 0, 1 - above, below)

    def _quantile(self, s: Array) -> Array:
        if self.symmetric or any(map(math.isfinite, self._support)):
            return super()._quantile(s)
        positive, right = _half_curve(self.index, self.skewness)
        negative, left = _half_curve(self.index, -self.skewness)
        above = np.sinh(right(np.maximum(s, positive)))
        below = np.sinh(left(np.maximum(-s, negative)))
        return np.where(s >= positive, above, -below)

    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        alpha, shift = self.index, _shift(self.index, self.skewness)
        angle = rng.uniform(-math.pi / 2, math.pi / 2, shape)
        turned = alpha * (angle + shift)
        with np.errstate(divide="ignore"):
            log_size = np.log(np.abs(np.sin(turned)))
            log_size -= (np.log(np.cos(angle)) + math.log(math.cos(alpha * shift))) / alpha
            spread = np.log(np.cos(angle - turned)) - np.log(rng.standard_exponential(shape))
            return np.copysign(np.exp(log_size + (1 - alpha) / alpha * spread), turned)


@cache
def _half_curve(alpha: float, skewness: float) -> tuple[float, "PPoly"]:
    """Tabulate asinh x against s = logit P(η ≤ x) for x ≥ 0, and return the s at which it begins.

    A cubic through exact values and slopes, straight beyond the last, as for symmetric laws.
    """
    from scipy.interpolate import CubicHermiteSpline

    v = np.sinh(np.linspace(0, math.asinh(650), 4096))
    x = np.sinh(v)
    tail = _stable(alpha, skewness, x, density=False)
    density = _stable(alpha, skewness, x, density=True)
    seen = (tail > 1e-300) & (density > 1e-300)
    v, tail, density = v[seen], tail[seen], density[seen]
    s = np.log1p(-tail) - np.log(tail)
    slope = tail * (1 - tail) / (density * np.cosh(v))
    curve = CubicHermiteSpline(s, v, slope)
    curve.extend(np.array([[0.0], [0.0], [slope[-1]], [v[-1]]]), np.array([np.inf]))
    return float(s[0]), curve


def _shift(alpha: float, skewness: float) -> float:
    """Return θ₀ = arctan(β tan(πα/2))/α, which is 0 for a symmetric law."""
    return math.atan(skewness * math.tan(math.pi * alpha / 2)) / alpha if skewness else 0.0


def _stable(alpha: float, skewness: float, x: Array, density: bool) -> Array:
    """Return f(x), or P(η > x), of a standard stable law with α ≠ 1 for x ≥ 0.

    P(η > x) = (1/π) ∫ w(z(θ)) dθ over −θ₀ < θ < π/2, w(z) = exp(−z) for α > 1, 1 − exp(−z) for
    α < 1, ln z = α/(α−1) (ln x + (ln cos θ + ln cos αθ₀)/α − ln sin α(θ + θ₀)) +
    ln cos((α−1)θ + αθ₀), monotone in θ.

    Over t = logit((θ + θ₀)/(π/2 + θ₀)) the integrand is smooth and vanishes on both sides of the t
    where z = 1. The trapezoid rule is centred there; its steps are of order |1 − α| near it and
    even far out.
    """
    shift = _shift(alpha, skewness)
    width = math.pi / 2 + shift  # of the range of θ; 0 if no value is positive
    flat = x.reshape(-1)
    at_zero = gamma(1 + 1 / alpha) / math.pi * math.cos(shift) * _cosine(alpha, shift)
    values = np.where(np.isnan(flat), np.nan, at_zero if density else width / math.pi)
    if width < 1e-12:
        return np.where(np.isnan(x), np.nan, np.zeros_like(x))
    with np.errstate(divide="ignore", over="ignore"):
        log_x = np.log(flat)
        far = alpha * log_x > 50  # the leading term of the tail is exact here
        share = (1 + skewness) / 2
        limit = math.log(2 / math.pi * gamma(alpha) * math.sin(math.pi * alpha / 2))
        tail = share * np.exp(limit - alpha * log_x[far])
        values[far] = alpha * tail / flat[far] if density else tail

        fine = abs(1 - alpha) / 2
        reach = 100 + 6 / alpha
        tau = np.arange(-reach, reach, 0.2)
        rise = math.sqrt((1 - fine) / (1 + fine))
        lag = 2 / math.sqrt(1 - fine**2) * np.arctanh(rise * np.tanh(tau / 2))
        step = 0.2 * (1 - 1 / (1 + fine * np.cosh(tau)))
        near = ~far & (log_x > -70 - gammaln(1 + 1 / alpha))
        for part in np.array_split(np.flatnonzero(near), 1 + x.size // 1024):
            centre = _stable_centre(alpha, shift, log_x[part])
            t = np.clip(centre[:, None] + tau - lag, -700, 700)
            log_z = _stable_exponent(alpha, shift, log_x[part, None], t)
            z = np.exp(log_z)
            inner = centre < 0  # near zero P(η > 0) − P(η > x) is the small part
            if density:
                w = np.exp(log_z - z - log_x[part, None]) * alpha / abs(alpha - 1)
            else:
                w = np.where(inner[:, None] == (alpha < 1), np.exp(-z), -np.expm1(-z))
            sums = (w * expit(t) * expit(-t) * step).sum(axis=1) * width / math.pi
            flipped = width / math.pi - sums
            values[part] = np.where(inner, flipped, sums) if not density else sums
    return values.reshape(x.shape)


def _cosine(alpha: float, shift: float) -> float:
    """Return (cos αθ₀)^{1/α}."""
    return math.exp(math.log(math.cos(alpha * shift)) / alpha)


def _stable_exponent(alpha: float, shift: float, log_x: Array, t: Array) -> Array:
    """Return ln z at the angle θ = (π/2 + θ₀) expit(t) − θ₀."""
    width = math.pi / 2 + shift
    angle, coangle = width * expit(t), width * expit(-t)  # θ + θ₀ and π/2 − θ
    # sin α(θ + θ₀) and cos((α−1)θ + αθ₀), each from the end of the range where it may vanish
    end = max(math.pi - alpha * width, 0.0)
    sine = np.where(t < 0, np.sin(alpha * angle), np.sin(end + alpha * coangle))
    start = max(math.pi / 2 - shift, 0.0)
    cosine = np.sin(np.where(t < 0, start + (1 - alpha) * angle, end + (alpha - 1) * coangle))
    bend = (np.log(np.sin(coangle)) + math.log(math.cos(alpha * shift))) / alpha - np.log(sine)
    return alpha / (alpha - 1) * (log_x + bend) + np.log(cosine)


def _stable_centre(alpha: float, shift: float, log_x: Array) -> Array:
    """Return the t at which z = 1, by bisection, and 0 where a light tail has z > 1 throughout."""
    low, high = np.full_like(log_x, -700.0), np.full_like(log_x, 700.0)
    for _ in range(60):
        middle = (low + high) / 2
        before = _stable_exponent(alpha, shift, log_x, middle) * (alpha - 1) > 0
        low, high = np.where(before, middle, low), np.where(before, high, middle)
    return np.where(np.abs(low) > 650, 0.0, low)
