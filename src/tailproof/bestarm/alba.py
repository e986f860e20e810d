"""ALBA: elimination whose cost grows linearly with the dimension."""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tailproof.bestarm.base import Active, Answer, BestArm, in_unit, lead
from tailproof.checks import Positive
from tailproof.policies.base import Array, Index, picked
from tailproof.policies.state.base import ArmValues, Counts, Rule
from tailproof.stats.designs import optimal_design

__all__ = ["ALBA"]

_STEP = 1.1
"""The accuracy improves by this factor from phase to phase, as in public code."""


@dataclass(eq=False)
class _Race(Answer):
    """The arms still in the race, and where the race stands.

    Attributes
    ----------
    round, phase : arrays of shape (paths,)
        r, how often the dimension was halved, and s, from 1.
    total, left : arrays of shape (paths,)
        The pulls of this phase, and those still to make; 0 before the first plan.
    weights : array of shape (paths, K)
        The design of this phase.
    moments : array of shape (paths, d)
        Σ y x of this phase, in units of the longest arm.
    """

    active: Active
    round: Counts
    phase: Annotated[Index, Rule(least=1, blank=1)]
    total: Counts
    left: Counts
    weights: ArmValues
    moments: Annotated[Array, Rule(("dim",))]


@dataclass(frozen=True, kw_only=True)
class ALBA(BestArm[_Race]):
    """Halve the dimension of the race again and again, measuring the remaining dimensions only.

    Round r = 0, 1, … eliminates arms until at most ⌊d/2^r⌋ are left, with δ_r = 6δ/(π²(r + 1)²).
    Its phases s = 1, 2, … have ε_s = 1.2 max(S, σ)/1.1^{s−1} and δ_s = 6δ_r/(π² s²): draw
    n = ⌈8 ρ (1.2 S² + 1.8 σ²) ln(2K/δ_s)/ε_s²⌉ arms at random from the G-optimal design w of the
    arms left, where ρ = max_x ‖x‖²_{A(w)⁻¹} is their dimension, and eliminate x if

    max_x' x'ᵀθ̂ − xᵀθ̂ > ε_s,  θ̂ = A(w)⁻¹ (1/n) Σ y x

    A(w) belongs to the design, not to the arms drawn: nothing has to be rounded, and no phase needs
    the d² pulls that spread over the design. The pulls are of order Σ_{i=2}^{d} ln(…)/Δ_i² for the
    d smallest gaps Δ_i, where G-allocation needs d/Δ_2².

    Parameters
    ----------
    value_bound : float
        S, a bound on |xᵀθ|: the spread of θ̂ grows with the values themselves.
    delta, noise_scale : float
        δ, the error probability, and σ, the sub-Gaussian scale of the noise.

    Examples
    --------
    >>> policy, rng = ALBA(noise_scale=0.5), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> while not policy.stopped(state).all():
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [[float(chosen[0])]])
    >>> policy.recommend(state).tolist()
    [1]

    Source: Tao, Blanco and Zhou 2018, from its abstract and a public implementation by others; its
    text could not be read. Differences: n was derived again for sub-Gaussian noise and bounded
    values. With a = xᵀA⁻¹x_i, |a| ≤ ρ and Ea² ≤ ρ, so that |s| ρ max(S, σ) ≤ ½ gives ln E exp(s(a y
    − xᵀθ)) ≤ s² ρ (0.6 S² + 0.9 σ²), and then Chernoff's bound at ε_s/2. ε_s falls by the factor
    1.1 a step, as in the public implementation.

    Kind: best arm, linear.
    Needs: σ, S, δ.
    Accepts a near-best arm: no.
    Learns without a mean: no.
    """

    value_bound: Positive = 1.0
    noise_scale: Positive = 1.0

    def _init(self, paths: int, arms: int, dim: int) -> _Race:
        return _Race.start(paths, arms, dim)

    def _choose(self, state: _Race, arms: Array, rng: np.random.Generator) -> Index:
        weights, _ = self._planned(state, in_unit(arms)[0])
        reached = weights.cumsum(axis=1)
        draw = rng.random((state.paths, 1)) * reached[:, -1:]
        return np.asarray((reached[:, :-1] <= draw).sum(axis=1))

    def _learn(self, state: _Race, arms: Array, chosen: Index, rewards: Array) -> None:
        x, _ = in_unit(arms)
        self._plan(state, x)
        state.moments += rewards * picked(x, chosen)
        state.left = np.maximum(state.left - 1, 0)
        over = np.flatnonzero((state.left == 0) & (state.answer < 0))
        if len(over):
            self._eliminate(state, x, over)
            self._plan(state, x)

    def _accuracy(self, state: _Race) -> Array:
        first = 1.2 * max(self.value_bound, self.noise_scale)
        return np.asarray(first / _STEP ** (state.phase - 1.0))

    def _planned(self, state: _Race, arms: Array) -> tuple[Array, Index]:
        """Return the design and the pulls of this phase; paths without them get new ones."""
        weights, total = state.weights.copy(), state.total.copy()
        (new,) = np.nonzero(total == 0)
        if len(new):
            x = arms[new] * state.active[new][:, :, None]
            design, rho = optimal_design(x, x)
            spread = 8 * rho * (1.2 * self.value_bound**2 + 1.8 * self.noise_scale**2)
            share = ((state.round + 1.0) * state.phase)[new]  # of δ: 36/(π⁴ share²)
            log = np.log(2 * state.arms * math.pi**4 * share**2 / (36 * self.delta))
            pulls = np.ceil(spread * log / self._accuracy(state)[new] ** 2)
            weights[new], total[new] = design, np.clip(pulls, 1, 1e15).astype(np.int64)
        return weights, total

    def _plan(self, state: _Race, arms: Array) -> None:
        """Start the phase of the paths that have no plan."""
        new = state.total == 0
        if new.any():
            state.weights, state.total = self._planned(state, arms)
            state.left[new], state.moments[new] = state.total[new], 0.0

    def _eliminate(self, state: _Race, arms: Array, over: Index) -> None:
        """End the phase of some paths: drop arms, halve the dimension if few are left."""
        x, w = arms[over], state.weights[over]
        inverse = np.linalg.pinv(x.mT @ (w[:, :, None] * x), rcond=1e-9, hermitian=True)
        theta = np.matvec(inverse, state.moments[over] / state.total[over][:, None])
        kept = state.active[over]
        values = np.where(kept, np.matvec(x, theta), -np.inf)
        leader = lead(values)
        lag = values[np.arange(len(over)), leader][:, None] - values
        kept = kept & ~(lag > self._accuracy(state)[over][:, None])
        left, halved = kept.sum(axis=1), state.round[over]
        target = np.maximum(state.dim // 2.0**halved, 1)
        reached = left <= target
        jump = np.floor(np.log2(state.dim / np.maximum(left, 1))).astype(np.int64) + 1
        state.round[over] = np.where(reached, np.maximum(halved + 1, jump), halved)
        state.phase[over] = np.where(reached, 1, state.phase[over] + 1)
        state.active[over], state.total[over] = kept, 0
        sure, named = np.zeros(state.paths, dtype=bool), np.zeros(state.paths, dtype=np.int64)
        sure[over], named[over] = left == 1, leader
        state.settle(sure, named)
