"""Symmetric laws with power tails: Cauchy, Student's t and the symmetric Pareto law."""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.special import betaln, expit, stdtr

from tailproof.checks import Positive, Range
from tailproof.noise.base import Array, Noise, Shape

__all__ = ["Cauchy", "StudentT", "SymmetricPareto"]


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


@dataclass(frozen=True)
class StudentT(Noise):
    """Student's t: no variance for df ≤ 2, no mean for df ≤ 1.

    f(x) = (1 + x²/df)^(−(df+1)/2) / (√df B(1/2, df/2)), scaled by `scale`; α = df

    >>> StudentT(0.5).alpha, StudentT(3).fisher_information
    (0.5, 0.6666666666666666)

    Source: section 2.3 of Zhong et al. 2021. Differences: a scale; use `Normal` for df > 10⁸.
    df < 10⁻⁴ is not supported, as nearly every sample would exceed the largest float.
    """

    df: Annotated[float, Range(at_least=1e-4, at_most=1e8)]
    scale: float = 1.0

    @property
    def alpha(self) -> float:
        """The degrees of freedom."""
        return self.df

    @property
    def _fisher_information(self) -> float:
        return (self.df + 1) / (self.df + 3)

    @property
    def _log_tail_limit(self) -> float:
        log_beta = float(betaln(0.5, self.df / 2))
        return math.log(2) + (self.df / 2 - 1) * math.log(self.df) - log_beta

    def _pdf(self, x: Array) -> Array:
        spread = np.hypot(1, x / math.sqrt(self.df))
        log_height = -float(betaln(0.5, self.df / 2)) - math.log(self.df) / 2
        return np.exp(log_height - (self.df + 1) * np.log(spread))

    def _cdf(self, x: Array) -> Array:
        # SciPy's stdtr loses the tail where x² overflows; there the leading term is exact.
        far = np.exp(self._log_tail_limit - self.df * np.log(np.maximum(-x, 1e50))) / 2
        return np.where(x < -1e50, far, stdtr(self.df, x))

    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return rng.standard_t(self.df, shape)


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
        return np.asarray(np.sign(s) * (2 * expit(-np.abs(s))) ** (-1 / self.index))

    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return self._quantile(rng.logistic(size=shape))
