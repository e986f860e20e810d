"""Optimism on a ridge estimate: what OFUL and its relatives share."""

from abc import abstractmethod

import numpy as np

from tailproof.policies.ball import optimistic_direction
from tailproof.policies.base import Array, Index, Policy, pick_largest
from tailproof.policies.ridge import Ridge

__all__ = ["Optimism"]


class Optimism(Policy[Ridge]):
    """x_{t+1} = argmax_x xᵀθ̂ + bonus·β ‖x‖_{V⁻¹}; a subclass says how large β is."""

    ridge: float = 1.0
    bonus: float = 1.0

    @abstractmethod
    def radius(self, memory: Ridge) -> Array:
        """Return the radius β of the confidence set in each path."""

    def estimate(self, memory: Ridge) -> Array:
        """Return the ridge estimate of θ."""
        return memory.theta

    def propose(self, memory: Ridge, rng: np.random.Generator) -> Array:
        """Return the vector of the unit ball that is best for the most favourable θ."""
        fallback = rng.standard_normal((memory.paths, memory.dim))
        radius = self.bonus * self.radius(memory)
        return optimistic_direction(memory.theta, memory.inverse, radius, fallback)

    def _init(self, paths: int, arms: int, dim: int) -> Ridge:
        return Ridge.start(paths, arms, dim, self.ridge)

    def _choose(self, memory: Ridge, arms: Array, rng: np.random.Generator) -> Index:
        mean, width = memory.predict(arms)
        return pick_largest(mean + self.bonus * self.radius(memory)[:, None] * width, rng)

    def _learn(self, memory: Ridge, arms: Array, chosen: Index, rewards: Array) -> None:
        memory.update(arms, chosen, rewards[:, 0])
