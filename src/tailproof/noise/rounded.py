"""Laws of rounded samples."""

from dataclasses import dataclass

import numpy as np

from tailproof.checks import number, require
from tailproof.noise.base import Array, Noise, Shape

__all__ = ["Rounded"]


@dataclass(frozen=True)
class Rounded(Noise):
    """Samples of a law with a density, rounded to multiples of a step.

    η = step·⌊x/step + ½⌋ for x of the law, stretched by `scale`; α that of the law

    >>> from tailproof.noise import Cauchy
    >>> Rounded(Cauchy(), 0.5).ppf([0.5, 0.6, 0.75]).tolist()
    [0.0, 0.5, 1.0]

    Source: elementary. Differences: none.
    """

    law: Noise
    step: float
    scale: float = 1.0
    continuous = False

    def __post_init__(self) -> None:
        ok = isinstance(self.law, Noise) and self.law.continuous
        require(ok, "law", "a law with a density", self.law)
        number("step", self.step, above=0)
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
