"""MENU: median of means under optimism."""

import math
from dataclasses import dataclass

import numpy as np

from tailproof.checks import Count, Fraction, MomentOrder, NonNegative, Penalty, Positive, require
from tailproof.policies.base import Array, Index, Indexed, picked
from tailproof.policies.state.regression import Design

__all__ = ["MENU"]


@dataclass(frozen=True, kw_only=True)
class MENU(Indexed[Design]):
    """Pull each choice k times, regress on each replicate, use the estimate nearest the others.

    k = ⌈24 ln(eT/δ)⌉;  θ^j = V⁻¹ Σ_i y_i^j x_i for j = 1 … k,
    k* = argmin_j median_{s≠j} ‖θ^j − θ^s‖_V,
    x_{n+1} = argmax_x xᵀθ^{k*} + bonus·β_n ‖x‖_{V⁻¹},
    β_n = 3 ((9 d c)^{1/(1+ε)} n^{(1−ε)/(2(1+ε))} + √λ S),  β_0 = √λ S

    Parameters
    ----------
    horizon, delta : int and float
        T, in pulls, and δ, the probability that the confidence set misses θ.
    epsilon, moment_bound : float
        ε in (0, 1], and c, a bound on the central moment of order 1 + ε.
    ridge, norm_bound : float
        λ, the ridge penalty, and S, a bound on ‖θ‖.
    replicates : int, optional
        k in place of the formula; the paper's experiments used 51.
    bonus : float
        Multiplies β: 1 is the published algorithm; the paper's experiments used 1/50.

    Examples
    --------
    >>> MENU(horizon=10_000, epsilon=1, moment_bound=3).pulls
    356

    Source: Shao, Yu, King and Lyu 2018, algorithm 1; constants agree in three public codes.
    Differences: the multiplier `bonus`; `replicates` may be given.

    Kind: linear, heavy tails.
    Needs: T, ε, central moment c, δ, λ, S.
    Pulls: ⌈24 ln(eT/δ)⌉.
    Regret: Õ(T^{1/(1+ε)}).
    Learns without a mean: no.
    """

    horizon: Count
    epsilon: MomentOrder
    moment_bound: Positive
    delta: Fraction = 0.01
    ridge: Penalty = 1.0
    norm_bound: NonNegative = 1.0
    replicates: Count | None = None
    bonus: NonNegative = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        rule = f"at least the {self.pulls} pulls of one decision (or set replicates)"
        require(self.horizon >= self.pulls, "horizon", rule, self.horizon)

    @property
    def pulls(self) -> int:
        """The number k of replicates per decision."""
        if self.replicates is not None:
            return self.replicates
        return math.ceil(24 + 24 * math.log(self.horizon / self.delta))

    def radius(self, state: Design) -> Array:
        """Return the radius β of the confidence set in each path."""
        start = math.sqrt(self.ridge) * self.norm_bound
        n = np.maximum(state.decisions, 1)
        power = 1 / (1 + self.epsilon)
        growth = n ** ((1 - self.epsilon) * power / 2)
        beta = 3 * ((9 * state.dim * self.moment_bound) ** power * growth + start)
        return np.where(state.decisions == 0, start, beta)

    def estimate(self, state: Design) -> Array:
        """Return the estimate nearest the others."""
        return _nearest(state.block[..., state.dim :].mT, state.root)

    def _init(self, paths: int, arms: int, dim: int) -> Design:
        return Design.start(paths, arms, dim, self.ridge, responses=self.pulls)

    def _index(self, state: Design, arms: Array) -> Array:
        mean: Array = np.matvec(arms, self.estimate(state))
        width = state.widths(arms)
        return mean + self.bonus * self.radius(state)[:, None] * width

    def _learn(self, state: Design, arms: Array, chosen: Index, rewards: Array) -> None:
        state.update(picked(arms, chosen), rewards)


def _nearest(thetas: Array, root: Array) -> Array:
    """Return the replicate with the smallest median distance to the others, in the norm of V.

    V⁻¹ = SSᵀ and S = U diag(s) Wᵀ: ‖θ^j − θ^s‖_V = ‖z^j − z^s‖ with z = Uᵀθ/s.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        basis, sizes, _ = np.linalg.svd(root)
        z = (thetas @ basis) / np.maximum(sizes, 1e-300)[:, None, :]
        inner = z @ z.mT
        norms = np.diagonal(inner, axis1=1, axis2=2)
        squared = norms[:, :, None] + norms[:, None, :] - 2 * inner
        distance = np.sqrt(np.maximum(squared, 0))
    distance[np.isnan(distance)] = np.inf  # a replicate with an infinite reward is far from all
    k = distance.shape[1]
    distance[:, range(k), range(k)] = -1
    others = np.sort(distance, axis=2)[:, :, min(1, k - 1) :]
    best = np.median(others, axis=2).argmin(axis=1)
    return picked(thetas, best)
