"""Successive elimination for K unstructured arms."""

from dataclasses import dataclass

import numpy as np

from tailproof.bestarm.base import Active, BestArm, TallyRace, lead
from tailproof.checks import NonNegative, Positive
from tailproof.policies.base import Array, Index, KArmed

__all__ = ["SuccessiveElimination"]


@dataclass(eq=False)
class _Remaining(TallyRace):
    """The sums of K arms, and which are not eliminated (`active`), of shape (paths, K)."""

    active: Active


@dataclass(frozen=True, kw_only=True)
class SuccessiveElimination(KArmed[_Remaining], BestArm[_Remaining]):
    """Pull the arms in turn, and eliminate an arm once its mean is clearly below the largest.

    After t rounds eliminate a if max_b μ̂_b − μ̂_a ≥ 2α_t, α_t = σ √(2 ln(4Kt²/δ)/t); recommend the
    last arm, or the leader when 2α_t ≤ ε. The vectors of the arms are ignored.

    Parameters
    ----------
    delta, noise_scale, gap_tolerance : float
        δ, the error probability; σ, the sub-Gaussian noise scale; ε, the tolerated gap to the best.

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
    Differences: σ-sub-Gaussian rewards, for which c = 4 is enough: 2K Σ_t δ/(4Kt²) < δ; a tolerance
    ε.

    Kind: best arm, K arms.
    Needs: σ, δ, K arms.
    Accepts a near-best arm: with `gap_tolerance`.
    Learns without a mean: no.
    """

    noise_scale: Positive = 1.0
    gap_tolerance: NonNegative = 0.0

    def _init(self, paths: int, arms: int, dim: int) -> _Remaining:
        return _Remaining.start(paths, arms, dim)

    def _choose(self, state: _Remaining, arms: Array, rng: np.random.Generator) -> Index:
        fewest = np.where(state.active, state.counts, np.iinfo(np.int64).max)
        return np.asarray(fewest.argmin(axis=1))

    def _learn(self, state: _Remaining, arms: Array, chosen: Index, rewards: Array) -> None:
        state.update(chosen, rewards[:, 0])
        fewest = np.where(state.active, state.counts, np.iinfo(np.int64).max).min(axis=1)
        most = np.where(state.active, state.counts, 0).max(axis=1)
        over = (fewest == most) & (fewest > 0)  # a round is complete
        t = np.maximum(most, 1)
        log = np.log(4 * state.arms * t.astype(np.float64) ** 2 / self.delta)
        radius = self.noise_scale * np.sqrt(2 * log / t)
        means = np.where(state.active, state.sums / np.maximum(state.counts, 1), -np.inf)
        leader = lead(means)
        beaten = means.max(axis=1, keepdims=True) - means >= 2 * radius[:, None]
        beaten[np.arange(state.paths), leader] = False
        state.active &= ~(beaten & over[:, None])
        alone = state.active.sum(axis=1) == 1
        state.settle(over & (alone | (2 * radius <= self.gap_tolerance)), leader)
