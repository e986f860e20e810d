"""G- and XY-allocation: greedy pulls that do not depend on the rewards."""

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from tailproof.bestarm.base import PENALTY, BestArm, Race, in_unit, lead, rivals
from tailproof.bestarm.design import greedy, pairs
from tailproof.checks import NonNegative, Positive
from tailproof.policies.base import Array, Index, pick_largest, picked
from tailproof.policies.state.regression import squared_norms

__all__ = ["GAllocation", "XYAllocation"]


@dataclass(frozen=True, kw_only=True)
class _Allocation(BestArm[Race]):
    """Pull argmin_x max_y ‖y‖_{(A + x xᵀ)⁻¹}; a subclass defines the directions y."""

    noise_scale: Positive = 1.0
    gap_tolerance: NonNegative = 0.0

    @abstractmethod
    def directions(self, arms: Array) -> Array:
        """Return the directions y, of shape (paths, M, d)."""

    def estimate(self, state: Race) -> Array:
        """Return the estimate of θ, with the ridge penalty."""
        return state.estimate

    def _init(self, paths: int, arms: int, dim: int) -> Race:
        return Race.start(paths, arms, dim, PENALTY)

    def _choose(self, state: Race, arms: Array, rng: np.random.Generator) -> Index:
        x, _ = in_unit(arms)
        return pick_largest(-greedy(state.root, x, self.directions(x)), rng)

    def _learn(self, state: Race, arms: Array, chosen: Index, rewards: Array) -> None:
        x, state.unit = in_unit(arms)
        state.update(picked(x, chosen), rewards)
        leader = lead(np.matvec(x, state.theta))
        y = rivals(x, leader)
        union = math.log(6 / math.pi**2 * state.arms**2 / self.delta)
        log = 2 * np.log(state.decisions + 1) + union
        factor = self.noise_scale * np.sqrt(8 * log)[:, None]
        doubt = np.matvec(y, state.theta) + factor * np.sqrt(squared_norms(state.root, y))
        sure = (doubt <= self.gap_tolerance).all(axis=1)
        (paths,) = np.nonzero(sure & (state.answer < 0))
        if len(paths):  # confirm without the ridge penalty, which shrinks estimates
            lag, width = state.least_squares(paths, y[paths])
            sure[paths] = (lag + factor[paths] * width <= self.gap_tolerance).all(axis=1)
            state.settle(sure, leader)


@dataclass(frozen=True, kw_only=True)
class GAllocation(_Allocation):
    """Pull so that every arm is estimated well, until one beats the others at confidence 1 − δ.

    x_t = argmin_x max_{x' ∈ X} ‖x'‖_{(A + x xᵀ)⁻¹};  recommend x when for every x'
    (x − x')ᵀθ̂ + ε ≥ 2√2 σ ‖x − x'‖_{A⁻¹} √(ln((6/π²) n² K²/δ))

    Parameters
    ----------
    delta, noise_scale, gap_tolerance : float
        δ, the error probability; σ, the sub-Gaussian noise scale; ε, the tolerated gap to the best.

    Examples
    --------
    >>> policy, rng = GAllocation(noise_scale=0.5), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> while not policy.stopped(state).all():
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [[float(chosen[0])]])
    >>> policy.recommend(state).tolist(), state.decisions.tolist()
    ([1], [106])

    Source: Soare, Lazaric and Munos 2014, figure 1 and section 3.
    Differences: until the arms pulled span the space a ridge penalty of 10⁻⁴ of the longest arm's
    square affects the pulls, not the answer. Ties are broken at random; a tolerance ε.

    Kind: best arm, linear.
    Needs: σ, δ.
    Accepts a near-best arm: with `gap_tolerance`.
    Learns without a mean: no.
    """

    def directions(self, arms: Array) -> Array:
        """Return the arms."""
        return arms


@dataclass(frozen=True, kw_only=True)
class XYAllocation(_Allocation):
    """Pull so that differences of arms are estimated well, until one beats the others at 1 − δ.

    x_t = argmin_x max_{x', x'' ∈ X} ‖x' − x''‖_{(A + x xᵀ)⁻¹};  recommend x as in `GAllocation`

    The parameters are those of `GAllocation`.

    >>> policy, rng = XYAllocation(noise_scale=0.5), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> while not policy.stopped(state).all():
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [[float(chosen[0])]])
    >>> policy.recommend(state).tolist(), state.decisions.tolist()
    ([1], [106])

    Source: Soare, Lazaric and Munos 2014, section 4. Differences: as in `GAllocation`.

    Kind: best arm, linear.
    Needs: σ, δ.
    Accepts a near-best arm: with `gap_tolerance`.
    Learns without a mean: no.
    """

    def directions(self, arms: Array) -> Array:
        """Return the differences of arms."""
        return pairs(arms)[2]
