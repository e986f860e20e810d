"""Laws with atoms, derived from another law: rounded samples, and additional zeros."""

from dataclasses import dataclass

import numpy as np

from tailproof.checks import Fraction, Positive, require
from tailproof.noise.base import Array, Noise, Shape

__all__ = ["Rounded", "ZeroInflated"]


class Transformed(Noise):
    """A law with atoms derived from another law, with the symmetry and tail index of that law."""

    continuous = False
    law: Noise

    def __post_init__(self) -> None:
        require(isinstance(self.law, Noise), "law", "a noise law", self.law)
        super().__post_init__()

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        """Whether `law` is symmetric."""
        return self.law.symmetric

    @property
    def alpha(self) -> float:
        """The tail index of `law`."""
        return self.law.alpha


@dataclass(frozen=True)
class Rounded(Transformed):
    """Samples of a law with a density, rounded to multiples of a step.

    η = step·⌊X/step + ½⌋ with X from `law`, scaled by `scale`; α is that of `law`

    >>> from tailproof.noise import Cauchy
    >>> Rounded(Cauchy(), 0.5).ppf([0.5, 0.6, 0.75]).tolist()
    [0.0, 0.5, 1.0]
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


@dataclass(frozen=True)
class ZeroInflated(Transformed):
    """Zero with probability `share`, otherwise a sample of `law`.

    P(η ≤ x) = share·1{x ≥ 0} + (1 − share) P(law ≤ x), scaled by `scale`; α is that of `law`

    >>> from tailproof.noise import Cauchy
    >>> ZeroInflated(Cauchy(), 0.5).ppf([0.125, 0.4, 0.6]).round(12).tolist()
    [-1.0, 0.0, 0.0]
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
