"""LinGapE: measure the gap that is most in doubt."""

import math
from dataclasses import dataclass

import numpy as np

from tailproof.bestarm.base import NearBestArm, Race, lead, rivals
from tailproof.bestarm.design import greedy
from tailproof.checks import number
from tailproof.policies.base import Array, Index, pick_largest, picked
from tailproof.policies.ridge import squared_norms

__all__ = ["LinGapE"]


@dataclass(eq=False)
class _Doubt(Race):
    """A regression, with the leading arm and the one most likely to be better."""

    leader: Index
    rival: Index


@dataclass(frozen=True, kw_only=True)
class LinGapE(NearBestArm[_Doubt]):
    """Pull what tells the leader best from its most dangerous rival.

    i = argmax_a x_aᵀθ̂,  j = argmax_a (x_a − x_i)ᵀθ̂ + C ‖x_a − x_i‖_{A⁻¹},
    C = σ √(2 ln(K² det(A)^½ det(λI)^{−½} / δ)) + √λ S;
    name i when that maximum is ≤ ε, else pull argmin_x ‖x_i − x_j‖_{(A + x xᵀ)⁻¹}

    Parameters
    ----------
    norm_bound : float
        S, a bound on the norm of θ.
    ridge : float
        λ, the penalty of the regression; σ² is a good size where σ is far from 1.
    delta, noise_scale, epsilon : float
        δ, σ and ε.

    Examples
    --------
    >>> policy, rng = LinGapE(noise_scale=0.5), np.random.default_rng(0)
    >>> memory, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> while not policy.stopped(memory).all():
    ...     chosen = policy.choose(memory, arms, rng)
    ...     policy.learn(memory, arms, chosen, [[float(chosen[0])]])
    >>> policy.recommend(memory).tolist(), memory.decisions.tolist()
    ([1], [36])

    Source: Xu, Honda and Sugiyama 2018, algorithm 1. Differences: the greedy choice of the
    source's experiments, not the ratio rule of its proof; first each arm once, in order.
    """

    norm_bound: float = 1.0
    ridge: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        number("norm_bound", self.norm_bound, at_least=0)
        number("ridge", self.ridge, at_least=1e-8)

    def estimate(self, memory: _Doubt) -> Array:
        """Return the ridge estimate of θ."""
        return memory.theta

    def _init(self, paths: int, arms: int, dim: int) -> _Doubt:
        leader, rival = np.zeros((2, paths), dtype=np.int64)
        return _Doubt.start(paths, arms, dim, self.ridge, leader=leader, rival=rival)

    def _choose(self, memory: _Doubt, arms: Array, rng: np.random.Generator) -> Index:
        y = picked(arms, memory.leader) - picked(arms, memory.rival)
        best = pick_largest(-greedy(memory.inverse, arms, y[:, None, :]), rng)
        return np.where(memory.decisions < memory.arms, memory.decisions, best)

    def _learn(self, memory: _Doubt, arms: Array, chosen: Index, rewards: Array) -> None:
        memory.update(arms, chosen, rewards[:, 0])
        memory.leader = lead(np.matvec(arms, memory.theta))
        y = rivals(arms, memory.leader)
        width = np.sqrt(np.maximum(squared_norms(memory.inverse, y), 0))
        log = memory.log_det / 2 + math.log(memory.arms**2 / self.delta)
        radius = self.noise_scale * np.sqrt(2 * log) + math.sqrt(self.ridge) * self.norm_bound
        doubt = np.matvec(y, memory.theta) + radius[:, None] * width
        memory.rival = lead(doubt)
        tried = memory.decisions + 1 >= memory.arms
        memory.settle(tried & (doubt.max(axis=1) <= self.epsilon), memory.leader)
