"""LinTS: linear Thompson sampling."""

from dataclasses import dataclass

import numpy as np

from tailproof.checks import Fraction, NonNegative, Penalty, Positive
from tailproof.policies.base import Array, Index, Policy, pick_largest, picked
from tailproof.policies.state.regression import Ridge

__all__ = ["LinTS"]


@dataclass(frozen=True, kw_only=True)
class LinTS(Policy[Ridge]):
    """Pull the arm that is best for a θ drawn at random around the estimate.

    x_t = argmax_x xᵀθ̃,  θ̃ ~ N(θ̂, (bonus·v)² V⁻¹),  v = R √(9 d ln(t/δ))

    Parameters
    ----------
    noise_scale, ridge : float
        R, the sub-Gaussian scale of the noise, and λ, the ridge penalty: V = λI + Σ x xᵀ.
    delta : float
        δ, the probability that the regret bound fails.
    bonus : float
        Multiplies v: 1 is the published algorithm, 0 is greedy; 1/√(9 d ln(t/δ)), about 0.1,
        samples from the posterior under a normal prior.

    Examples
    --------
    >>> policy, rng = LinTS(bonus=0.1), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> for _ in range(100):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [[float(chosen[0])]])
    >>> bool(state.theta[0, 1] > 0.9)
    True

    Source: Agrawal and Goyal 2013, algorithm 1; the constant 9 of v is confirmed in public text,
    there with ln(T/δ) for a horizon T. Differences: the penalty `ridge` (1 in the source) and the
    multiplier `bonus`. The noise is assumed sub-Gaussian: after an infinite reward a path has no
    estimate and plays at random. The constant 9 is from memory.

    Kind: linear.
    Needs: noise scale R, δ.
    Regret: Õ(d^{3/2} √T).
    Learns without a mean: no.
    """

    noise_scale: Positive = 1.0
    ridge: Penalty = 1.0
    delta: Fraction = 0.01
    bonus: NonNegative = 1.0

    def spread(self, state: Ridge) -> Array:
        """Return v, the scale of the next draw, in each path."""
        spread: Array = np.sqrt(9 * state.dim * np.log((state.decisions + 1) / self.delta))
        return self.noise_scale * spread

    def estimate(self, state: Ridge) -> Array:
        """Return the ridge estimate of θ."""
        return state.theta

    def _init(self, paths: int, arms: int, dim: int) -> Ridge:
        return Ridge.start(paths, arms, dim, self.ridge)

    def _choose(self, state: Ridge, arms: Array, rng: np.random.Generator) -> Index:
        normal = rng.standard_normal((state.paths, state.dim))
        noise = self.bonus * self.spread(state)[:, None] * np.matvec(state.root, normal)
        return pick_largest(np.matvec(arms, state.theta + noise), rng)

    def _learn(self, state: Ridge, arms: Array, chosen: Index, rewards: Array) -> None:
        state.update(picked(arms, chosen), rewards)
