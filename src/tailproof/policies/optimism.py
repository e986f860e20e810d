"""Optimism on a ridge estimate: what OFUL and its relatives share."""

from abc import abstractmethod

import numpy as np

from tailproof.policies.ball import optimistic_direction
from tailproof.policies.base import Array, Index, Indexed, picked
from tailproof.policies.state.regression import Ridge

__all__ = ["Optimism"]


class Optimism(Indexed[Ridge]):
    """x_{t+1} = argmax_x xᵀθ̂ + bonus·β ‖x‖_{V⁻¹}; a subclass says how large β is."""

    ridge: float = 1.0
    bonus: float = 1.0

    @abstractmethod
    def radius(self, state: Ridge) -> Array:
        """Return the radius β of the confidence set in each path."""

    def estimate(self, state: Ridge) -> Array:
        """Return the ridge estimate of θ."""
        return state.theta

    def propose(self, state: Ridge, rng: np.random.Generator) -> Array:
        """Return the vector of the unit ball that is best for the most favourable θ."""
        fallback = rng.standard_normal((state.paths, state.dim))
        radius = self.bonus * self.radius(state)
        return optimistic_direction(state.theta, state.root, radius, fallback)

    def _init(self, paths: int, arms: int, dim: int) -> Ridge:
        return Ridge.start(paths, arms, dim, self.ridge)

    def _index(self, state: Ridge, arms: Array) -> Array:
        mean, width = state.predict(arms)
        return mean + self.bonus * self.radius(state)[:, None] * width

    def _learn(self, state: Ridge, arms: Array, chosen: Index, rewards: Array) -> None:
        state.update(picked(arms, chosen), rewards)
