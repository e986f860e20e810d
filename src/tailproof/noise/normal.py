"""The normal law."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_ndtr, ndtr, ndtri

from tailproof.noise.base import Array, Noise, Shape

__all__ = ["Normal"]


@dataclass(frozen=True)
class Normal(Noise):
    """The normal law with standard deviation `scale`.

    f(x) = exp(−x²/2) / √(2π), scaled by `scale`; α = ∞

    >>> Normal(2.0).fisher_information
    0.25

    Source: elementary. Differences: none.
    """

    alpha = math.inf
    scale: float = 1.0

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
