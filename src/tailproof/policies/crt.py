"""CRT: confidence region with truncation."""

import math
from dataclasses import dataclass

import numpy as np

from tailproof.checks import Fraction, MomentOrder, NonNegative, Positive
from tailproof.policies.base import Array, Index, picked
from tailproof.policies.optimism import Optimism
from tailproof.policies.state.regression import Ridge

__all__ = ["CRT"]


@dataclass(frozen=True, kw_only=True)
class CRT(Optimism):
    """Optimism on a ridge estimate of rewards that are set to zero when they are large.

    ŷ_t = y_t 1{|y_t| ≤ t^{1/(2(1+ε))}},  x_{t+1} = argmax_x xᵀθ̂ + bonus·β_t ‖x‖_{A⁻¹},
    β_t = 2 √(2 t^{1/(1+ε)} ln(det(A)^½/δ)) + √(2 v² ln t) + 1,  β_0 = 1

    Parameters
    ----------
    epsilon, moment_bound, delta : float
        ε in (0, 1], v, a bound on the moment of order 1 + ε, and δ, the probability that the
        confidence set misses θ.
    bonus : float
        Multiplies β: 1 is the published algorithm; the paper's experiments used 1/10.

    Examples
    --------
    >>> policy = CRT(epsilon=1, moment_bound=3)
    >>> state = policy.init(paths=1, arms=2, dim=2)
    >>> policy.learn(state, np.eye(2)[None], [0], [[100.0]])
    >>> state.theta.tolist()
    [[0.0, 0.0]]

    Source: Medina and Yang 2016, confidence region with truncation; constants from the public
    scripts of Zhong et al. 2021. Differences: the multiplier `bonus`.

    Kind: linear, heavy tails.
    Needs: ε, moment v, δ.
    Regret: Õ(T^{(2+ε)/(2(1+ε))}).
    Learns without a mean: no.
    """

    epsilon: MomentOrder
    moment_bound: Positive
    delta: Fraction = 0.01
    bonus: NonNegative = 1.0

    def radius(self, state: Ridge) -> Array:
        """Return the radius β of the confidence set in each path."""
        t = np.maximum(state.decisions, 1.0)
        spread = 4 * state.log_det + 8 * math.log(1 / self.delta)
        beta = np.sqrt(t ** (1 / (1 + self.epsilon)) * spread)
        beta += np.sqrt(2 * self.moment_bound**2 * np.log(t)) + 1
        beta[state.decisions == 0] = 1.0
        return beta

    def _learn(self, state: Ridge, arms: Array, chosen: Index, rewards: Array) -> None:
        level = (state.decisions + 1) ** (1 / (2 * (1 + self.epsilon)))
        state.update(picked(arms, chosen), np.where(np.abs(rewards) > level[:, None], 0.0, rewards))
