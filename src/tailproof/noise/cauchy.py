"""The Cauchy law."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from tailproof.noise.base import Array, Noise, Shape

__all__ = ["Cauchy"]


@dataclass(frozen=True)
class Cauchy(Noise):
    """The Cauchy law: Student's t with one degree of freedom, without a mean.

    f(x) = 1 / (π (1 + x²)), scaled by `scale`; α = 1

    >>> float(Cauchy().ppf(0.75).round(12))
    1.0

    Source: section 2.3 of Zhong et al. 2021. Differences: a scale.
    """

    alpha = 1.0
    scale: float = 1.0
    _fisher_information = 0.5
    _log_tail_limit = math.log(2 / math.pi)

    def _pdf(self, x: Array) -> Array:
        return 1 / math.pi / np.hypot(1, x) / np.hypot(1, x)

    def _cdf(self, x: Array) -> Array:
        return np.arctan2(1, -x) / math.pi

    def _quantile(self, s: Array) -> Array:
        return np.copysign(1 / np.tan(math.pi * expit(-np.abs(s))), s)

    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return rng.standard_cauchy(shape)
