"""Laws with an atom at zero."""

from dataclasses import dataclass

import numpy as np

from tailproof.checks import Fraction
from tailproof.noise.base import Array, Noise, Shape, Transformed

__all__ = ["ZeroInflated"]


@dataclass(frozen=True)
class ZeroInflated(Transformed):
    """Zero with probability `share`, otherwise a sample of `law`.

    P(η ≤ x) = share·1{x ≥ 0} + (1 − share) P(law ≤ x), scaled by `scale`; α is that of `law`

    >>> from tailproof.noise import Cauchy
    >>> ZeroInflated(Cauchy(), 0.5).ppf([0.125, 0.4, 0.6]).round(12).tolist()
    [-1.0, 0.0, 0.0]

    Source: elementary. Differences: none.
    """

    law: Noise
    share: Fraction
    scale: float = 1.0

    @property
    def mean(self) -> float:
        """The mean of `law`, times (1 − share)·scale."""
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
