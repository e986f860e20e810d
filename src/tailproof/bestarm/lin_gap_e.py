"""LinGapE: measure the gap that is most uncertain."""

import math
from dataclasses import dataclass

import numpy as np

from tailproof.bestarm.base import BestArm, Race, lead, rivals
from tailproof.bestarm.design import greedy
from tailproof.checks import NonNegative, Penalty, Positive
from tailproof.policies.base import Array, Index, pick_largest, picked
from tailproof.policies.state.base import Arms
from tailproof.policies.state.regression import squared_norms

__all__ = ["LinGapE"]


@dataclass(eq=False)
class _Contenders(Race):
    """A regression, with the leading arm and its strongest rival."""

    leader: Arms
    rival: Arms


@dataclass(frozen=True, kw_only=True)
class LinGapE(BestArm[_Contenders]):
    """Pull the arm that best separates the leader from its strongest rival.

    i = argmax_a x_aᵀθ̂,  j = argmax_a (x_a − x_i)ᵀθ̂ + C ‖x_a − x_i‖_{A⁻¹},
    C = σ √(2 ln(K² det(A)^½ det(λI)^{−½} / δ)) + √λ S;
    recommend i when that maximum is ≤ ε, else pull argmin_x ‖x_i − x_j‖_{(A + x xᵀ)⁻¹}

    Parameters
    ----------
    norm_bound, ridge : float
        S, a bound on ‖θ‖, and λ, the ridge penalty; use about σ² where σ is far from 1.
    delta, noise_scale, gap_tolerance : float
        δ, the error probability; σ, the sub-Gaussian noise scale; ε, the tolerated gap to the best.

    Examples
    --------
    >>> policy, rng = LinGapE(noise_scale=0.5), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> while not policy.stopped(state).all():
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [[float(chosen[0])]])
    >>> policy.recommend(state).tolist(), state.decisions.tolist()
    ([1], [36])

    Source: Xu, Honda and Sugiyama 2018, algorithm 1. Differences: the greedy choice of the
    source's experiments, not the ratio rule of its proof; first each arm once, in order.

    Kind: best arm, linear.
    Needs: σ, δ, λ, S.
    Accepts a near-best arm: with `gap_tolerance`.
    Learns without a mean: no.
    """

    noise_scale: Positive = 1.0
    gap_tolerance: NonNegative = 0.0
    norm_bound: NonNegative = 1.0
    ridge: Penalty = 1.0

    def estimate(self, state: _Contenders) -> Array:
        """Return the ridge estimate of θ."""
        return state.theta

    def _init(self, paths: int, arms: int, dim: int) -> _Contenders:
        return _Contenders.start(paths, arms, dim, self.ridge)

    def _choose(self, state: _Contenders, arms: Array, rng: np.random.Generator) -> Index:
        y = picked(arms, state.leader) - picked(arms, state.rival)
        best = pick_largest(-greedy(state.root, arms, y[:, None, :]), rng)
        return np.where(state.decisions < state.arms, state.decisions, best)

    def _learn(self, state: _Contenders, arms: Array, chosen: Index, rewards: Array) -> None:
        state.update(picked(arms, chosen), rewards)
        state.leader = lead(np.matvec(arms, state.theta))
        y = rivals(arms, state.leader)
        width = np.sqrt(squared_norms(state.root, y))
        log = state.log_det / 2 + math.log(state.arms**2 / self.delta)
        radius = self.noise_scale * np.sqrt(2 * log) + math.sqrt(self.ridge) * self.norm_bound
        upper = np.matvec(y, state.theta) + radius[:, None] * width
        state.rival = lead(upper)
        tried = state.decisions + 1 >= state.arms
        state.settle(tried & (upper.max(axis=1) <= self.gap_tolerance), state.leader)
