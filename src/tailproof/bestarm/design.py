"""Optimal designs: how often to pull each arm so that given directions are measured well."""

import math

import numpy as np

from tailproof.checks import number
from tailproof.policies.base import Array, Index
from tailproof.stats.designs import optimal_design

__all__ = ["complexity", "greedy", "lower_bound", "optimal_design", "pairs", "rounded"]


def pairs(arms: Array) -> tuple[Index, Index, Array]:
    """Return i, j and x_i − x_j for every pair i < j of arms.

    >>> i, j, y = pairs(np.eye(3)[None])
    >>> i.tolist(), j.tolist(), y[0, 0].tolist()
    ([0, 0, 1], [1, 2, 2], [1.0, -1.0, 0.0])
    """
    i, j = np.triu_indices(arms.shape[1], 1)
    return i, j, arms[:, i] - arms[:, j]


def greedy(root: Array, arms: Array, directions: Array) -> Array:
    """Return max_y ‖y‖² in the norm of (A + x xᵀ)⁻¹ for every arm x, of shape (paths, K).

    A⁻¹ = SSᵀ with S = `root`.

    >>> greedy(np.eye(2)[None], np.eye(2)[None], np.array([[[2.0, 1.0]]])).tolist()
    [[3.0, 4.5]]
    """
    x, y = arms @ root, directions @ root
    gain = (y @ x.mT) ** 2 / (1 + np.vecdot(x, x))[:, None, :]
    left: Array = (np.vecdot(y, y)[:, :, None] - gain).max(axis=1)
    return left


def rounded(weights: Array, total: Index) -> Index:
    """Return integer numbers of pulls near `total` times the weights that sum to `total`.

    >>> rounded(np.array([[0.5, 0.3, 0.2]]), np.array([11])).tolist()
    [[6, 3, 2]]

    Source: Pukelsheim 2006, chapter 12, efficient rounding. Differences: none.
    """
    supported = weights > 0
    start = (total - supported.sum(axis=1) / 2)[:, None] * weights
    pulls = np.where(supported, np.maximum(np.ceil(start), 1), 0).astype(np.int64)
    safe = np.where(supported, weights, 1.0)
    while (missing := total - pulls.sum(axis=1)).any():
        fewest = np.where(supported, pulls / safe, np.inf).argmin(axis=1)
        most = np.where(supported, (pulls - 1) / safe, -np.inf).argmax(axis=1)
        change = np.sign(missing)
        pulls[np.arange(len(pulls)), np.where(change > 0, fewest, most)] += change
    return pulls


def complexity(arms: Array, theta: Array) -> float:
    """Return the complexity H of one set of arms, of shape (K, d), under θ.

    H = min_w max_{a ≠ a*} ‖x* − x_a‖²_{A(w)⁻¹} / gap_a²

    >>> round(complexity(np.eye(2), np.array([1.0, 0.0])), 2)
    4.0

    Source: Soare et al. 2014; twice H is the characteristic time of Jedra and Proutière 2020.
    Differences: computed to one part in 10⁴.
    """
    values = arms @ theta
    others = np.arange(len(arms)) != values.argmax()
    gaps = values.max() - values[others]
    y = (arms[values.argmax()] - arms[others]) / gaps[:, None]
    return float(optimal_design(arms[None], y[None], tolerance=1e-4)[1][0])


def lower_bound(arms: Array, theta: Array, *, delta: float, noise_scale: float = 1.0) -> float:
    """Return a lower bound on the mean number of pulls of any algorithm with error probability δ.

    2σ² H ln(1/(2.4δ)), for normal noise

    >>> round(lower_bound(np.eye(2), np.array([1.0, 0.0]), delta=0.05), 1)
    17.0

    Source: Kaufmann, Cappé, Garivier 2016, remark 2; Jedra and Proutière 2020. Differences: none.
    """
    number("delta", delta, above=0, below=1)
    return 2 * noise_scale**2 * complexity(arms, theta) * math.log(1 / (2.4 * delta))
