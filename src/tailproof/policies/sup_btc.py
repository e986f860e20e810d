"""SupBTC: layered predictions with truncated terms."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tailproof.checks import Fraction, Horizon, MomentOrder, NonNegative, Positive
from tailproof.policies.base import Array, Index
from tailproof.policies.layered import Layered
from tailproof.policies.state.samples import Samples

__all__ = ["SupBTC"]


@dataclass(frozen=True, kw_only=True)
class SupBTC(Layered[Samples]):
    """Value an arm by a weighted sum of past rewards without its large terms, level by level.

    β_a = x_aᵀA⁻¹[x_τ]_τ,  h_a = ‖β_a‖_{1+ε},  r̂_a = Σ_τ β_{a,τ} y_τ 1{|β_{a,τ} y_τ| ≤ h_a},
    w_a = bonus·(α_t + 1) ‖x_a‖_{A⁻¹},
    α_t = (⅔ ln(2TK ln T/δ) + √(2v ln(2TK ln T/δ)) + v) t^{(1−ε)/(2(1+ε))}

    Parameters
    ----------
    horizon, delta : int and float
        T, in pulls, and δ, the probability that the guarantee fails.
    epsilon, moment_bound : float
        ε in (0, 1], and v, a bound on the raw moment of order 1 + ε.
    layered : bool
        Whether to eliminate level by level, as published; the paper's experiments did not.
    threshold : "own" or "euclidean"
        The norm of h: the published one, or the Euclidean one of the paper's experiments.
    width : "published" or "experiments"
        α_t as above, or as in the experiments: v (t − 1)^{(1−ε)/(2(1+ε))} without the "+ 1".
    bonus : float
        Multiplies the width: 1 is the published algorithm; the paper's experiments used 0.01/3.

    Examples
    --------
    >>> policy = SupBTC(horizon=1000, epsilon=1, moment_bound=3, layered=False)
    >>> state = policy.init(paths=1, arms=2, dim=2)
    >>> policy.learn(state, np.eye(2)[None], [0], [[1e9]])
    >>> policy._predict(state, np.eye(2)[None], 0, np.array([0]))[0].tolist()
    [[0.0, 0.0]]

    Source: Xue, Wang, Wang and Zhang 2020, algorithms BTC and SupBTC; α_t from one public code.
    Differences: the multiplier `bonus`; elimination ends on the last level. Summing
    untruncatable rewards only once changes no value.

    Kind: linear, heavy tails.
    Needs: T, ε, raw moment v, δ.
    Regret: Õ(d^{1/2} T^{1/(1+ε)}).
    Learns without a mean: no.
    """

    horizon: Horizon
    epsilon: MomentOrder
    moment_bound: Positive
    delta: Fraction = 0.01
    layered: bool = True
    threshold: Literal["own", "euclidean"] = "own"
    width: Literal["published", "experiments"] = "published"
    bonus: NonNegative = 1.0

    def _init(self, paths: int, arms: int, dim: int) -> Samples:
        return Samples.start(paths, arms, dim, 1.0, self.levels)

    def _multiplier(self, state: Samples) -> Array:
        scripts = self.width == "experiments"
        t = np.maximum(state.decisions, 1) if scripts else state.decisions + 1
        growth = t ** ((1 - self.epsilon) / (2 * (1 + self.epsilon)))
        if scripts:
            return np.asarray(self.bonus * self.moment_bound * growth)
        load = math.log(2 * self.horizon * state.arms * math.log(self.horizon) / self.delta)
        alpha = 2 / 3 * load + math.sqrt(2 * self.moment_bound * load) + self.moment_bound
        return np.asarray(self.bonus * (alpha * growth + 1))

    def _predict(
        self, state: Samples, arms: Array, level: int, paths: Index
    ) -> tuple[Array, Array]:
        root = state.root[paths, level]
        turned = arms @ root
        weights = turned @ root.mT
        squared = np.vecdot(turned, turned)
        if self.threshold == "euclidean" or self.epsilon == 1:
            # Σ_τ β² = xᵀA⁻¹(A − I)A⁻¹x
            level_h = np.sqrt(np.maximum(squared - np.vecdot(weights, weights), 0))
        else:
            order = 1 + self.epsilon
            counts = state.count[paths, level]
            pasts = (state.x[path, level, :n] for path, n in zip(paths, counts, strict=True))
            level_h = np.empty(squared.shape)
            for total, weight, past in zip(level_h, weights, pasts, strict=True):
                total[:] = (np.abs(weight @ past.T) ** order).sum(axis=1) ** (1 / order)
        value = np.matvec(weights, state.moment[paths, level])
        samples = zip(value, weights, level_h, state.unsettled(paths, level), strict=True)
        for total, weight, most, (x, y) in samples:
            terms = (weight @ x.T) * y
            total += np.where(np.abs(terms) <= most[:, None], terms, 0.0).sum(axis=1)
        return value, self._multiplier(state)[paths, None] * np.sqrt(squared)

    def _learn(self, state: Samples, arms: Array, chosen: Index, rewards: Array) -> None:
        state.make_room()
        super()._learn(state, arms, chosen, rewards)

    def _add(self, state: Samples, level: Index, paths: Index, x: Array, rewards: Array) -> None:
        # |β_{a,τ}| ≤ ‖x_a‖ ‖x_τ‖ in the norm of A⁻¹, and h_a ≥ ‖x_a‖ √(1 − top)
        state.update(paths, level, x, rewards[:, 0], lambda _, top: np.sqrt((1 - top) / top))
