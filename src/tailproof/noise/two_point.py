"""Laws on two points."""

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import logit

from tailproof.checks import Fraction, number
from tailproof.noise.base import Array, Noise, Shape

__all__ = ["Rademacher", "TwoPoint"]


@dataclass(frozen=True)
class TwoPoint(Noise):
    """A law on two points.

    P(η = high) = p, P(η = low) = 1 − p, scaled by `scale`; α = ∞

    >>> rare = TwoPoint(9.0, -1.0, 0.1)
    >>> round(rare.mean, 12), rare.median, rare.symmetric
    (0.0, -1.0, False)

    An arm at location p with noise ``TwoPoint(1 - p, -p, p)`` has Bernoulli rewards of mean p.
    """

    alpha = math.inf
    continuous = False
    high: float
    low: float
    p: Fraction
    scale: float = 1.0

    def __post_init__(self) -> None:
        number("high", self.high)
        number("low", self.low, below=self.high)
        super().__post_init__()

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        """Whether the points are opposite and equally likely."""
        return self.high == -self.low and self.p == 0.5

    @property
    def mean(self) -> float:
        """scale·(p·high + (1 − p)·low)."""
        return self.scale * (self.p * self.high + (1 - self.p) * self.low)

    @property
    def _support(self) -> tuple[float, float]:
        return self.low, self.high

    def _cdf(self, x: Array) -> Array:
        level = np.where(x >= self.high, 1.0, np.where(x >= self.low, 1 - self.p, 0.0))
        return np.where(np.isnan(x), x, level)

    def _quantile(self, s: Array) -> Array:
        edge = logit(1 - self.p)
        middle = (self.low + self.high) / 2
        return np.where(s < edge, self.low, np.where(s > edge, self.high, middle))

    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return np.where(rng.random(shape) < self.p, self.high, self.low)


@dataclass(frozen=True)
class Rademacher(TwoPoint):
    """A random sign: η = ±scale.

    >>> Rademacher(2.0).ppf([0.1, 0.9]).tolist()
    [-2.0, 2.0]
    """

    high: float = field(init=False, repr=False, default=1.0)
    low: float = field(init=False, repr=False, default=-1.0)
    p: float = field(init=False, repr=False, default=0.5)
    scale: float = 1.0
