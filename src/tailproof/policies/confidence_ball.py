"""ConfidenceBall: the first optimistic linear bandit with an ellipsoid."""

import math
from dataclasses import dataclass

import numpy as np

from tailproof.checks import Fraction, NonNegative, Penalty
from tailproof.policies.base import Array
from tailproof.policies.optimism import Optimism
from tailproof.policies.state.regression import Ridge

__all__ = ["ConfidenceBall"]


@dataclass(frozen=True, kw_only=True)
class ConfidenceBall(Optimism):
    """Pull the arm whose reward is largest for some θ in an ellipsoid around the estimate.

    x_t = argmax_x xᵀθ̂ + bonus·√β_t ‖x‖_{A⁻¹},
    β_t = max(128 d ln t ln(t²/δ), (8/3 ln(t²/δ))²)

    Parameters
    ----------
    delta, ridge : float
        δ, the probability that the ellipsoid misses θ, and the start A = ridge·I.
    bonus : float
        Multiplies √β_t: 1, the published algorithm, explores through usual horizons; 0 is greedy.

    Examples
    --------
    >>> policy, rng = ConfidenceBall(bonus=0.05), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> for _ in range(100):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [[float(chosen[0])]])
    >>> bool(state.theta[0, 1] > 0.9)
    True

    Source: Dani, Hayes and Kakade 2008, ConfidenceBall₂; β_t from memory. Differences: A starts at
    ridge·I, where the source sums b bᵀ over a barycentric spanner of its one decision set, which
    changing arms do not have; a finite arm set at each decision; the multiplier `bonus`. Rewards
    are assumed bounded by 1: after an infinite one a path has no estimate and plays at random.

    Kind: linear.
    Needs: δ.
    Regret: Õ(d √T).
    Learns without a mean: no.
    """

    delta: Fraction = 0.01
    ridge: Penalty = 1.0
    bonus: NonNegative = 1.0

    def radius(self, state: Ridge) -> Array:
        """Return √β_t, the radius of the ellipsoid, in each path."""
        t = state.decisions + 1
        log = 2 * np.log(t) + math.log(1 / self.delta)
        return np.sqrt(np.maximum(128 * state.dim * np.log(t) * log, (8 / 3 * log) ** 2))
