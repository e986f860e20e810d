"""TOFU: truncation under optimism."""

import math
from dataclasses import dataclass

import numpy as np

from tailproof.checks import number, whole
from tailproof.policies.base import Array, Index, Policy, pick_largest, picked
from tailproof.policies.ridge import squared_norms
from tailproof.policies.samples import Samples

__all__ = ["TOFU"]


@dataclass(frozen=True, kw_only=True)
class TOFU(Policy[Samples]):
    """Optimism on an estimate whose every coordinate leaves out its own large terms.

    [u_1 … u_d]ᵀ = V^{−½}[x_τ]_τ,  θ̂ = V^{−½} (Σ_τ u_{i,τ} y_τ 1{|u_{i,τ} y_τ| ≤ b_t})_i,
    b_t = (b / ln(2T/δ))^{1/(1+ε)} t^{(1−ε)/(2(1+ε))},
    β_t = 4 √d b^{1/(1+ε)} ln(2dT/δ)^{ε/(1+ε)} t^{(1−ε)/(2(1+ε))} + √λ S,  β_0 = √λ S

    Parameters
    ----------
    horizon : int
        T, in pulls.
    epsilon : float
        ε in (0, 1]: moments of order 1 + ε are finite.
    b : float
        A bound on the raw moment of order 1 + ε.
    delta : float
        δ, the probability with which the confidence set may fail.
    ridge, norm_bound : float
        λ, the penalty of the regression, and S, a bound on the norm of θ.
    exponent : float, optional
        In place of 1/(1+ε) in b_t; the paper's experiments used ½ for every ε.
    bonus : float
        Multiplies β: 1 is the published algorithm; the paper's experiments used 1/5.

    Examples
    --------
    >>> policy = TOFU(horizon=1000, epsilon=1, b=3)
    >>> memory = policy.init(paths=1, arms=2, dim=2)
    >>> policy.learn(memory, np.eye(2)[None], [0], [[1e9]])
    >>> policy.estimate(memory).tolist()
    [[0.0, 0.0]]

    Source: Shao, Yu, King and Lyu 2018, algorithm 2; the exponent of b_t as recalled, the only one
    that agrees with three public codes at ε = 1 and with the dimension of a reward.
    Differences: the multiplier `bonus`. Rewards that cannot be truncated any more are summed once,
    which changes no value.
    """

    horizon: int
    epsilon: float
    b: float
    delta: float = 0.01
    ridge: float = 1.0
    norm_bound: float = 1.0
    exponent: float | None = None
    bonus: float = 1.0

    def __post_init__(self) -> None:
        whole("horizon", self.horizon)
        number("epsilon", self.epsilon, above=0, at_most=1)
        number("b", self.b, above=0)
        number("delta", self.delta, above=0, below=1)
        number("ridge", self.ridge, above=0)
        number("norm_bound", self.norm_bound, at_least=0)
        if self.exponent is not None:
            number("exponent", self.exponent, above=0)
        number("bonus", self.bonus, at_least=0)

    def _growth(self, memory: Samples) -> Array:
        t = np.maximum(memory.count[:, 0], 1)
        return np.asarray(t ** ((1 - self.epsilon) / (2 * (1 + self.epsilon))))

    def level(self, memory: Samples) -> Array:
        """Return the truncation level b_t in each path."""
        exponent = 1 / (1 + self.epsilon) if self.exponent is None else self.exponent
        base = (self.b / math.log(2 * self.horizon / self.delta)) ** exponent
        return np.asarray(base * self._growth(memory))

    def radius(self, memory: Samples) -> Array:
        """Return the radius β in each path."""
        start = math.sqrt(self.ridge) * self.norm_bound
        power = 1 / (1 + self.epsilon)
        load = math.log(2 * memory.dim * self.horizon / self.delta)
        scale = 4 * math.sqrt(memory.dim) * self.b**power * load ** (self.epsilon * power)
        return np.where(memory.count[:, 0] == 0, start, scale * self._growth(memory) + start)

    def estimate(self, memory: Samples) -> Array:
        """Return the truncated estimate of θ."""
        everyone = np.arange(memory.paths)
        inverse = memory.inverse[:, 0]
        values, vectors = np.linalg.eigh(inverse)
        root = (vectors * np.sqrt(np.maximum(values, 0))[:, None, :]) @ vectors.mT
        x, y = memory.unsettled(everyone, 0)
        with np.errstate(invalid="ignore", over="ignore"):
            terms = (x @ root) * y[:, :, None]
        kept = np.where(np.abs(terms) <= self.level(memory)[:, None, None], terms, 0.0)
        settled = np.matvec(inverse, memory.moment[:, 0])
        return np.asarray(settled + np.matvec(root, kept.sum(axis=1)))

    def _init(self, paths: int, arms: int, dim: int) -> Samples:
        return Samples.start(paths, arms, dim, self.ridge)

    def _choose(self, memory: Samples, arms: Array, rng: np.random.Generator) -> Index:
        mean = np.matvec(arms, self.estimate(memory))
        width = np.sqrt(np.maximum(squared_norms(memory.inverse[:, 0], arms), 0))
        return pick_largest(mean + self.bonus * self.radius(memory)[:, None] * width, rng)

    def _learn(self, memory: Samples, arms: Array, chosen: Index, rewards: Array) -> None:
        paths, level = np.arange(memory.paths), np.zeros(memory.paths, dtype=np.int64)
        # |u_{i,τ}| ≤ ‖x_τ‖ in the norm of V⁻¹, and b_t never falls
        floor = self.level(memory).min()
        memory.add(
            paths, level, picked(arms, chosen), rewards[:, 0], lambda top: floor / np.sqrt(top)
        )
