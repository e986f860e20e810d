"""Laws with light tails: degenerate, Laplace, normal and uniform."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_ndtr, ndtr, ndtri

from tailproof.noise.base import Array, Noise, Shape

__all__ = ["Degenerate", "Laplace", "Normal", "Uniform"]


@dataclass(frozen=True)
class Degenerate(Noise):
    """No noise: η = 0.

    >>> Degenerate().sample(np.random.default_rng(0), (2,)).tolist()
    [0.0, 0.0]
    """

    alpha = math.inf
    continuous = False
    scale: float = 1.0
    _support = 0.0, 0.0

    def _cdf(self, x: Array) -> Array:
        return np.where(np.isnan(x), x, x >= 0)

    def _quantile(self, s: Array) -> Array:
        return np.zeros_like(s)

    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return np.zeros(shape)


@dataclass(frozen=True)
class Laplace(Noise):
    """The Laplace law.

    f(x) = exp(−|x|)/2, scaled by `scale`; α = ∞

    >>> Laplace(0.5).fisher_information
    4.0
    """

    alpha = math.inf
    scale: float = 1.0
    _fisher_information = 1.0

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


@dataclass(frozen=True)
class Normal(Noise):
    """The normal law with standard deviation `scale`.

    f(x) = exp(−x²/2) / √(2π), scaled by `scale`; α = ∞

    >>> Normal(2.0).fisher_information
    0.25
    """

    alpha = math.inf
    scale: float = 1.0
    _fisher_information = 1.0

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
class Uniform(Noise):
    """The uniform law on [−scale, scale].

    f(x) = 1/2 for |x| ≤ 1, scaled by `scale`; α = ∞

    >>> Uniform(3.0).ppf([0, 0.25, 1]).tolist()
    [-3.0, -1.5, 3.0]
    """

    alpha = math.inf
    scale: float = 1.0
    _fisher_information = math.inf  # the density jumps
    _support = -1.0, 1.0

    def _pdf(self, x: Array) -> Array:
        return np.where(np.isnan(x), x, np.abs(x) <= 1) / 2

    def _cdf(self, x: Array) -> Array:
        return (1 + np.clip(x, -1, 1)) / 2

    def _quantile(self, s: Array) -> Array:
        return np.tanh(s / 2)

    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return rng.uniform(-1, 1, shape)
