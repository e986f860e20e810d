"""One design, several rewards for each of its arms: a regression for each replicate."""

from dataclasses import dataclass

import numpy as np

from tailproof.policies.base import Array, Index
from tailproof.policies.ridge import Design

__all__ = ["Replicates"]


@dataclass(eq=False)
class Replicates(Design):
    """b^j = Σ_i y_i^j x_i for each replicate j, of shape (paths, replicates, d)."""

    moments: Array

    @property
    def thetas(self) -> Array:
        """θ^j = V⁻¹ b^j, of shape (paths, replicates, d)."""
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(self.moments @ self.inverse)

    def update(self, arms: Array, chosen: Index, rewards: Array) -> None:
        """Observe rewards of shape (paths, replicates) at the chosen arms."""
        x = self.grow(arms, chosen)
        self.moments += rewards[:, :, None] * x[:, None, :]
