"""Laws of rounded samples."""

from dataclasses import dataclass

import numpy as np

from tailproof.checks import Positive, require
from tailproof.noise.base import Array, Noise, Shape, Transformed

__all__ = ["Rounded"]


@dataclass(frozen=True)
class Rounded(Transformed):
    """Samples of a law with a density, rounded to multiples of a step.

    η = step·⌊X/step + ½⌋ with X from `law`, scaled by `scale`; α is that of `law`

    >>> from tailproof.noise import Cauchy
    >>> Rounded(Cauchy(), 0.5).ppf([0.5, 0.6, 0.75]).tolist()
    [0.0, 0.5, 1.0]

    Source: elementary. Differences: none.
    """

    law: Noise
    step: Positive
    scale: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.law.continuous, "law", "a law with a density", self.law)

    @property
    def _support(self) -> tuple[float, float]:
        low, high = self._nearest(np.array(self.law.support))
        return float(low), float(high)

    def _cdf(self, x: Array) -> Array:
        steps = x / self.step
        # A multiple of the step, divided by it, may miss a whole number by rounding.
        whole = np.floor(steps + 4 * np.finfo(np.float64).eps * np.abs(steps))
        return self.law.cdf(self.step * (whole + 0.5))

    def _quantile(self, s: Array) -> Array:
        return self._nearest(self.law.scale * self.law._quantile(s))

    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return self._nearest(self.law.sample(rng, shape))

    def _nearest(self, x: Array) -> Array:
        return self.step * np.round(x / self.step)
