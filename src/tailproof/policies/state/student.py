"""A noise law learned from residuals: Student's t, its scale and its degrees of freedom.

The score ψ(u) = (ν + 1)u/(ν + u²) of Student's t with ν degrees of freedom is bounded and goes
back to zero, so a reward teaches nothing when it is absurd. A few ν run side by side, each with a
scale s of its own; the one under which the residuals were most likely speaks.

What is learned is an array of shape (paths, 4, shapes): ln s, Σψ², Σψ' and Σ ln density.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from tailproof.batches import batches
from tailproof.policies.state.base import Array, Index

__all__ = ["advance", "deviation", "middle", "refit", "start"]

SHAPES = np.array([0.5, 1.0, 2.0, 4.0])
"""The degrees of freedom ν to choose from."""
_INFORMATION: Array = (SHAPES + 1) / (SHAPES + 3)  # E ψ² = E ψ' where the law is Student's t
_LOG_HEIGHT: Array = -betaln(0.5, SHAPES / 2) - np.log(SHAPES) / 2
_SCORING: Array = (SHAPES + 3) / (2 * SHAPES)  # from ψu − 1 to a step of ln s
_LOWEST = -100.0  # of ln s, for residuals that are all zero


def start(paths: int) -> Array:
    """Return what is known before any residual: as much as one pull of the law itself tells."""
    law = np.zeros((paths, 4, len(SHAPES)))
    law[:, 1:3] = _INFORMATION
    return law


def middle(residuals: Array, used: NDArray[np.bool_]) -> Array:
    """Return the lower median of the sizes of the residuals that are `used`, in each path."""
    sizes = np.sort(np.where(used, np.abs(residuals), np.inf), axis=1)
    return np.asarray(sizes[np.arange(len(sizes)), (used.sum(axis=1) - 1) // 2])


def refit(residuals: Array, used: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Learn the law afresh from the residuals that are `used`, of shape (paths, pulls).

    Also return each residual's move s ψ(r/s)/E ψ', zero where it is not used.
    """
    law, moves = start(len(residuals)), np.empty(residuals.shape)
    for rows in batches(len(residuals), 8 * residuals[0].size * len(SHAPES)):
        moves[rows] = _refit(law[rows], residuals[rows], used[rows])
    return law, moves


def _refit(law: Array, residuals: Array, used: NDArray[np.bool_]) -> Array:
    """Fill in the law, and return the moves."""
    path, n = np.arange(len(residuals)), used.sum(axis=1)
    law[:, 0] = np.log(np.maximum(middle(residuals, used), np.exp(_LOWEST)))[:, None]
    r, weight = residuals[..., None], used[..., None]
    for _ in range(3):  # Fisher's scoring for ln s, no further than a factor e at a time
        u = r * np.exp(-law[:, None, 0])
        excess = np.sum(weight * (SHAPES + 1) * u**2 / (SHAPES + u**2), axis=1) / n[:, None] - 1
        law[:, 0] = np.maximum(law[:, 0] + np.clip(excess * _SCORING, -1, 1), _LOWEST)
    psi, slope, density = _look(r, law[:, None, 0])[1:]
    law[:, 1] += np.sum(weight * psi**2, axis=1)
    law[:, 2] += np.sum(weight * slope, axis=1)
    law[:, 3] += np.sum(weight * density, axis=1)
    best = _best(law)
    scale = np.exp(law[path, 0, best]) / _INFORMATION[best]
    moves: Array = scale[:, None] * np.where(used, psi[path, :, best], 0.0)
    return moves


def advance(law: Array, n: Index, residual: Array) -> tuple[Array, Array]:
    """Learn from the residual of pull n + 1 of each path; return the new law and the move."""
    path, best = np.arange(len(law)), _best(law)
    u, psi, slope, density = _look(residual[:, None], law[:, 0])
    scale = np.exp(law[path, 0, best])
    move = scale * psi[path, best] / _mean_slope(law, n, best)
    gain = _SCORING / (n[:, None] + 1)
    log_scale = np.maximum(law[:, 0] + gain * (psi * u - 1), _LOWEST)
    sums = law[:, 1:] + np.stack([psi**2, slope, density], axis=1)
    return np.concatenate([log_scale[:, None], sums], axis=1), move


def deviation(law: Array, n: Index) -> Array:
    """Return s √(E ψ²)/E ψ' in each path: √n times the deviation of a location from n pulls."""
    path, best = np.arange(len(law)), _best(law)
    spread = np.exp(law[path, 0, best]) * np.sqrt(law[path, 1, best] / (n + 1))
    return np.asarray(spread / _mean_slope(law, n, best))


def _best(law: Array) -> Index:
    best: Index = law[:, 3].argmax(axis=1)
    return best


def _mean_slope(law: Array, n: Index, best: Index) -> Array:
    """Return E ψ' as measured, but no less than a quarter of what the law says."""
    measured = law[np.arange(len(law)), 2, best] / (n + 1)
    return np.asarray(np.maximum(measured, _INFORMATION[best] / 4))


def _look(r: Array, log_scale: Array) -> tuple[Array, Array, Array, Array]:
    """Return u = r/s, ψ, ψ' and the logarithm of the density, for every shape."""
    u = r * np.exp(-log_scale)
    square = u**2
    rest = SHAPES + square
    psi = (SHAPES + 1) * u / rest
    slope = (SHAPES + 1) * (SHAPES - square) / rest / rest
    density = _LOG_HEIGHT - log_scale - (SHAPES + 1) / 2 * np.log1p(square / SHAPES)
    return u, psi, slope, density
