"""SupLinUCB: layered elimination with a ridge regression on each level."""

import math
from dataclasses import dataclass

import numpy as np

from tailproof.checks import Fraction, Horizon, NonNegative
from tailproof.policies.base import Array
from tailproof.policies.layered import LayeredRegression, Layers

__all__ = ["SupLinUCB"]


@dataclass(frozen=True, kw_only=True)
class SupLinUCB(LayeredRegression):
    """Eliminate arms level by level, with a ridge regression and a width on each.

    r̂_a = x_aᵀθ̂,  w_a = bonus·α ‖x_a‖_{A⁻¹},  α = √(½ ln(2TK/δ))

    Parameters
    ----------
    horizon, delta : int and float
        T, in pulls, and δ, the probability that the guarantee fails.
    layered : bool
        Whether to eliminate level by level; without it this is LinUCB.
    bonus : float
        Multiplies the width: 1 is the published algorithm, for rewards in [0, 1].

    Examples
    --------
    >>> SupLinUCB(horizon=10_000).levels
    10

    Source: Chu, Li, Reyzin and Schapire 2011, algorithms 1 and 3; α as commonly stated. The
    analysis adds 1 to α. Differences: the multiplier `bonus`; the widest arm is explored.

    Kind: linear.
    Needs: T, δ.
    Regret: Õ(√(dT)).
    Learns without a mean: no.
    """

    horizon: Horizon
    delta: Fraction = 0.01
    layered: bool = True
    bonus: NonNegative = 1.0

    @property
    def levels(self) -> int:
        """The number S = ⌈ln T⌉ of levels."""
        return math.ceil(math.log(self.horizon)) if self.layered else 1

    def _multiplier(self, state: Layers) -> Array:
        alpha = math.sqrt(math.log(2 * self.horizon * state.arms / self.delta) / 2)
        return np.full(state.paths, self.bonus * alpha)
