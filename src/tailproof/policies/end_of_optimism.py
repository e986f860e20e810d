"""The algorithm of "The End of Optimism?": warm up, follow the optimal allocation, recover."""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import Count, Horizon, NonNegative, Penalty, Positive
from tailproof.policies.base import Array, Index, Policy, pick_largest, picked
from tailproof.policies.spanning import Basis, spanning_basis
from tailproof.policies.state.base import ArmCounts, ArmValues, Finite, Rule
from tailproof.policies.state.regression import Ridge
from tailproof.stats.designs import exploration_rates

__all__ = ["EndOfOptimism"]


@dataclass(eq=False)
class _Plan(Ridge):
    """A regression, the plan that it led to, and the recovery.

    Attributes
    ----------
    basis : array of shape (paths, d)
        Arms that span the space, −1 before the first decision.
    counts, plan, believed : arrays of shape (paths, K)
        Pulls N_a; the pulls planned after the warm-up, ∞ for the arm believed best; xᵀθ̂ then.
    tolerance : array of shape (paths,)
        How far xᵀθ̂ may move before the plan is given up.
    recovering : array of shape (paths,)
        Whether the plan was given up; from then on `pulls` and `sums` count for every arm.
    """

    fixed_arms = True
    basis: Basis
    counts: ArmCounts
    plan: ArmValues
    believed: ArmValues
    tolerance: Finite
    recovering: Annotated[NDArray[np.bool_], Rule()]
    pulls: ArmCounts
    sums: ArmValues


@dataclass(frozen=True, kw_only=True)
class EndOfOptimism(Policy[_Plan]):
    """Estimate θ once, plan the exploration that is optimal for it, and follow the plan.

    1. Warm-up: pull each of d arms that span the space w = ⌈√ln T⌉ times.
    2. Success: with xᵀθ̂ of the warm-up and c as in `OSSB`, pull every arm n_a = ½ f c_a times,
       f = 2 (1 + 1/ln T) ln T + d ln(d ln T), and from then on the arm that was best.
    3. Recovery: as soon as max_x |xᵀθ̂_t − xᵀθ̂| > 2ε, forget all rewards and play UCB,
       ε = σ max_x ‖x‖_{A⁻¹} √g after the warm-up, g = 2 (1 + 1/ln T) ln ln T + d ln(d ln T).

    As T → ∞ its regret is the least possible, Σ c_a Δ_a ln T, which neither optimism nor Thompson
    sampling attains. Before that it is a proof more than a tool: with w = 4 pulls, the estimate
    that the plan rests on is mostly noise unless the gaps are larger than σ. Use `OSSB`.

    Parameters
    ----------
    horizon : int
        T, the number of decisions.
    warmup : int, optional
        w. More than ⌈√ln T⌉ helps at every horizon that can be simulated.
    noise_scale, ridge : float
        σ, the scale of normal noise, and λ, the ridge penalty of θ̂.
    slack : float
        Multiplies d ln(d ln T) in f and g; the source leaves this constant open.

    Examples
    --------
    >>> policy, rng = EndOfOptimism(horizon=200, noise_scale=0.1), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> for _ in range(200):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [[float(chosen[0])]])
    >>> state.counts.tolist(), state.recovering.tolist()
    ([[3, 197]], [False])

    Source: Lattimore and Szepesvári 2017, algorithm 1, from its abstract and from memory; its text
    could not be read. Differences: `spanning` arms in place of a barycentric spanner; the constant
    of d ln(d ln T) is `slack`; in the recovery UCB is `UCB1` with index mean + σ√(2 ln t/n).

    Kind: linear.
    Needs: T, σ, fixed arms.
    Regret: least possible as T → ∞.
    Learns without a mean: no.
    """

    horizon: Horizon
    warmup: Count | None = None
    noise_scale: Positive = 1.0
    ridge: Penalty = 1e-6
    slack: NonNegative = 1.0

    @property
    def rounds(self) -> int:
        """w, the pulls of each spanning arm in the warm-up."""
        return self.warmup or math.ceil(math.sqrt(math.log(self.horizon)))

    def estimate(self, state: _Plan) -> Array:
        """Return the ridge estimate of θ."""
        return state.theta

    def _init(self, paths: int, arms: int, dim: int) -> _Plan:
        return _Plan.start(paths, arms, dim, self.ridge)

    def _choose(self, state: _Plan, arms: Array, rng: np.random.Generator) -> Index:
        rows = np.arange(state.paths)
        first = spanning_basis(state.basis, arms)[rows, state.decisions % state.dim]
        ahead = state.counts - state.plan  # −∞ for the arm believed best
        short = np.where(np.isfinite(ahead), ahead, np.inf) < 0
        planned = np.where(short.any(axis=1), short.argmax(axis=1), state.plan.argmax(axis=1))
        n = np.maximum(state.pulls, 1)
        t = state.pulls.sum(axis=1, keepdims=True) + 1
        index = state.sums / n + self.noise_scale * np.sqrt(2 * np.log(t) / n)
        index = np.where(state.pulls == 0, np.inf, index)
        chosen = np.where(state.recovering, pick_largest(index, rng), planned)
        return np.where(state.decisions < self.rounds * state.dim, first, chosen)

    def _learn(self, state: _Plan, arms: Array, chosen: Index, rewards: Array) -> None:
        state.basis, at = spanning_basis(state.basis, arms), (np.arange(state.paths), chosen)
        state.counts[at] += 1
        state.pulls[at] += state.recovering
        state.sums[at] += np.where(state.recovering, rewards[:, 0], 0.0)
        state.update(picked(arms, chosen), rewards)
        warm, t = self.rounds * state.dim, state.decisions + 1
        (rows,) = np.nonzero(t == warm)
        if len(rows):
            self._make_plan(state, arms, rows)
        moved = np.abs(np.matvec(arms, state.theta) - state.believed).max(axis=1)
        state.recovering |= (t > warm) & ~(moved <= state.tolerance)

    def _make_plan(self, state: _Plan, arms: Array, rows: Index) -> None:
        """Plan the pulls of every arm, in the paths whose warm-up is over."""
        x, theta, log = arms[rows], state.theta[rows], math.log(self.horizon)
        extra = self.slack * state.dim * max(math.log(state.dim * log), 0.0)
        f, g = (2 * (1 + 1 / log) * part + extra for part in (log, max(math.log(log), 0.0)))
        rates, _ = exploration_rates(
            x, theta, noise_scale=self.noise_scale, least_gap=self.noise_scale / self.horizon
        )
        state.believed[rows] = np.matvec(x, theta)
        plan = np.minimum(np.ceil(f * rates / 2), self.horizon)
        plan[np.arange(len(rows)), state.believed[rows].argmax(axis=1)] = np.inf
        state.plan[rows] = plan
        width = np.linalg.norm(x @ state.root[rows], axis=2).max(axis=1)
        state.tolerance[rows] = 2 * self.noise_scale * math.sqrt(g) * width
