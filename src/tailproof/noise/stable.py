"""Symmetric stable laws."""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.special import expit, gamma, gammaln

from tailproof.checks import Range
from tailproof.noise.base import Array, Noise, Shape
from tailproof.noise.heavy_tailed import Cauchy

__all__ = ["Stable"]


@dataclass(frozen=True)
class Stable(Noise):
    """The symmetric α-stable law: a sum of its samples has the same law up to scale.

    E exp(itη) = exp(−|scale·t|^α), α = index < 2

    >>> float(Stable(1.0).cdf(1.0).round(12)), float(Stable(0.5).cdf(-1.0).round(6))
    (0.75, 0.27128)

    Source: samples by Chambers, Mallows and Stuck 1976; given its uniform angle θ that formula
    leaves one exponential variable, so P(η > x) is a one-dimensional integral (Zolotarev, Nolan).
    Differences: use `Normal` for α = 2, whose tail is light; α < 0.02 is not supported.
    """

    index: Annotated[float, Range(at_least=0.02, below=2)]
    scale: float = 1.0

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


def _stable(law: Stable, x: Array, density: bool) -> Array:
    """Return f(x), or P(η > x), of a standard stable law with α ≠ 1 for x ≥ 0.

    P(η > x) = (1/π) ∫ w(z(θ)) dθ over 0 < θ < π/2, w(z) = exp(−z) for α > 1, 1 − exp(−z) for α < 1,
    ln z = α/(α−1) (ln x + ln cos θ / α − ln sin αθ) + ln cos((α−1)θ), monotone in θ.

    Over t = logit(2θ/π) the integrand is smooth and vanishes on both sides of the t where z = 1.
    The trapezoid rule is centred there; its steps are of order |1 − α| near it and even far out.
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
