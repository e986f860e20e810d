"""The law of no noise."""

import math
from dataclasses import dataclass

import numpy as np

from tailproof.noise.base import Array, Noise, Shape

__all__ = ["Degenerate"]


@dataclass(frozen=True)
class Degenerate(Noise):
    """No noise: η = 0.

    >>> Degenerate().sample(np.random.default_rng(0), (2,)).tolist()
    [0.0, 0.0]

    Source: elementary. Differences: none.
    """

    alpha = math.inf
    continuous = False
    scale: float = 1.0

    @property
    def _support(self) -> tuple[float, float]:
        return 0.0, 0.0

    def _cdf(self, x: Array) -> Array:
        return np.where(np.isnan(x), x, x >= 0)

    def _quantile(self, s: Array) -> Array:
        return np.zeros_like(s)

    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return np.zeros(shape)
