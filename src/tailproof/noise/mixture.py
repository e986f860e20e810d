"""Mixtures of laws."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import logsumexp

from tailproof.checks import array, require
from tailproof.noise.base import Array, Noise, Shape, check_laws
from tailproof.typing import Index

__all__ = ["Mixture"]


@dataclass(frozen=True)
class Mixture(Noise):
    """A mixture: each sample comes from one of several laws, picked at random.

    P(η ≤ x) = Σ_i weights_i P(η_i ≤ x), scaled by `scale`; α is the smallest tail index of the laws

    >>> from tailproof.noise import Normal
    >>> contaminated = Mixture((Normal(), Normal(100)), (0.95, 0.05))
    >>> round(float(contaminated.cdf(-3)), 4)
    0.0257

    Source: Tukey 1960 for contaminated normal laws. Differences: any number of any laws.
    """

    laws: tuple[Noise, ...]
    weights: Sequence[float] | Array
    scale: float = 1.0

    def __post_init__(self) -> None:
        laws = check_laws(self.laws)
        weights = array("weights", self.weights)
        ok = weights.shape == (len(laws),) and bool((weights > 0).all())
        ok = ok and math.isclose(weights.sum(), 1)
        require(ok, "weights", f"{len(laws)} positive numbers that sum to 1", self.weights)
        object.__setattr__(self, "laws", laws)
        object.__setattr__(self, "weights", tuple(weights.tolist()))
        super().__post_init__()

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        """Whether all laws are symmetric."""
        return all(law.symmetric for law in self.laws)

    @property
    def continuous(self) -> bool:  # type: ignore[override]
        """Whether all laws have a density."""
        return all(law.continuous for law in self.laws)

    @property
    def alpha(self) -> float:
        """The smallest tail index of the laws."""
        return min(law.alpha for law in self.laws)

    @property
    def mean(self) -> float:
        """The weighted mean of the means of the laws, times scale."""
        return self.scale * float(np.dot(self.weights, [law.mean for law in self.laws]))

    @property
    def _fisher_information(self) -> float:
        return super()._fisher_information if _smooth(self.laws) else math.inf

    @property
    def _support(self) -> tuple[float, float]:
        lows, highs = zip(*(law.support for law in self.laws), strict=True)
        return min(lows), max(highs)

    @property
    def _log_tail_limit(self) -> float:
        parts = [
            math.log(weight) + law._log_tail_limit + law.alpha * math.log(law.scale)
            for weight, law in zip(self.weights, self.laws, strict=True)
            if law.alpha == self.alpha < math.inf
        ]
        return float(logsumexp(parts)) if parts else -math.inf

    def _pdf(self, x: Array) -> Array:
        return self._weighted_sum([law.pdf(x) for law in self.laws])

    def _cdf(self, x: Array) -> Array:
        return np.minimum(self._weighted_sum([law.cdf(x) for law in self.laws]), 1)

    def _weighted_sum(self, parts: list[Array]) -> Array:
        pairs = zip(self.weights, parts, strict=True)
        return np.asarray(sum(weight * part for weight, part in pairs))

    def _quantile(self, s: Array) -> Array:
        return super()._quantile(s) if _smooth(self.laws) else self._bisect_quantile(s)

    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        last = np.cumsum(self.weights)[:-1]
        which: Index = np.searchsorted(last, rng.random(shape), side="right")
        x = np.empty(shape)
        for component, law in enumerate(self.laws):
            here = which == component
            x[here] = law.sample(rng, (int(np.count_nonzero(here)),))
        return x


@cache
def _smooth(laws: tuple[Noise, ...]) -> bool:
    """Whether the laws are symmetric and their densities have no jumps."""
    return all(
        law.symmetric and law.continuous and law.fisher_information < math.inf for law in laws
    )
