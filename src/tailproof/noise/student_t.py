"""Student's t."""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.special import betaln, stdtr

from tailproof.checks import Range
from tailproof.noise.base import Array, Noise, Shape

__all__ = ["StudentT"]


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
