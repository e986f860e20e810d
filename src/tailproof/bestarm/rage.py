"""RAGE: elimination in phases, each with twice the precision."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tailproof.bestarm.base import PENALTY, BestArm, in_unit
from tailproof.bestarm.design import optimal_design, rounded
from tailproof.bestarm.elimination import Phases, active_pairs
from tailproof.checks import NonNegative, Positive, Range
from tailproof.policies.base import Array, Index, picked
from tailproof.policies.state.base import ArmCounts

__all__ = ["RAGE"]

_ROUNDING = 0.1  # η of the source: the share of precision that rounding to whole pulls may cost


@dataclass(eq=False)
class _Planned(Phases):
    """A phase, and how often each arm is still to be pulled in it (`plan`), of shape (paths, K)."""

    plan: ArmCounts


@dataclass(frozen=True, kw_only=True)
class RAGE(BestArm[_Planned]):
    """In phase t, measure the differences of the remaining arms to a precision of 2^−(t+2).

    w = argmin_w max_{y ∈ Y(Z_t)} ‖y‖²_{A(w)⁻¹} with value ρ,  δ_t = δ/t²,
    N_t = max(⌈8 (2^{t+offset})² σ² ρ (1 + η) ln(2K²/δ_t)⌉, 2|supp w|/η) pulls by rounding w,
    eliminate z if some z' has (z' − z)ᵀθ̂ ≥ σ √(2 ln(2K²/δ_t)) ‖z' − z‖_{A⁻¹}

    Parameters
    ----------
    offset : int
        1 is the published algorithm; the authors' code begins with −1, a coarser first phase.
    delta, noise_scale, gap_tolerance : float
        δ, the error probability; σ, the sub-Gaussian noise scale; ε, the tolerated gap to the best.

    Examples
    --------
    >>> policy, rng = RAGE(noise_scale=0.5), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> while not policy.stopped(state).all():
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [[float(chosen[0])]])
    >>> policy.recommend(state).tolist(), state.decisions.tolist()
    ([1], [715])

    Source: Fiez, Jain, Jamieson and Ratliff 2019, algorithm 1, with η = 1/10.
    Differences: 2K² for K² in the logarithm and the width itself for its bound 2^−(t+2), both as
    in the authors' code, so that the phases add up to less than δ; a scale σ; a tolerance ε.

    Kind: best arm, linear.
    Needs: σ, δ.
    Accepts a near-best arm: with `gap_tolerance`.
    Learns without a mean: no.
    """

    noise_scale: Positive = 1.0
    gap_tolerance: NonNegative = 0.0
    offset: Annotated[int, Range(at_least=-10, at_most=10)] = 1

    def _init(self, paths: int, arms: int, dim: int) -> _Planned:
        return _Planned.start(paths, arms, dim, PENALTY)

    def _choose(self, state: _Planned, arms: Array, rng: np.random.Generator) -> Index:
        return np.asarray(self._planned(state, arms).argmax(axis=1))

    def _learn(self, state: _Planned, arms: Array, chosen: Index, rewards: Array) -> None:
        at = np.arange(state.paths), chosen
        state.plan = self._planned(state, arms)
        state.plan[at] = np.maximum(state.plan[at] - 1, 0)
        x, state.unit = in_unit(arms)
        state.update(picked(x, chosen), rewards)
        over = np.flatnonzero(~state.plan.any(axis=1))
        if len(over):
            factor = self.noise_scale * np.sqrt(2 * self._log(state)[over])
            state.finish(x, over, factor, self.gap_tolerance)

    def _log(self, state: _Planned) -> Array:
        """Return ln(2K²/δ_t)."""
        return np.asarray(np.log(2 * state.arms**2 * state.phase**2 / self.delta))

    def _planned(self, state: _Planned, arms: Array) -> Index:
        """Return how often each arm is still to be pulled; a path without a plan gets a new one."""
        plan = state.plan.copy()
        new = np.flatnonzero(~plan.any(axis=1))
        if len(new):
            y = active_pairs(arms[new], state.active[new])
            weights, value = optimal_design(arms[new], y)
            value = np.where(state.answer[new] < 0, value, 0)  # nothing left to measure
            step = 2.0 ** np.minimum(state.phase[new] + self.offset, 25)
            scale = 8 * step**2 * self.noise_scale**2 * (1 + _ROUNDING)
            pulls = np.ceil(scale * value * self._log(state)[new])
            least = np.ceil(2 / _ROUNDING * (weights > 0).sum(axis=1))
            pulls = np.clip(pulls, least, 1e15)  # the largest budget of a path
            plan[new] = rounded(weights, pulls.astype(np.int64))
        return plan
