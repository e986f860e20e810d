"""Lazy Track-and-Stop: track the design that is optimal for the current estimate."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tailproof.bestarm.base import PENALTY, BestArm, Race, in_unit, lead, rivals
from tailproof.bestarm.design import optimal_design
from tailproof.checks import Positive
from tailproof.policies.base import Array, Index, picked
from tailproof.policies.spanning import Basis, spanning
from tailproof.policies.state.base import ArmCounts, ArmValues, Counts
from tailproof.policies.state.regression import squared_norms

__all__ = ["LazyTrackAndStop"]


@dataclass(eq=False)
class _Tracking(Race):
    """A regression, and the design that it tracks.

    Attributes
    ----------
    basis, base : arrays of shape (paths, d) and (paths,)
        Arms A₀ that span the space (−1 before the first update), and λ_min(Σ_{A₀} x xᵀ).
    turn, lowest : arrays of shape (paths,)
        How often an arm of A₀ was forced, and λ_min(A).
    counts, targets, weights : arrays of shape (paths, K)
        Pulls N_a, the sum of all designs so far, and the current design.
    """

    basis: Basis
    base: Array
    turn: Counts
    lowest: Array
    counts: ArmCounts
    targets: ArmValues
    weights: ArmValues


@dataclass(frozen=True, kw_only=True)
class LazyTrackAndStop(BestArm[_Tracking]):
    """Pull near the design that would be optimal if θ̂ were θ, recomputed ever more rarely.

    If λ_min(A) < c₀√t pull the next arm of A₀, else argmin_{a ∈ supp} N_a − Σ_s w_a(s), where
    w = argmin_w max_{a ≠ â} ‖x_â − x_a‖²_{A(w)⁻¹}/gap_a² is recomputed at t = d, 2d, 4d, …;
    recommend â when A ≥ c₁I and
    min_{a ≠ â} gap_a²/(2‖x_â − x_a‖²_{A⁻¹}) > (1 + u) σ² ln(det(A/(u c₁) + I)^½/δ)

    Parameters
    ----------
    u : float
        The share of the threshold spent on exploring; c₁ = λ_min(Σ_{A₀} x xᵀ), c₀ = c₁/√d.
    delta, noise_scale : float
        δ, the error probability, and σ, the sub-Gaussian scale of the noise.

    Examples
    --------
    >>> policy, rng = LazyTrackAndStop(noise_scale=0.5), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> while not policy.stopped(state).all():
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [[float(chosen[0])]])
    >>> policy.recommend(state).tolist(), state.decisions.tolist()
    ([1], [17])

    Source: Jedra and Proutière 2020, algorithm 1, constants from the authors' code.
    Differences: A₀ is found by pivoting and not drawn; it enters A only when pulled.

    Kind: best arm, linear.
    Needs: σ, δ.
    Accepts a near-best arm: no.
    Learns without a mean: no.
    """

    noise_scale: Positive = 1.0
    u: Positive = 0.1

    def estimate(self, state: _Tracking) -> Array:
        """Return the least-squares estimate of θ."""
        return state.estimate

    def _init(self, paths: int, arms: int, dim: int) -> _Tracking:
        return _Tracking.start(paths, arms, dim, PENALTY, weights=np.full((paths, arms), 1 / arms))

    def _choose(self, state: _Tracking, arms: Array, rng: np.random.Generator) -> Index:
        basis, base = _basis(state, in_unit(arms)[0])
        ahead = state.counts - state.targets - state.weights
        tracked = np.where(state.targets + state.weights > 0, ahead, np.inf).argmin(axis=1)
        next_basis = basis[np.arange(state.paths), state.turn % state.dim]
        return np.where(_underexplored(state, base), next_basis, tracked)

    def _learn(self, state: _Tracking, arms: Array, chosen: Index, rewards: Array) -> None:
        x, unit = in_unit(arms)
        state.basis, state.base = _basis(state, x)
        state.unit = unit
        forced = _underexplored(state, state.base)
        state.turn += forced
        state.targets += np.where(forced[:, None], 0.0, state.weights)
        state.counts[np.arange(state.paths), chosen] += 1
        state.update(picked(x, chosen), rewards)
        spectrum = 1 / np.linalg.svd(state.root, compute_uv=False) ** 2
        spectrum = np.maximum(spectrum - PENALTY, 0)
        state.lowest = spectrum[:, 0]

        leader = lead(np.matvec(x, state.theta))
        y = rivals(x, leader)
        gaps = -np.matvec(y, state.theta)
        log_det = np.log1p(spectrum / (self.u * state.base[:, None])).sum(axis=1)
        threshold = (1 + self.u) * self.noise_scale**2 * (log_det / 2 - np.log(self.delta))
        factor = np.sqrt(2 * threshold)[:, None]
        beaten = gaps > factor * np.sqrt(squared_norms(state.root, y))
        beaten[np.arange(state.paths), leader] = True
        spanned = state.lowest >= state.base * (1 - 1e-9)  # equal but for rounding is enough
        sure = spanned & beaten.all(axis=1)
        (paths,) = np.nonzero(sure & (state.answer < 0))
        if len(paths):  # confirm without the ridge penalty, which shrinks estimates
            lag, width = state.least_squares(paths, y[paths])
            beaten[paths] = -lag > factor[paths] * width
            beaten[paths, leader[paths]] = True
            state.settle(sure & beaten.all(axis=1), leader)

        due = _due(state.decisions + 1, state.dim) & (state.answer < 0)
        if due.any():
            state.weights[due] = _design(x[due], y[due], gaps[due])


def _basis(state: _Tracking, arms: Array) -> tuple[Index, Array]:
    """Return A₀ and λ_min(Σ_{A₀} x xᵀ), computed where they are not known yet."""
    basis, base = state.basis.copy(), state.base.copy()
    new = np.flatnonzero(basis[:, 0] < 0)
    if len(new):
        basis[new], base[new] = spanning(arms[new])
    return basis, base


def _underexplored(state: _Tracking, base: Array) -> NDArray[np.bool_]:
    """Return whether some direction was measured too little: λ_min(A) < c₀√t."""
    least = base * np.sqrt((state.decisions + 1) / state.dim)
    return np.asarray(state.lowest < least * (1 - 1e-9))  # equal but for rounding is enough


def _due(t: Index, dim: int) -> NDArray[np.bool_]:
    """Return whether t is d, 2d, 4d, …."""
    times = t // dim
    return np.asarray((t % dim == 0) & (times & (times - 1) == 0))


def _design(arms: Array, y: Array, gaps: Array) -> Array:
    """Return the optimal design for the estimated gaps, uniform where they are undefined."""
    solvable = np.isfinite(gaps).all(axis=1) & (gaps.max(axis=1) > 0)
    weights = np.full(gaps.shape, 1 / gaps.shape[1])
    if solvable.any():
        gaps = gaps[solvable] / gaps[solvable].max(axis=1, keepdims=True)
        directions = y[solvable] / np.maximum(gaps, 1e-6)[:, :, None]  # ties must stay finite
        weights[solvable] = optimal_design(arms[solvable], directions)[0]
    return weights
