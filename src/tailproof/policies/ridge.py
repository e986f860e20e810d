"""Ridge regression by rank-one updates, for all paths at once."""

import math
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from tailproof.batches import batches
from tailproof.policies.base import Array, Index, Memory, picked

__all__ = ["Design", "Ridge", "rank_one", "squared_norms"]


def _require_finite(squares: Array, arms: Array) -> None:
    if not math.isfinite(squares.sum()):
        raise ValueError(f"arms must be finite, squares included, got {np.abs(arms).max()}")


def rank_one(inverse: Array, x: Array) -> tuple[Array, Array]:
    """Return h and the growth of the determinant with (V + x xᵀ)⁻¹ = V⁻¹ − h hᵀ.

    h = V⁻¹x/√(1 + xᵀV⁻¹x),  det(V + x xᵀ) = (1 + xᵀV⁻¹x) det V  (Sherman and Morrison)
    """
    gain = np.matvec(inverse, x)
    growth = 1 + np.maximum(np.vecdot(x, gain), 0)  # rounding may leave less than nothing
    _require_finite(growth, x)
    return gain / np.sqrt(growth)[:, None], growth


def squared_norms(inverse: Array, arms: Array) -> Array:
    """Return xᵀV⁻¹x for every arm, of shape (paths, K)."""
    squared = np.empty(arms.shape[:2])
    for rows in batches(len(arms), arms[0].size):
        x = arms[rows].mT
        np.einsum("pdk,pdk->pk", inverse[rows] @ x, x, out=squared[rows])
    _require_finite(squared, arms)
    return squared


@dataclass(eq=False)
class Design(Memory):
    """The arms learned from: V = λI + Σ x xᵀ.

    Attributes
    ----------
    inverse : array of shape (paths, d, d)
        V⁻¹.
    log_det : array of shape (paths,)
        ln(det V / det λI).
    """

    inverse: Array
    log_det: Array
    fixed: tuple[Array, Array] | None = field(default=None, init=False, repr=False)
    """Arms that own their data and are read-only, with squared norms: derived, never saved."""

    @classmethod
    def start(cls, paths: int, arms: int, dim: int, penalty: float, **more: Any) -> Self:
        """Return the design before any observation, with λ = `penalty`."""
        return cls(
            arms=arms,
            dim=dim,
            decisions=np.zeros(paths, dtype=np.int64),
            inverse=np.tile(np.eye(dim) / penalty, (paths, 1, 1)),
            log_det=np.zeros(paths),
            **more,
        )

    def widths(self, arms: Array) -> Array:
        """Return ‖x‖ in the norm of V⁻¹ for every arm, of shape (paths, K)."""
        if self.fixed is not None and self.fixed[0] is arms:
            squared = self.fixed[1]
        else:
            squared = squared_norms(self.inverse, arms)
        return np.sqrt(np.maximum(squared, 0))

    def grow(self, arms: Array, chosen: Index) -> Array:
        """Add the chosen arms to the design and return them, of shape (paths, d)."""
        x = picked(arms, chosen)
        gain, growth = rank_one(self.inverse, x)
        for rows in batches(self.paths, self.dim**2):
            self.inverse[rows] -= np.einsum("pi,pj->pij", gain[rows], gain[rows])
        self.log_det += np.log(growth)
        # Arms that nobody can change are measured once, and from then on only corrected.
        if arms.flags.owndata and not arms.flags.writeable:
            if self.fixed is None or self.fixed[0] is not arms:
                self.fixed = arms, squared_norms(self.inverse, arms)
            else:
                np.subtract(self.fixed[1], np.matvec(arms, gain) ** 2, out=self.fixed[1])
        return x


@dataclass(eq=False)
class Ridge(Design):
    """A design with rewards: b = Σ y x and θ̂ = V⁻¹ b, each of shape (paths, d)."""

    moment: Array
    theta: Array

    @classmethod
    def start(cls, paths: int, arms: int, dim: int, penalty: float, **more: Any) -> Self:
        """Return the regression before any observation, with λ = `penalty`."""
        moment, theta = np.zeros((2, paths, dim))
        return super().start(paths, arms, dim, penalty, moment=moment, theta=theta, **more)

    def predict(self, arms: Array) -> tuple[Array, Array]:
        """Return xᵀθ̂ and ‖x‖ in the norm of V⁻¹ for every arm, each of shape (paths, K)."""
        return np.matvec(arms, self.theta), self.widths(arms)

    def update(self, arms: Array, chosen: Index, y: Array) -> None:
        """Observe rewards y, of shape (paths,), at the chosen arms."""
        x = self.grow(arms, chosen)
        self.moment += y[:, None] * x
        self.theta = np.matvec(self.inverse, self.moment)
