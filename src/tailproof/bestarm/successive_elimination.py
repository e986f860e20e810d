"""Successive elimination for K arms without structure."""

from dataclasses import dataclass

import numpy as np

from tailproof.bestarm.base import Active, NearBestArm, TallyRace, lead
from tailproof.policies.base import Array, Index, KArmed

__all__ = ["SuccessiveElimination"]


@dataclass(eq=False)
class _Standing(TallyRace):
    """Sums, and the arms still in the race, of shape (paths, K)."""

    active: Active


@dataclass(frozen=True, kw_only=True)
class SuccessiveElimination(KArmed[_Standing], NearBestArm[_Standing]):
    """Pull the arms in turn, and drop each that is clearly not the best.

    After t rounds drop a if max_b μ̂_b − μ̂_a ≥ 2α_t, α_t = σ √(2 ln(4Kt²/δ)/t); name the last
    arm, or the leader when 2α_t ≤ ε. The vectors of the arms are ignored.

    Parameters
    ----------
    delta, noise_scale, gap_tolerance : float
        δ, σ and ε.

    Examples
    --------
    >>> policy, rng = SuccessiveElimination(noise_scale=0.5), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> while not policy.stopped(state).all():
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [[float(chosen[0])]])
    >>> policy.recommend(state).tolist(), state.decisions.tolist()
    ([1], [46])

    Source: Even-Dar, Mannor and Mansour 2006, algorithm 3, where c > 4 for rewards in [0, 1].
    Differences: σ-sub-Gaussian rewards, for which c = 4 is enough: 2K Σ_t δ/(4Kt²) < δ; ε.
    """

    def _init(self, paths: int, arms: int, dim: int) -> _Standing:
        return _Standing.start(paths, arms, dim)

    def _choose(self, state: _Standing, arms: Array, rng: np.random.Generator) -> Index:
        fewest = np.where(state.active, state.counts, np.iinfo(np.int64).max)
        least: Index = fewest.argmin(axis=1)
        return least

    def _learn(self, state: _Standing, arms: Array, chosen: Index, rewards: Array) -> None:
        state.update(chosen, rewards[:, 0])
        fewest = np.where(state.active, state.counts, np.iinfo(np.int64).max).min(axis=1)
        most = np.where(state.active, state.counts, 0).max(axis=1)
        over = (fewest == most) & (fewest > 0)  # a round is complete
        t = np.maximum(most, 1)
        radius = self.noise_scale * np.sqrt(
            2 * np.log(4 * state.arms * t.astype(np.float64) ** 2 / self.delta) / t
        )
        means = np.where(state.active, state.sums / np.maximum(state.counts, 1), -np.inf)
        leader = lead(means)
        beaten = means.max(axis=1, keepdims=True) - means >= 2 * radius[:, None]
        beaten[np.arange(state.paths), leader] = False
        state.active &= ~(beaten & over[:, None])
        alone = state.active.sum(axis=1) == 1
        state.settle(over & (alone | (2 * radius <= self.gap_tolerance)), leader)
