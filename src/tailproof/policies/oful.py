"""OFUL: optimism in the face of uncertainty, linear."""

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
    noise_scale : float
        R, the sub-Gaussian scale of the noise.
    norm_bound : float
        S, a bound on the norm of θ.
    ridge : float
        λ, the penalty of the regression.
    delta : float
        δ, the probability with which the confidence set may fail.
    bonus : float
        Multiplies the radius β: 1 is the published algorithm, 0 plays greedily.

    Examples
    --------
    >>> policy, rng = OFUL(), np.random.default_rng(0)
    >>> state = policy.init(paths=1, arms=2, dim=2)
    >>> arms = np.eye(2)[None]
    >>> for _ in range(100):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [[float(chosen[0])]])
    >>> bool(state.theta[0, 1] > 0.9)
    True

    Source: Abbasi-Yadkori, Pál and Szepesvári 2011, figure 1 and theorem 2.
    Differences: a finite arm set at each decision; the multiplier `bonus`. The noise is assumed
    sub-Gaussian: after an infinite reward a path knows nothing any more and plays at random.
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
        """Return whether θ lies in the confidence set of each path: always but with probability δ.

        This is proved for noise with E exp(sη) ≤ exp(R²s²/2) given the past, and ‖θ‖ ≤ S.
        """
        error = np.asarray(theta, dtype=np.float64) - state.theta
        inside = np.linalg.solve(state.root, error[..., None])[..., 0]
        return np.asarray(np.linalg.norm(inside, axis=1) <= self.radius(state))
