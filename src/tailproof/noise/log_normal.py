"""The log-normal law."""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.special import expit, ndtr, ndtri

from tailproof.checks import Range
from tailproof.noise.base import Array, Shape
from tailproof.noise.one_sided import Centre, OneSided

__all__ = ["LogNormal"]


@dataclass(frozen=True)
class LogNormal(OneSided):
    """The log-normal law, skewed to the right, with its mean, median or left end at zero.

    ln X ~ N(0, sigma²),  η = scale·(X − z),  z the `centre` of X;  α = ∞

    >>> round(LogNormal(1.0).mean, 4)
    0.6487

    Source: elementary. Differences: sigma > 10 is not supported.
    """

    alpha = math.inf
    sigma: Annotated[float, Range(above=0, at_most=10)]
    centre: Centre = "median"
    scale: float = 1.0
    _left = 0.0

    @property
    def _positive_mean(self) -> float:
        return math.exp(self.sigma**2 / 2)

    def _positive_pdf(self, x: Array) -> Array:
        with np.errstate(divide="ignore"):
            log_x = np.log(np.maximum(x, 0))
        size = np.exp(-((log_x / self.sigma) ** 2) / 2 - log_x)
        density = size / (self.sigma * math.sqrt(2 * math.pi))
        return np.where(x <= 0, 0.0, density)

    def _positive_cdf(self, x: Array) -> Array:
        with np.errstate(divide="ignore"):
            return ndtr(np.log(np.maximum(x, 0)) / self.sigma)

    def _positive_quantile(self, s: Array) -> Array:
        return np.exp(np.copysign(self.sigma, s) * -ndtri(expit(-np.abs(s))))

    def _positive_sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return rng.lognormal(0.0, self.sigma, shape)
