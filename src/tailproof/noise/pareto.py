"""The Pareto law."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from tailproof.checks import Positive
from tailproof.noise.base import Array, Shape
from tailproof.noise.one_sided import Centre, OneSided

__all__ = ["Pareto"]


@dataclass(frozen=True)
class Pareto(OneSided):
    """The Pareto law, skewed to the right, with its mean, median or left end at zero.

    P(X > y) = y^−index for y ≥ 1,  η = scale·(X − z),  z the `centre` of X;  α = index

    >>> Pareto(1.5, centre="mean").support
    (-2.0, inf)

    Source: elementary. Differences: none.
    """

    index: Positive
    centre: Centre = "median"
    scale: float = 1.0
    _left = 1.0

    @property
    def alpha(self) -> float:
        """The Pareto index."""
        return self.index

    @property
    def _positive_mean(self) -> float:
        return self.index / (self.index - 1) if self.index > 1 else math.nan

    def _positive_pdf(self, x: Array) -> Array:
        density = self.index * np.maximum(x, 1) ** (-self.index - 1)
        return np.where(x < 1, 0.0, density)

    def _positive_cdf(self, x: Array) -> Array:
        return -np.expm1(-self.index * np.log(np.maximum(x, 1)))

    def _positive_quantile(self, s: Array) -> Array:
        return expit(-s) ** (-1 / self.index)

    def _positive_sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return 1 + rng.pareto(self.index, shape)
