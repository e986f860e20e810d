"""The uniform law."""

import math
from dataclasses import dataclass

import numpy as np

from tailproof.noise.base import Array, Noise, Shape

__all__ = ["Uniform"]


@dataclass(frozen=True)
class Uniform(Noise):
    """The uniform law on [−scale, scale].

    f(x) = 1/2 for |x| ≤ 1, scaled by `scale`; α = ∞

    >>> Uniform(3.0).ppf([0, 0.25, 1]).tolist()
    [-3.0, -1.5, 3.0]

    Source: elementary. Differences: none.
    """

    alpha = math.inf
    fisher_information = math.inf  # the density jumps
    scale: float = 1.0

    @property
    def _support(self) -> tuple[float, float]:
        return -1.0, 1.0

    def _pdf(self, x: Array) -> Array:
        return np.where(np.isnan(x), x, np.abs(x) <= 1) / 2

    def _cdf(self, x: Array) -> Array:
        return (1 + np.clip(x, -1, 1)) / 2

    def _quantile(self, s: Array) -> Array:
        return np.tanh(s / 2)

    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return rng.uniform(-1, 1, shape)
