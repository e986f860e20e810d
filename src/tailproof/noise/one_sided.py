"""Laws of a positive variable, unshifted, or with the mean, median or left end moved to zero."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from scipy.special import expit, ndtr, ndtri

from tailproof.checks import Positive, Range, require
from tailproof.noise.base import Array, Noise, Shape

__all__ = ["LogNormal", "Pareto"]

Centre = Literal["mean", "median", "left", "none"]


class OneSided(Noise):
    """The law of X − z for a positive variable X: z is its mean, median or left end, or zero."""

    symmetric = False
    centre: Centre
    _left: float
    """The left end of X."""

    def __post_init__(self) -> None:
        super().__post_init__()
        rule = "median, left or none for a law without a mean"
        require(self.centre != "mean" or self.alpha > 1, "centre", rule, self.centre)

    @property
    def mean(self) -> float:
        """E η, NaN if it does not exist."""
        return self.scale * (self._positive_mean - self._zero)

    @property
    def _zero(self) -> float:
        if self.centre == "mean":
            return self._positive_mean
        if self.centre == "median":
            return float(self._positive_quantile(np.zeros(())))
        return self._left if self.centre == "left" else 0.0

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


@dataclass(frozen=True)
class Pareto(OneSided):
    """The Pareto law, skewed to the right, with its mean, median or left end at zero.

    P(X > y) = y^−index for y ≥ 1,  η = scale·(X − z),  z the `centre` of X;  α = index

    >>> Pareto(1.5, centre="mean").support
    (-2.0, inf)
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
