"""Ridge regression by rank-one updates, for all paths at once."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tailproof.chunking import chunks
from tailproof.policies.state.base import Array, Finite, State

__all__ = ["Design", "Ridge", "blank", "rank_one_update", "squared_norms"]


def blank(paths: int, dim: int, penalty: float, responses: int = 0) -> Array:
    """Return [S | θ] before any observation: S = I/√λ with λ = `penalty`, and θ = 0.

    >>> blank(1, 2, 4.0, responses=1).tolist()
    [[[0.5, 0.0, 0.0], [0.0, 0.5, 0.0]]]
    """
    return np.tile(np.eye(dim, dim + responses) / np.sqrt(penalty), (paths, 1, 1))


def rank_one_update(block: Array, x: Array, y: Array) -> Array:
    """Add the observation y at x in place, and return the factor by which det V grows.

    The block is [S | θ¹ … θʳ], of shape (paths, d, d + r), with V⁻¹ = SSᵀ; y has shape (paths, r).
    With f = Sᵀx and g = 1 + fᵀf, the whole update is of rank one:

    [S | θ] ← [S | θ] − Sf [fᵀ/(g + √g) | (xᵀθ − y)/g],  det(V + x xᵀ) = g det V

    SSᵀ stays positive definite under rounding, with the error of a root: 10⁻¹⁶ of √(cond V).

    Source: Potter's square-root form of the Kalman filter (in Bierman 1977, chapter II), from
    memory, derived again: (I − ffᵀ/(g + √g))² = I − ffᵀ/g. Differences: θ in the same update.
    """
    dim = block.shape[1]
    row = np.vecmat(x, block)
    f = row[:, :dim]
    gain = np.matvec(block[..., :dim], f)
    growth = 1 + np.vecdot(f, f)
    row[:, dim:] = (row[:, dim:] - y) / growth[:, None]
    row[:, :dim] /= (growth + np.sqrt(growth))[:, None]
    for rows in chunks(len(block), block[0].size):
        block[rows] -= gain[rows, :, None] * row[rows, None, :]
    return np.asarray(growth)


def squared_norms(root: Array, arms: Array) -> Array:
    """Return xᵀV⁻¹x = ‖Sᵀx‖² for every arm, of shape (paths, K)."""
    squared = np.empty(arms.shape[:2])
    for rows in chunks(len(arms), arms[0].size):
        turned = arms[rows] @ root[rows]
        np.einsum("pki,pki->pk", turned, turned, out=squared[rows])
    return squared


@dataclass(eq=False)
class Design(State):
    """The design V = λI + Σ x xᵀ of the arms pulled, and regressions on it.

    `block`, of shape (paths, d, d + r), is [S | θ¹ … θʳ]: a square root of V⁻¹ = SSᵀ and the ridge
    estimates of r responses. `log_det`, of shape (paths,), is ln(det V / det λI).
    """

    block: Array
    log_det: Finite

    @classmethod
    def start(
        cls,
        paths: int,
        arms: int,
        dim: int,
        penalty: float = 1.0,
        responses: int = 0,
        **arrays: Any,
    ) -> Self:
        """Return the design before any observation, with λ = `penalty` and r = `responses`."""
        block = blank(paths, dim, penalty, responses)
        return super().start(paths, arms, dim, block=block, **arrays)

    @property
    def root(self) -> Array:
        """S, of shape (paths, d, d)."""
        return self.block[..., : self.dim]

    def widths(self, arms: Array) -> Array:
        """Return ‖x‖ in the norm of V⁻¹ for every arm, of shape (paths, K)."""
        return np.sqrt(squared_norms(self.root, arms))

    def predict(self, arms: Array) -> tuple[Array, Array]:
        """Return xᵀθ and ‖x‖ in the norm of V⁻¹ for every arm: (paths, K, r) and (paths, K)."""
        mean = np.empty((*arms.shape[:2], self.block.shape[2] - self.dim))
        squared = np.empty(arms.shape[:2])
        for rows in chunks(self.paths, arms.shape[1] * self.block.shape[2]):
            product = arms[rows] @ self.block[rows]
            turned = product[..., : self.dim]
            np.einsum("pki,pki->pk", turned, turned, out=squared[rows])
            mean[rows] = product[..., self.dim :]
        return mean, np.sqrt(squared)

    def update(self, x: Array, y: Array) -> None:
        """Add the observations y, of shape (paths, r), at the vectors x, of shape (paths, d)."""
        self.log_det += np.log(rank_one_update(self.block, x, y))

    def fill(self, arrays: Any, paths: int, prefix: str = "") -> None:
        """Restore the arrays of `to_arrays`; the root must be finite."""
        super().fill(arrays, paths, prefix)
        if not np.isfinite(self.root).all():
            raise ValueError(f"{prefix}block holds NaN or infinities in its root S")


@dataclass(eq=False)
class Ridge(Design):
    """A design with one response: θ̂ = V⁻¹ Σ y x."""

    @classmethod
    def start(
        cls,
        paths: int,
        arms: int,
        dim: int,
        penalty: float = 1.0,
        responses: int = 1,
        **arrays: Any,
    ) -> Self:
        """Return the regression before any observation, with λ = `penalty`."""
        return super().start(paths, arms, dim, penalty, responses, **arrays)

    @property
    def theta(self) -> Array:
        """θ̂, of shape (paths, d)."""
        return self.block[..., self.dim]

    def predict(self, arms: Array) -> tuple[Array, Array]:
        """Return xᵀθ̂ and ‖x‖ in the norm of V⁻¹ for every arm, each of shape (paths, K)."""
        mean, width = super().predict(arms)
        return mean[..., 0], width
