"""PEGE: cycles that explore a basis and then exploit the estimate."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tailproof.policies.base import Array, Index, Policy, pick_largest, picked
from tailproof.policies.spanning import Basis, spanning_basis
from tailproof.policies.state.regression import Ridge, rank_one_update

__all__ = ["PEGE"]

_PENALTY = 1e-10
"""In the unit of the longest arm: least squares up to rounding."""


@dataclass(eq=False)
class _Explored(Ridge):
    """A regression on exploring decisions alone, and their arms (`basis`, −1 while unknown)."""

    fixed_arms = True
    basis: Basis

    def observe(self, rows: Index, x: Array, y: Array) -> None:
        """Add the observations y at x in some paths."""
        block = self.block[rows]
        self.log_det[rows] += np.log(rank_one_update(block, x, y))
        self.block[rows] = block


@dataclass(frozen=True, kw_only=True)
class PEGE(Policy[_Explored]):
    """Alternate between exploring a basis and exploiting the estimate, for longer in each cycle.

    Cycle c = 1, 2, … takes d + c decisions: x = b₁, …, b_d, and then c times

    x = argmax_x xᵀθ̂(c),  θ̂(c) = (c Σ_k b_k b_kᵀ)⁻¹ Σ_{s ≤ c} Σ_k b_k y_k(s)

    where y_k(s) is the reward of b_k in cycle s; rewards of greedy decisions are ignored. On the
    unit ball (`propose`) b_k is the k-th coordinate vector and the best x is θ̂/‖θ̂‖. For given
    arms, a fixed set that spans the space, each b_k is the arm farthest from the span of the arms
    before it. There is nothing to tune: neither the horizon nor the noise scale is needed.

    >>> policy, rng = PEGE(), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=3, dim=2), np.array([[[1, 0], [0, 1], [0.8, 0.8]]])
    >>> chosen = []
    >>> for _ in range(12):  # three cycles: 2 + 1, 2 + 2, 2 + 3 decisions
    ...     chosen.append(policy.choose(state, arms, rng))
    ...     policy.learn(state, arms, chosen[-1], arms[0, chosen[-1]] @ [[1.0], [2.0]])
    >>> np.concatenate(chosen).tolist()
    [2, 0, 2, 2, 0, 2, 2, 2, 0, 2, 2, 2]

    Source: Rusmevichientong and Tsitsiklis 2010, section 3; its schedule and its theorem 3.1 were
    read in a public formalisation. The theorem, for sub-Gaussian noise: regret at most a (‖θ‖ +
    1/‖θ‖) d √T, where the best arm is unique and moves smoothly with the direction of θ, as on the
    unit ball and other strongly convex sets. For finite sets it says nothing; the d √(2T) exploring
    decisions alone cost of that order. Differences: ties are broken at random; the basis, which the
    source leaves open, is found by pivoting at the first decision; a penalty of 10⁻¹⁰, in the unit
    of the longest arm; where the estimate has no direction, a random direction is played on the
    ball.

    Kind: linear.
    Needs: nothing; a fixed arm set or the unit ball.
    Regret: O(d √T) on the unit ball.
    Learns without a mean: no.
    """

    def estimate(self, state: _Explored) -> Array:
        """Return the least-squares estimate of θ."""
        return state.theta

    def propose(self, state: _Explored, rng: np.random.Generator) -> Array:
        """Return the next coordinate vector, or the direction of the estimate."""
        explores, place = _phase(state)
        fallback = rng.standard_normal((state.paths, state.dim))
        largest = np.abs(state.theta).max(axis=1, keepdims=True)
        estimated = np.isfinite(largest) & (largest > 0)
        target = np.where(estimated, state.theta / np.where(estimated, largest, 1.0), fallback)
        greedy = target / np.linalg.norm(target, axis=1, keepdims=True)
        return np.where(explores[:, None], np.eye(state.dim)[place], greedy)

    def _init(self, paths: int, arms: int, dim: int) -> _Explored:
        return _Explored.start(paths, arms, dim, _PENALTY)

    def _choose(self, state: _Explored, arms: Array, rng: np.random.Generator) -> Index:
        explores, place = _phase(state)
        greedy = pick_largest(np.matvec(arms, state.theta), rng)
        next_of_cycle = spanning_basis(state.basis, arms)[np.arange(state.paths), place]
        return np.where(explores, next_of_cycle, greedy)

    def _learn(self, state: _Explored, arms: Array, chosen: Index, rewards: Array) -> None:
        if state.arms >= state.dim:  # fewer arms: a vector of the unit ball
            state.basis = spanning_basis(state.basis, arms)
        rows = np.flatnonzero(_phase(state)[0])
        if len(rows):
            longest = np.linalg.norm(arms[rows], axis=2).max(axis=1)
            unit = np.where(longest > 0, longest, 1.0)[:, None]
            state.observe(rows, picked(arms, chosen)[rows] / unit, rewards[rows] / unit)


def _phase(state: _Explored) -> tuple[NDArray[np.bool_], Index]:
    """Return whether each path explores now, and the position of its next exploring arm."""
    n, d = state.decisions, state.dim
    # m whole cycles take m d + m (m + 1)/2 decisions; the root is exact up to 10¹⁵ of them
    m = ((np.sqrt((2 * d + 1) ** 2 + 8.0 * n) - (2 * d + 1)) / 2).astype(np.int64)
    place = n - m * d - m * (m + 1) // 2
    return place < d, np.minimum(place, d - 1)
