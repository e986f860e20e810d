"""OFUL: optimism in the face of uncertainty for linear bandits."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tailproof.checks import Fraction, NonNegative, Penalty, Positive
from tailproof.policies.base import Array
from tailproof.policies.optimism import Optimism
from tailproof.policies.state.regression import Ridge

__all__ = ["OFUL"]


@dataclass(frozen=True, kw_only=True)
class OFUL(Optimism):
    """Pull the arm whose reward is largest under the most favourable plausible θ.

    x_t = argmax_x xᵀθ̂ + bonus·β ‖x‖_{V⁻¹},
    β = R √(2 ln(det(V)^½ det(λI)^{−½} / δ)) + √λ S

    Parameters
    ----------
    noise_scale, delta : float
        R, the sub-Gaussian noise scale, and δ, the probability that the confidence set misses θ.
    norm_bound, ridge : float
        S, a bound on ‖θ‖, and λ, the ridge penalty.
    bonus : float
        Multiplies β: 1 is the published algorithm, 0 is greedy.

    Examples
    --------
    >>> policy, rng = OFUL(), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> for _ in range(100):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [[float(chosen[0])]])
    >>> bool(state.theta[0, 1] > 0.9)
    True

    Source: Abbasi-Yadkori, Pál and Szepesvári 2011, figure 1 and theorem 2.
    Differences: a finite arm set at each decision; the multiplier `bonus`. The noise is assumed
    sub-Gaussian: after an infinite reward the path has no estimate and plays at random.

    Kind: linear.
    Needs: noise scale R, δ, λ, S.
    Regret: Õ(d √T).
    Learns without a mean: no.
    """

    noise_scale: Positive = 1.0
    norm_bound: NonNegative = 1.0
    ridge: Penalty = 1.0
    delta: Fraction = 0.01
    bonus: NonNegative = 1.0

    def radius(self, state: Ridge) -> Array:
        """Return the radius β of the confidence set in each path."""
        spread = np.sqrt(state.log_det + 2 * math.log(1 / self.delta))
        return self.noise_scale * spread + math.sqrt(self.ridge) * self.norm_bound

    def covers(self, state: Ridge, theta: ArrayLike) -> NDArray[np.bool_]:
        """Return whether θ lies in the confidence set of each path.

        With probability at least 1 − δ it does so at every decision, for noise with
        E exp(sη) ≤ exp(R²s²/2) given the past, and ‖θ‖ ≤ S.
        """
        error = np.asarray(theta, dtype=np.float64) - state.theta
        inside = np.linalg.solve(state.root, error[..., None])[..., 0]
        return np.asarray(np.linalg.norm(inside, axis=1) <= self.radius(state))
