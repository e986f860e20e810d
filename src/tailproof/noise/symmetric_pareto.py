"""The Pareto law with a random sign."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from tailproof.checks import Positive
from tailproof.noise.base import Array, Noise, Shape

__all__ = ["SymmetricPareto"]


@dataclass(frozen=True)
class SymmetricPareto(Noise):
    """The Pareto law with a random sign, which meets the paper's tail bound with equality.

    P(|η| > y) = (scale/y)^index for y ≥ scale; α = index

    >>> SymmetricPareto(0.5).ppf([0.25, 0.75]).tolist()
    [-4.0, 4.0]

    Source: the extreme case of definition 1 of Zhong et al. 2021. Differences: none.
    """

    index: Positive
    scale: float = 1.0
    _fisher_information = math.inf  # the density jumps
    _log_tail_limit = 0.0

    @property
    def alpha(self) -> float:
        """The Pareto index."""
        return self.index

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
