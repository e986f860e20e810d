"""Optimal designs, and the least exploration of a linear bandit."""

import numpy as np

from tailproof.typing import Array

__all__ = ["exploration_rates", "optimal_design"]

_SMALLEST = 1e-5  # smaller weights are dropped, as in the sources
_FLOOR = 1e-12  # keeps A(w) invertible in directions without an arm, far below any other weight


def exploration_rates(
    arms: Array, theta: Array, *, noise_scale: float = 1.0, least_gap: Array | float = 0.0
) -> tuple[Array, Array]:
    """Return how often to pull each arm, and the regret of doing so, both divided by ln T.

    c = argmin_{c ≥ 0} Σ_a c_a Δ_a  so that  ‖x_a − x*‖²_{A(c)⁻¹} ≤ Δ_a²/(2σ²) for each arm but x*,

    where the best arm x* is known exactly: A(c) = Σ_a c_a x_a x_aᵀ with c = ∞ for it. As T → ∞ no
    policy that is consistent on all θ has less regret than Σ c_a Δ_a ln T, for normal noise of
    scale σ. With the arms projected along x* and divided by √Δ_a, and u_a = c_a Δ_a, this is an
    optimal design: min Σ u_a so that ‖y‖²_{A(u)⁻¹} ≤ 1 for every direction y = √2 σ x_a/Δ_a.

    Parameters
    ----------
    arms, theta : arrays of shape (paths, K, d) and (paths, d)
        The arms, which span the space, and θ. Where θ is not finite the rates are zero.
    noise_scale, least_gap : float
        σ; and the Δ that counts for arms that are closer to the best.

    Examples
    --------
    >>> end_of_optimism = np.array([[[1.0, 0.0], [0.0, 1.0], [0.99, 0.02]]])
    >>> rates, regret = exploration_rates(end_of_optimism, np.array([[1.0, 0.0]]))
    >>> int(rates.argmax()), regret.round(1).tolist()  # the bad arm tells most for its cost
    (1, [8.0])

    Source: Graves and Lai 1997; Lattimore and Szepesvári 2017, theorem 1; Combes, Magureanu and
    Proutière 2017. Differences: solved as an optimal design to one part in a hundred.
    """
    rates, regret = np.zeros(arms.shape[:2]), np.zeros(len(arms))
    (rows,) = np.nonzero(np.isfinite(theta).all(axis=1))
    values = np.matvec(arms[rows], theta[rows])
    at = np.arange(len(rows)), values.argmax(axis=1)
    best = arms[rows][at]
    least = np.broadcast_to(least_gap, len(arms))[rows, None]
    gaps = np.maximum(values[at][:, None] - values, least)
    gaps[at] = np.inf
    length = np.linalg.norm(best, axis=1, keepdims=True)
    along = best / np.where(length > 0, length, 1.0)
    across = arms[rows] - np.matvec(arms[rows], along)[:, :, None] * along[:, None, :]
    across = np.where(np.isfinite(gaps)[:, :, None], across, 0.0)
    open_ = (gaps > 0).all(axis=1) & np.isfinite(gaps).any(axis=1) & across.any(axis=(1, 2))
    rows, gaps, across = rows[open_], gaps[open_], across[open_]
    if len(rows):
        unit = gaps.min(axis=1)[:, None]  # Δ in units of the least gap
        ratio = np.where(np.isfinite(gaps), gaps, unit) / unit
        weights, value = optimal_design(
            across / np.sqrt(ratio)[:, :, None], across / ratio[:, :, None]
        )
        total = 2 * noise_scale**2 * value[:, None] / unit  # Σ c_a Δ_a
        rates[rows] = total * weights / np.where(np.isfinite(gaps), gaps, unit)
        regret[rows] = total[:, 0]
    return rates, regret


def optimal_design(
    arms: Array, directions: Array, *, tolerance: float = 0.01, steps: int = 5000
) -> tuple[Array, Array]:
    """Return the weights w that minimise the variance of the worst direction, and this variance ρ.

    ρ = min_w max_y ‖y‖²_{A(w)⁻¹},  A(w) = Σ_a w_a x_a x_aᵀ

    With weights p on the directions, B = Σ_y p_y y yᵀ and f_a = x_aᵀA⁻¹BA⁻¹x_a, each step is

    w_a ∝ w_a √f_a,  p_y ∝ p_y ‖y‖²_{A⁻¹},

    until ρ(w) ≤ (1 + tolerance) tr(A⁻¹B)²/max_a f_a, which bounds the optimum from below. Zero
    directions are ignored. Arms as directions give the G-optimal design, `pairs` of arms the
    XY-optimal design, and differences divided by their gaps the design of track-and-stop.

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
