"""XY-adaptive: XY-allocation in phases, on the differences of the remaining arms."""

import math
from dataclasses import dataclass

import numpy as np

from tailproof.bestarm.base import PENALTY, BestArm, in_unit
from tailproof.bestarm.design import greedy
from tailproof.bestarm.elimination import Phases, active_pairs
from tailproof.checks import Fraction, NonNegative, Positive
from tailproof.policies.base import Array, Index, pick_largest, picked
from tailproof.policies.state.regression import squared_norms

__all__ = ["XYAdaptive"]


@dataclass(eq=False)
class _Goals(Phases):
    """A phase, its number of pulls n so far, and the ρ/n at the end of the previous phase."""

    pulls: Index
    goal: Array


@dataclass(frozen=True, kw_only=True)
class XYAdaptive(BestArm[_Goals]):
    """XY-allocation in phases, each for the remaining arms and with its own samples.

    In phase j pull argmin_x max_{y ∈ Y_j} ‖y‖_{(A + x xᵀ)⁻¹} until ρ_j/n_j ≤ α ρ_{j−1}/n_{j−1},
    where ρ_j = max_{y ∈ Y_j} ‖y‖²_{A⁻¹}, ρ_0 = 1 and n_0 = d(d + 1) + 1; then eliminate x if some
    x' has (x' − x)ᵀθ̂ ≥ σ √(2 ln(π²K²j²/(3δ))) ‖x' − x‖_{A⁻¹}

    Parameters
    ----------
    alpha : float
        α, the factor by which each phase reduces ρ/n.
    delta, noise_scale, gap_tolerance : float
        δ, the error probability; σ, the sub-Gaussian noise scale; ε, the tolerated gap to the best.

    Examples
    --------
    >>> policy, rng = XYAdaptive(noise_scale=0.5), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> while not policy.stopped(state).all():
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [[float(chosen[0])]])
    >>> policy.recommend(state).tolist(), state.decisions.tolist()
    ([1], [17])

    Source: Soare, Lazaric and Munos 2014, figure 3; logarithm from the public code of Fiez et al.
    Differences: the ridge penalty of `GAllocation` instead of 1, which would have to widen the
    confidence bounds; ties are broken at random; a tolerance ε.

    Kind: best arm, linear.
    Needs: σ, δ.
    Accepts a near-best arm: with `gap_tolerance`.
    Learns without a mean: no.
    """

    noise_scale: Positive = 1.0
    gap_tolerance: NonNegative = 0.0
    alpha: Fraction = 0.1

    def _init(self, paths: int, arms: int, dim: int) -> _Goals:
        return _Goals.start(
            paths, arms, dim, PENALTY, goal=np.full(paths, 1 / (dim * (dim + 1) + 1))
        )

    def _choose(self, state: _Goals, arms: Array, rng: np.random.Generator) -> Index:
        x, _ = in_unit(arms)
        return pick_largest(-greedy(state.root, x, active_pairs(x, state.active)), rng)

    def _learn(self, state: _Goals, arms: Array, chosen: Index, rewards: Array) -> None:
        x, state.unit = in_unit(arms)
        state.update(picked(x, chosen), rewards)
        state.pulls += 1
        y = active_pairs(x, state.active)
        reached = squared_norms(state.root, y).max(axis=1) / state.pulls
        over = np.flatnonzero(reached <= self.alpha * state.goal)
        if len(over):
            j = state.phase[over]
            log = np.log(math.pi**2 * state.arms**2 * j**2 / (3 * self.delta))
            state.goal[over], state.pulls[over] = reached[over], 0
            state.finish(x, over, self.noise_scale * np.sqrt(2 * log), self.gap_tolerance)
