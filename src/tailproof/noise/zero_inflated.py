"""Laws with an atom at zero."""

from dataclasses import dataclass

import numpy as np

from tailproof.checks import number, require
from tailproof.noise.base import Array, Noise, Shape

__all__ = ["ZeroInflated"]


@dataclass(frozen=True)
class ZeroInflated(Noise):
    """Zero with probability `share`, a sample of another law otherwise.

    P(η ≤ x) = share·1{x ≥ 0} + (1 − share) P(law ≤ x), stretched by `scale`; α that of the law

    >>> from tailproof.noise import Cauchy
    >>> ZeroInflated(Cauchy(), 0.5).ppf([0.125, 0.4, 0.6]).round(12).tolist()
    [-1.0, 0.0, 0.0]

    Source: elementary. Differences: none.
    """

    law: Noise
    share: float
    scale: float = 1.0
    continuous = False

    def __post_init__(self) -> None:
        require(isinstance(self.law, Noise), "law", "a law", self.law)
        number("share", self.share, above=0, below=1)
        super().__post_init__()

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        """Whether the law is."""
        return self.law.symmetric

    @property
    def alpha(self) -> float:
        """That of the law."""
        return self.law.alpha

    @property
    def mean(self) -> float:
        """That of the law, times 1 − share."""
        return self.scale * (1 - self.share) * self.law.mean

    @property
    def _support(self) -> tuple[float, float]:
        low, high = self.law.support
        return min(low, 0.0), max(high, 0.0)

    def _cdf(self, x: Array) -> Array:
        return (1 - self.share) * self.law.cdf(x) + self.share * (x >= 0)

    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        here = rng.random(shape) >= self.share
        x = np.zeros(shape)
        x[here] = self.law.sample(rng, (int(np.count_nonzero(here)),))
        return x
