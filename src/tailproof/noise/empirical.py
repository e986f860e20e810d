"""The empirical law of recorded values."""

import math
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from tailproof.checks import array, require
from tailproof.noise.base import Array, Noise, Shape

__all__ = ["Empirical"]


@dataclass(frozen=True, eq=False, repr=False)
class Empirical(Noise):
    """The empirical law: each recorded value is equally likely.

    >>> Empirical(np.array([0.0, 0.0, 5.0])).cdf([-1.0, 0.0, 7.0]).round(3).tolist()
    [0.0, 0.667, 1.0]
    """

    values: Array
    scale: float = 1.0
    alpha = math.inf
    symmetric = False
    continuous = False

    def __post_init__(self) -> None:
        super().__post_init__()
        values = np.sort(array("values", self.values))
        ok = values.ndim == 1 and values.size > 0 and not np.isnan(values).any()
        require(ok, "values", "at least one number, none of them NaN", self.values)
        object.__setattr__(self, "values", values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Empirical):
            return NotImplemented
        return self.scale == other.scale and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash((self.values.tobytes(), self.scale))

    def __repr__(self) -> str:
        digest = sha256(self.values.tobytes()).hexdigest()
        return f"Empirical({len(self.values)} values, SHA-256 {digest[:16]}, scale={self.scale})"

    @property
    def mean(self) -> float:
        """The mean of the values, times scale."""
        return self.scale * float(self.values.mean())

    @property
    def _support(self) -> tuple[float, float]:
        return float(self.values[0]), float(self.values[-1])

    def _cdf(self, x: Array) -> Array:
        return np.searchsorted(self.values, x, side="right") / len(self.values)

    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return self.values[rng.integers(len(self.values), size=shape)]
