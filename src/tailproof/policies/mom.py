"""MoM: optimism on medians of means."""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tailproof.checks import Count, Fraction, MomentOrder, NonNegative, Positive, Range
from tailproof.policies.base import Array, Index, picked
from tailproof.policies.optimism import Optimism
from tailproof.policies.state.regression import Ridge
from tailproof.stats.estimators import MedianOfMeans

__all__ = ["MoM"]


@dataclass(frozen=True, kw_only=True)
class MoM(Optimism):
    """Pull each choice r times and regress on the median of means of its rewards.

    m = T^{2ε/(1+3ε)} decisions of r = ⌊T/m⌋ pulls; k = ⌈8 ln(2m/δ)⌉ blocks,
    x_{t+1} = argmax_x xᵀθ̂ + bonus·β_t ‖x‖_{A⁻¹},  β_0 = 1,
    β_t = (12v)^{1/(1+ε)} (8 ln(2m/δ)/r)^{ε/(1+ε)} (√(2 ln(m det(A)^½)) + √(t+1)) + 1

    Parameters
    ----------
    horizon, delta : int and float
        T, in pulls, and δ, the probability that the confidence set misses θ.
    epsilon, moment_bound : float
        ε in (0, 1], and v, a bound on the central moment of order 1 + ε.
    decisions, blocks : float and int, optional
        In place of m and k; the paper used 100 more for df ≤ 1, and ⌊8 ln(2/δ)⌋ = 42.
    bonus : float
        Multiplies β: 1 is the published algorithm; the paper's experiments used 1/40.

    Examples
    --------
    >>> MoM(horizon=10_000, epsilon=1, moment_bound=3).pulls
    100

    Source: Medina and Yang 2016, median of means; β from the public scripts of Zhong et al. 2021,
    k from memory: with that many blocks β bounds the error of every decision.
    Differences: the multiplier `bonus`; `decisions` and `blocks` may be given.

    Kind: linear, heavy tails.
    Needs: T, ε, central moment v, δ.
    Pulls: r = ⌊T/m⌋, m = T^{2ε/(1+3ε)}.
    Regret: Õ(T^{(1+2ε)/(1+3ε)}).
    Learns without a mean: no.
    """

    horizon: Count
    epsilon: MomentOrder
    moment_bound: Positive
    delta: Fraction = 0.01
    decisions: Annotated[float, Range(at_least=1)] | None = None
    blocks: Count | None = None
    bonus: NonNegative = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pulls < self._blocks:
            given = f"horizon={self.horizon} leaves {self.pulls} pulls for {self._blocks} blocks"
            raise ValueError(f"{given}: raise horizon, or set fewer decisions or blocks")

    @property
    def pulls(self) -> int:
        """The number r of pulls per decision."""
        return math.floor(self.horizon / self._m)

    @property
    def _m(self) -> float:
        exponent = 2 * self.epsilon / (1 + 3 * self.epsilon)
        return self.horizon**exponent if self.decisions is None else self.decisions

    @property
    def _blocks(self) -> int:
        if self.blocks is not None:
            return self.blocks
        return math.ceil(8 * math.log(2 * self._m / self.delta))

    def radius(self, state: Ridge) -> Array:
        """Return the radius β of the confidence set in each path."""
        power = 1 / (1 + self.epsilon)
        scale = (8 * math.log(2 * self._m / self.delta) / self.pulls) ** (self.epsilon * power)
        scale *= (12 * self.moment_bound) ** power
        spread = np.sqrt(2 * math.log(self._m) + state.log_det)
        beta = scale * (spread + np.sqrt(state.decisions + 1)) + 1
        return np.where(state.decisions == 0, 1.0, beta)

    def _learn(self, state: Ridge, arms: Array, chosen: Index, rewards: Array) -> None:
        means = MedianOfMeans(blocks=self._blocks)(rewards)
        state.update(picked(arms, chosen), means[:, None])
