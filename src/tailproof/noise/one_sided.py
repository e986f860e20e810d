"""Laws of a positive variable, shifted so that its mean, median or left end is at zero."""

from abc import abstractmethod
from typing import Literal

import numpy as np

from tailproof.checks import require
from tailproof.noise.base import Array, Noise, Shape

__all__ = ["Centre", "OneSided"]

Centre = Literal["mean", "median", "left"]


class OneSided(Noise):
    """The law of X − z for a positive variable X, where z is its mean, median or left end."""

    symmetric = False
    centre: Centre

    _left: float
    """The left end of X."""

    def __post_init__(self) -> None:
        super().__post_init__()
        rule = "median or left for a law without a mean"
        require(self.centre != "mean" or self.alpha > 1, "centre", rule, self.centre)

    @property
    def mean(self) -> float:
        """E η, NaN where there is none."""
        return self.scale * (self._positive_mean - self._zero)

    @property
    def _zero(self) -> float:
        if self.centre == "mean":
            return self._positive_mean
        return self._left if self.centre == "left" else float(self._positive_quantile(np.zeros(())))

    @property
    def _support(self) -> tuple[float, float]:
        return self._left - self._zero, np.inf

    def _pdf(self, x: Array) -> Array:
        return self._positive_pdf(x + self._zero)

    def _cdf(self, x: Array) -> Array:
        return self._positive_cdf(x + self._zero)

    def _quantile(self, s: Array) -> Array:
        return self._positive_quantile(s) - self._zero

    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return self._positive_sample(rng, shape) - self._zero

    @property
    @abstractmethod
    def _positive_mean(self) -> float: ...

    @abstractmethod
    def _positive_pdf(self, x: Array) -> Array: ...

    @abstractmethod
    def _positive_cdf(self, x: Array) -> Array: ...

    @abstractmethod
    def _positive_quantile(self, s: Array) -> Array:
        """Quantile of X at the level whose logit is s."""

    @abstractmethod
    def _positive_sample(self, rng: np.random.Generator, shape: Shape) -> Array: ...
