"""Densities and scores of Student's t for every shape that LinStudentUCB chooses from."""

import numpy as np
from scipy.special import betaln

from tailproof.policies.state.base import Array, Index

__all__ = [
    "INFORMATION",
    "LOG_HEIGHT",
    "SHAPES",
    "covariance_times",
    "half_resolution",
    "inverse_root",
    "log_density",
    "log_likelihood",
    "scores",
    "squares",
]

SHAPES = np.array([0.5, 1.0, 2.0, 4.0, 32.0])
"""The degrees of freedom ν to choose from: from no mean to as good as normal, by factors of two."""
LOG_HEIGHT: Array = -betaln(0.5, SHAPES / 2) - np.log(SHAPES) / 2
INFORMATION: Array = 2 * SHAPES / (SHAPES + 3)
"""Fisher information about ln s in one pull."""


def half_resolution(x: Array, y: Array) -> Array:
    """Return half the median step between rewards of one arm, if they take few values, else zero.

    Rounded rewards are known no better. So the location of coin flips is their mean, not 0 or 1.
    """
    half, n = np.zeros(len(y)), y.shape[1]
    values = 1 + np.count_nonzero(np.diff(np.sort(y, axis=1), axis=1), axis=1)
    rows = np.flatnonzero(3 * values <= n)
    if len(rows):
        arm = np.sum(x[rows] * np.sqrt(np.arange(1, x.shape[2] + 1)), axis=2)
        order = np.lexsort((y[rows], arm), axis=1)
        arm, y = (np.take_along_axis(array, order, axis=1) for array in (arm, y[rows]))
        steps = np.sort(np.where(np.diff(arm, axis=1) == 0, np.diff(y, axis=1), 0), axis=1)
        more = np.maximum(np.count_nonzero(steps, axis=1), 1)  # the positive steps come last
        half[rows] = steps[np.arange(len(rows)), n - 1 - (more + 1) // 2] / 2
    return half


def scores(u: Array) -> Array:
    """Return uψ(u) − 1, the scores of ln s for every shape, from squares of shape (…, pulls)."""
    return np.asarray((SHAPES[:, None] + 1) * u / (SHAPES[:, None] + u) - 1)


def log_likelihood(u: Array, scales: Array) -> Array:
    """Return the log likelihood of every shape, without the terms that all share."""
    top = u.shape[2] * (LOG_HEIGHT - np.log(scales / scales[:, :1]))
    return np.asarray(top - (SHAPES + 1) / 2 * np.log1p(u / SHAPES[:, None]).sum(axis=2))


def log_density(u: Array, leverage: Array, shape: Index) -> Array:
    """Return Σ of the log density of residuals over their scale, under one shape in each path."""
    nu, square = SHAPES[shape][:, None], np.minimum(np.square(u) + leverage, 1e200)
    tails = (nu[:, 0] + 1) / 2 * np.log1p(square / nu).sum(axis=1)
    return np.asarray(u.shape[1] * LOG_HEIGHT[shape] - tails)


def covariance_times(root: Array, vector: Array) -> Array:
    """Return SSᵀv in each path."""
    return np.asarray(np.matvec(root, np.vecmat(vector, root)))


def squares(rows: Array) -> Array:
    """Return the squared length of every row."""
    return np.asarray(np.vecdot(rows, rows))


def inverse_root(matrix: Array) -> Array:
    """Return S with SSᵀ = M⁻¹ for M scaled to a unit diagonal, with eigenvalues above rounding."""
    unit = np.sqrt(np.maximum(np.diagonal(matrix, axis1=1, axis2=2), 1e-300))
    strength, basis = np.linalg.eigh(matrix / unit[:, :, None] / unit[:, None])
    scaled: Array = basis / np.sqrt(np.maximum(strength, 1e-14))[:, None]
    return scaled / unit[..., None]
