"""Optimal designs: how often to pull each arm so that given directions are measured well."""

import math

import numpy as np

from tailproof.checks import number
from tailproof.policies.base import Array, Index

__all__ = ["complexity", "greedy", "lower_bound", "optimal_design", "pairs", "rounded"]

_SMALLEST = 1e-5  # smaller weights are dropped, as in the sources
_FLOOR = 1e-12  # keeps A(w) invertible in directions without an arm, far below any other weight


def optimal_design(
    arms: Array, directions: Array, *, tolerance: float = 0.01, steps: int = 5000
) -> tuple[Array, Array]:
    """Return the weights w that minimise the variance of the worst direction, and this variance ρ.

    ρ = min_w max_y ‖y‖²_{A(w)⁻¹},  A(w) = Σ_a w_a x_a x_aᵀ

    With weights p on the directions, B = Σ_y p_y y yᵀ and f_a = x_aᵀA⁻¹BA⁻¹x_a, each step is

    w_a ∝ w_a √f_a,  p_y ∝ p_y ‖y‖²_{A⁻¹},

    until ρ(w) ≤ (1 + tolerance) tr(A⁻¹B)²/max_a f_a, which bounds the optimum from below. Zero
    directions are ignored. The arms as directions give the G-optimal design, `pairs` of arms
    the XY-optimal one, and differences divided by their gaps the one that track-and-stop follows.

    Parameters
    ----------
    arms, directions : arrays of shape (paths, K, d) and (paths, M, d)
        The x, and the y in their span.

    Examples
    --------
    >>> basis = np.eye(3)[None]
    >>> weights, value = optimal_design(basis, basis)
    >>> weights.round(3).tolist(), value.round(3).tolist()
    ([[0.333, 0.333, 0.333]], [3.0])

    Source: multiplicative updates as of Silvey, Titterington and Torsney 1978, for both players;
    the bound is weak duality, ‖y‖²_{A⁻¹} ≥ 2uᵀy − uᵀAu with u proportional to A⁻¹y.
    Differences: the sources of the bandit algorithms run Frank–Wolfe, without a bound.
    """
    paths, count, dim = arms.shape
    weights, value = np.full((paths, count), 1 / count), np.full(paths, np.inf)
    w, lower, rows = weights, np.zeros(paths), np.arange(paths)
    longest = np.abs(arms).max(axis=(1, 2), keepdims=True)
    unit = np.where(longest > 0, longest, 1.0)  # ρ is the same in any unit
    x, y = arms / unit, directions / unit
    p = np.full(y.shape[:2], 1 / y.shape[1])
    floor = _FLOOR * count * np.eye(dim)
    for _ in range(steps):
        inverse = np.linalg.inv(x.mT @ (w[:, :, None] * x) + floor)
        half = y @ inverse
        variance = np.vecdot(half, y)
        use = np.vecmat(p, (half @ x.mT) ** 2)
        upper, most = variance.max(axis=1), use.max(axis=1)
        better = upper < value[rows]
        weights[rows[better]], value[rows[better]] = w[better], upper[better]
        bound = np.vecdot(p, variance) ** 2 / np.where(most > 0, most, 1)
        lower = np.maximum(lower, bound)
        going = value[rows] > (1 + tolerance) * lower
        going &= most > 0
        if not going.all():
            x, y, w, p = x[going], y[going], w[going], p[going]
            lower, rows = lower[going], rows[going]
            use, variance = use[going], variance[going]
            if not len(rows):
                break
        w, p = _shares(w * np.sqrt(use)), _shares(p * variance)
    weights[weights < _SMALLEST] = 0.0
    return _shares(weights), value


def _shares(weights: Array) -> Array:
    """Return the weights divided by their sum in each path."""
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


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
    used = weights > 0
    start = (total - used.sum(axis=1) / 2)[:, None] * weights
    pulls = np.where(used, np.maximum(np.ceil(start), 1), 0).astype(np.int64)
    safe = np.where(used, weights, 1.0)
    while (missing := total - pulls.sum(axis=1)).any():
        fewest = np.where(used, pulls / safe, np.inf).argmin(axis=1)
        most = np.where(used, (pulls - 1) / safe, -np.inf).argmax(axis=1)
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
