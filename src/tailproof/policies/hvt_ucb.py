"""HvtUCB: Huber regression in one pass."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tailproof.policies.base import Array
from tailproof.policies.huber import Huber, HuberState, project

__all__ = ["HvtUCB"]


@dataclass(frozen=True, kw_only=True)
class HvtUCB(Huber[HuberState]):
    """Optimism on a Huber regression that uses each reward once, in one step of mirror descent.

    x_t = argmax_x xᵀθ_t + bonus·β_{t−1} ‖x‖_{V⁻¹},  θ_{t+1} = Π_V(θ_t + V⁻¹ (x_t/σ) ψ),
    ψ = (y_t − x_tᵀθ_t)/σ clipped at ±τ,  V = λI + Σ x xᵀ/(ασ²),  w = ‖x_t‖_{V⁻¹}/(σ√α),
    σ = max(ν, 1/√T, √(2 bonus·β_{t−1}/(τ₀ √α t^g)) ‖x_t‖_{V⁻¹}),  τ = τ₀ t^g √(1 + w²)/w,
    τ₀ = √(2κ) ln(3T)^g / ln(2T²/δ)^{1/(1+ε)},  κ = d ln(1 + T²/(dλα)),  g = (1 − ε)/(2(1 + ε)),
    β_t = 107 ln(2T²/δ) τ₀ t^g + √(λ(2 + 4S²)),  α = 4

    Parameters
    ----------
    decisions, delta : int and float
        T, the number of decisions, and δ, the probability that the confidence set misses θ.
    epsilon, moment_bound : float
        ε in (0, 1] and ν^{1+ε}: the noise has E|η|^{1+ε} ≤ ν^{1+ε}.
    norm_bound, ridge : float
        S and λ (d by default): Π_V projects onto ‖θ‖ ≤ S in the norm of V, exactly to 1e-12.
    bonus : float
        Multiplies β: 1 is the published algorithm, 0 is greedy. The published radius is so wide
        that usual horizons are spent exploring; 1e-3 is a practical value.

    Examples
    --------
    >>> policy = HvtUCB(decisions=200, epsilon=1, moment_bound=1, bonus=1e-3)
    >>> rng, arms = np.random.default_rng(0), np.eye(2)[None]
    >>> state = policy.init(paths=1, arms=2, dim=2)
    >>> for t in range(200):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [[np.inf if t == 50 else float(chosen[0])]])
    >>> bool(state.theta[0, 1] > 0.9)
    True

    Source: Wang, Zhang, Zhao and Zhou 2025, algorithm 1 (Hvt-UCB). Update, σ, τ and V are from a
    note on the paper; λ, 1/√T, α = 4 and β are from memory; κ bounds Σw²/2 for this V.
    Differences: δ is a parameter (1/(8T) in the source, from memory); the multiplier `bonus`, also
    where β enters σ; one ν for all decisions.

    Kind: linear, heavy tails.
    Needs: T in decisions, ε, ν, δ, S.
    Regret: as `HeavyOFUL`, one pass.
    Learns without a mean: not proved.
    """

    alpha: ClassVar[float] = 4.0

    def radius(self, state: HuberState) -> Array:
        """Return the radius β of the confidence set in each path."""
        growth = 107 * self._log * self._level(state.dim, state.decisions)
        return growth + math.sqrt(self._penalty(state.dim) * (2 + 4 * self.norm_bound**2))

    def _init(self, paths: int, arms: int, dim: int) -> HuberState:
        return HuberState.start(paths, arms, dim, self._penalty(dim))

    def _scale(self, state: HuberState, width: Array) -> Array:
        level = self._level(state.dim, state.decisions + 1)
        beta = self.bonus * self.radius(state)
        return width * np.sqrt(2 * beta / (level * math.sqrt(self.alpha)))

    def _regress(self, state: HuberState, x: Array, y: Array, tau: Array) -> None:
        score = np.clip(y - np.vecdot(x, state.theta), -tau, tau)
        step = np.matvec(state.root, np.vecmat(score[:, None] * x, state.root))
        state.theta = project(state.theta + step, state.root, self.norm_bound)
