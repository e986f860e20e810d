"""Environments from records: every arm draws from its own recorded rewards."""

import math
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import ArrayLike

from tailproof.checks import array, require
from tailproof.noise import Noise, PerArm
from tailproof.noise.base import Array, Shape
from tailproof.simulation.environments import LinearBandit, k_armed
from tailproof.stats.aims import Aim
from tailproof.stats.estimators import Median
from tailproof.stats.recorded import Rewards

__all__ = ["Resampled", "recorded"]


def recorded(
    rewards: ArrayLike, arms: ArrayLike, *, aim: Aim | None = None, costs: bool = False
) -> LinearBandit:
    """Return K arms that draw from recorded rewards, and regret under an aim.

    The arms are in the order of their names, numbers in them by size. Under another aim the same
    seed draws the same rewards, and only the accounting differs: the regret of a pull is the
    largest aim of an arm less the aim of the one pulled, each of them exactly that of its records.

    Parameters
    ----------
    rewards, arms : arrays
        Recorded rewards, NaN where missing, and the arm of each.
    aim : Aim
        What regret is counted in, by default the median.
    costs : bool
        Whether the smallest is the best: a policy then learns from −cost, and the regret is in
        costs.

    Examples
    --------
    >>> from tailproof import CappedMean, Mean, UCB1, simulate
    >>> rng = np.random.default_rng(0)
    >>> sales = np.where(rng.random(4000) < 0.9, 0.0, 1 + rng.pareto(1.1, 4000))
    >>> arms = np.repeat(["old", "new"], 2000)
    >>> bandit = recorded(sales, arms, aim=CappedMean(0.99))
    >>> result = simulate({"UCB1": UCB1()}, bandit, horizon=200, paths=5)
    >>> bool(result.mean("UCB1")[-1] >= 0)
    True

    Source: elementary. Differences: none.
    """
    counted = Median() if aim is None else aim
    require(isinstance(counted, Aim), "aim", "an aim", aim)
    found = Rewards.of(-np.asarray(rewards) if costs else rewards, arms)
    locations = (counted.mirrored if costs else counted).values(found.samples)
    require(bool(np.isfinite(locations).all()), "aim", "finite for every arm", locations)
    laws = tuple(
        Resampled(sample - location)
        for sample, location in zip(found.samples, locations, strict=True)
    )
    return k_armed(PerArm(laws), locations=locations)


@dataclass(frozen=True, eq=False, repr=False)
class Resampled(Noise):
    """A draw from recorded values, all alike.

    >>> Resampled(np.array([0.0, 0.0, 5.0])).cdf([-1.0, 0.0, 7.0]).round(3).tolist()
    [0.0, 0.667, 1.0]

    Source: elementary. Differences: none.
    """

    values: Array
    scale: float = 1.0
    symmetric = False
    continuous = False

    def __post_init__(self) -> None:
        super().__post_init__()
        values = np.sort(array("values", self.values))
        ok = values.ndim == 1 and values.size > 0 and not np.isnan(values).any()
        require(ok, "values", "at least one number, none of them NaN", self.values)
        object.__setattr__(self, "values", values)

    def __repr__(self) -> str:
        digest = sha256(self.values.tobytes()).hexdigest()
        return f"Resampled({len(self.values)} values, SHA-256 {digest[:16]}, scale={self.scale})"

    @property
    def alpha(self) -> float:
        """Infinite: there are finitely many values."""
        return math.inf

    @property
    def mean(self) -> float:
        """Their mean."""
        return self.scale * float(self.values.mean())

    @property
    def _support(self) -> tuple[float, float]:
        return float(self.values[0]), float(self.values[-1])

    def _cdf(self, x: Array) -> Array:
        return np.searchsorted(self.values, x, side="right") / len(self.values)

    def _sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return self.values[rng.integers(len(self.values), size=shape)]
