"""The Laplace law."""

import math
from dataclasses import dataclass

import numpy as np

from tailproof.noise.base import Array, Noise, Shape

__all__ = ["Laplace"]


@dataclass(frozen=True)
class Laplace(Noise):
    """The Laplace law.

    f(x) = exp(−|x|)/2, scaled by `scale`; α = ∞

    >>> Laplace(0.5).fisher_information
    4.0

    Source: elementary. Differences: none.
    """

    alpha = math.inf
    scale: float = 1.0

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
