"""SupBMM: layered medians of replicated predictions."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tailproof.checks import Count, Fraction, Horizon, MomentOrder, NonNegative, Positive, require
from tailproof.policies.base import Array
from tailproof.policies.layered import LayeredRegression, Layers

__all__ = ["SupBMM"]


@dataclass(frozen=True, kw_only=True)
class SupBMM(LayeredRegression):
    """Pull each choice r times; value an arm by the median of r predictions, level by level.

    r = ⌈8 ln(2 K T ln T/δ)⌉;  θ^j = A⁻¹ Σ_τ y_τ^j x_τ;  r̂_a = median_j x_aᵀθ^j,
    w_a = bonus·(α_t + 1) ‖x_a‖_{A⁻¹},  α_t = (12v)^{1/(1+ε)} t^{(1−ε)/(2(1+ε))}

    Parameters
    ----------
    horizon, delta : int and float
        T, in pulls, and δ, the probability that the guarantee fails.
    epsilon, moment_bound : float
        ε in (0, 1], and v, a bound on the central moment of order 1 + ε.
    arms, replicates : int, optional
        K, for the formula of r, or else r itself; the paper's experiments used r = 31.
    layered : bool
        Whether to eliminate level by level, as published; the paper's experiments did not.
    width : "published" or "experiments"
        α_t as above, or as in the experiments: with t − 1 for t, and without the "+ 1".
    bonus : float
        Multiplies the width: 1 is the published algorithm; the paper's experiments used 0.01/6.

    Examples
    --------
    >>> SupBMM(horizon=10_000, epsilon=1, moment_bound=3, arms=20).pulls
    158

    Source: Xue, Wang, Wang and Zhang 2020, algorithms BMM and SupBMM; constants agree in two
    public codes. Differences: the multiplier `bonus`; +inf from a replicate with an infinite
    reward; elimination ends on the last level.

    Kind: linear, heavy tails.
    Needs: T, K, ε, central moment v, δ.
    Pulls: ⌈8 ln(2KT ln T/δ)⌉.
    Regret: Õ(d^{1/2} T^{1/(1+ε)}).
    Learns without a mean: no.
    """

    horizon: Horizon
    epsilon: MomentOrder
    moment_bound: Positive
    delta: Fraction = 0.01
    arms: Count | None = None
    replicates: Count | None = None
    layered: bool = True
    width: Literal["published", "experiments"] = "published"
    bonus: NonNegative = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.arms is None) == (self.replicates is None):
            given = f"arms={self.arms}, replicates={self.replicates}"
            raise ValueError(f"pass either arms or replicates, got {given}")
        rule = f"at least the {self.pulls} pulls of one decision (or set replicates)"
        require(self.horizon >= self.pulls, "horizon", rule, self.horizon)

    @property
    def pulls(self) -> int:
        """The number r of replicates per decision."""
        if self.arms is None:
            return self.replicates or 0
        load = 2 * self.arms * self.horizon * math.log(self.horizon) / self.delta
        return math.ceil(8 * math.log(load))

    def _multiplier(self, state: Layers) -> Array:
        power = 1 / (1 + self.epsilon)
        scripts = self.width == "experiments"
        t = np.maximum(state.decisions, 1) if scripts else state.decisions + 1
        alpha = (12 * self.moment_bound) ** power * t ** ((1 - self.epsilon) * power / 2)
        return np.asarray(self.bonus * (alpha + (0 if scripts else 1)), dtype=np.float64)
