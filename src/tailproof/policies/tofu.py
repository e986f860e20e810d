"""TOFU: truncation under optimism."""

import math
from dataclasses import dataclass

import numpy as np

from tailproof.checks import Count, Fraction, MomentOrder, NonNegative, Penalty, Positive
from tailproof.policies.base import Array, Index, Indexed, picked
from tailproof.policies.state.regression import squared_norms
from tailproof.policies.state.samples import Samples

__all__ = ["TOFU"]


@dataclass(frozen=True, kw_only=True)
class TOFU(Indexed[Samples]):
    """Optimism on an estimate whose every coordinate leaves out its own large terms.

    [u_1 … u_d]ᵀ = V^{−½}[x_τ]_τ,  θ̂ = V^{−½} (Σ_τ u_{i,τ} y_τ 1{|u_{i,τ} y_τ| ≤ b_t})_i,
    b_t = (b / ln(2T/δ))^{1/(1+ε)} t^{(1−ε)/(2(1+ε))},
    β_t = 4 √d b^{1/(1+ε)} ln(2dT/δ)^{ε/(1+ε)} t^{(1−ε)/(2(1+ε))} + √λ S,  β_0 = √λ S

    Parameters
    ----------
    horizon, delta : int and float
        T, in pulls, and δ, the probability that the confidence set misses θ.
    epsilon, moment_bound : float
        ε in (0, 1], and b, a bound on the raw moment of order 1 + ε.
    ridge, norm_bound : float
        λ, the ridge penalty, and S, a bound on ‖θ‖.
    exponent : float, optional
        In place of 1/(1+ε) in b_t; the paper's experiments used ½ for every ε.
    bonus : float
        Multiplies β: 1 is the published algorithm; the paper's experiments used 1/5.

    Examples
    --------
    >>> policy = TOFU(horizon=1000, epsilon=1, moment_bound=3)
    >>> state = policy.init(paths=1, arms=2, dim=2)
    >>> policy.learn(state, np.eye(2)[None], [0], [[1e9]])
    >>> policy.estimate(state).tolist()
    [[0.0, 0.0]]

    Source: Shao, Yu, King and Lyu 2018, algorithm 2; the exponent of b_t is from memory. This
    exponent balances the bias b/b_t^ε against b_t ln(2T/δ), agrees with three public codes at ε = 1
    and gives b_t the unit of a reward; the ½ and 1/ε of public codes do not. Differences: the
    multiplier `bonus`. Summing untruncatable rewards only once changes no value.

    Kind: linear, heavy tails.
    Needs: T, ε, raw moment b, δ, λ, S.
    Regret: Õ(T^{1/(1+ε)}).
    Learns without a mean: no.
    """

    horizon: Count
    epsilon: MomentOrder
    moment_bound: Positive
    delta: Fraction = 0.01
    ridge: Penalty = 1.0
    norm_bound: NonNegative = 1.0
    exponent: Positive | None = None
    bonus: NonNegative = 1.0

    def _growth(self, state: Samples) -> Array:
        t = np.maximum(state.count[:, 0], 1)
        return np.asarray(t ** ((1 - self.epsilon) / (2 * (1 + self.epsilon))))

    def level(self, state: Samples) -> Array:
        """Return the truncation level b_t in each path."""
        exponent = 1 / (1 + self.epsilon) if self.exponent is None else self.exponent
        base = (self.moment_bound / math.log(2 * self.horizon / self.delta)) ** exponent
        return np.asarray(base * self._growth(state))

    def radius(self, state: Samples) -> Array:
        """Return the radius β of the confidence set in each path."""
        start = math.sqrt(self.ridge) * self.norm_bound
        power = 1 / (1 + self.epsilon)
        load = math.log(2 * state.dim * self.horizon / self.delta)
        scale = 4 * math.sqrt(state.dim) * self.moment_bound**power * load ** (self.epsilon * power)
        return np.where(state.count[:, 0] == 0, start, scale * self._growth(state) + start)

    def estimate(self, state: Samples) -> Array:
        """Return the truncated estimate of θ."""
        everyone = np.arange(state.paths)
        vectors, sizes, _ = np.linalg.svd(state.root[:, 0])
        root = (vectors * sizes[:, None, :]) @ vectors.mT  # V^{−½}
        kept = np.empty((state.paths, state.dim))
        samples = zip(root, self.level(state), state.unsettled(everyone, 0), strict=True)
        with np.errstate(invalid="ignore", over="ignore"):
            for path, (turn, level, (x, y)) in enumerate(samples):
                terms = (x @ turn) * y[:, None]
                kept[path] = np.where(np.abs(terms) <= level, terms, 0.0).sum(axis=0)
        settled = np.matvec(root, np.vecmat(state.moment[:, 0], root))
        return np.asarray(settled + np.matvec(root, kept))

    def _init(self, paths: int, arms: int, dim: int) -> Samples:
        return Samples.start(paths, arms, dim, self.ridge)

    def _index(self, state: Samples, arms: Array) -> Array:
        mean: Array = np.matvec(arms, self.estimate(state))
        width = np.sqrt(squared_norms(state.root[:, 0], arms))
        return mean + self.bonus * self.radius(state)[:, None] * width

    def _learn(self, state: Samples, arms: Array, chosen: Index, rewards: Array) -> None:
        paths, level = np.arange(state.paths), np.zeros(state.paths, dtype=np.int64)
        x, floor = picked(arms, chosen), self.level(state)
        state.make_room()
        # |u_{i,τ}| ≤ ‖x_τ‖ in the norm of V⁻¹, and b_t never falls
        state.update(paths, level, x, rewards[:, 0], lambda p, top: floor[p] / np.sqrt(top))
