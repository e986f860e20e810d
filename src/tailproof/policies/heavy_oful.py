"""HeavyOFUL: adaptive Huber regression under optimism."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import numpy as np

from tailproof.chunking import chunks
from tailproof.policies.base import Array
from tailproof.policies.huber import Huber, HuberState, project
from tailproof.policies.state.base import ROOM, Buffer, FiniteBuffer, Rule

__all__ = ["HeavyOFUL", "HuberHistory"]

_TOLERANCE, _STEPS = 1e-9, 200
"""The shortest step, in units of S, and the most steps of a decision; see the docstring."""


@dataclass(eq=False)
class HuberHistory(HuberState):
    """All observations, in buffers padded with zeros.

    `contexts`, of shape (paths, room, d), holds x/σ; `rewards` and `thresholds`, of shape
    (paths, room), hold y/σ and τ.
    """

    contexts: Annotated[Array, Rule((ROOM, "dim"), finite=True, buffer=1)]
    rewards: Buffer
    thresholds: FiniteBuffer

    def append(self, x: Array, y: Array, tau: Array) -> None:
        """Keep one observation of each path."""
        self.make_room()
        at = np.arange(self.paths), self.decisions
        self.contexts[at], self.rewards[at], self.thresholds[at] = x, y, tau


@dataclass(frozen=True, kw_only=True)
class HeavyOFUL(Huber[HuberHistory]):
    """Optimism on a Huber regression over all past rewards, each clipped by its leverage.

    x_t = argmax_x xᵀθ + bonus·β_{t−1} ‖x‖_{H⁻¹},  H = λI + Σ x xᵀ/σ²,
    θ = argmin_{‖θ‖≤S} λ/2 ‖θ‖² + Σ_s ℓ_τ((y_s − x_sᵀθ)/σ),  ℓ_τ quadratic up to τ, then linear,
    σ = max(ν, 1/√T, ‖x_t‖_{H⁻¹}/c₀, √(S ‖x_t‖_{H⁻¹})/(2c₁κ)^¼),  w = ‖x_t‖_{H⁻¹}/σ,
    τ = τ₀ t^g √(1 + w²)/w,  τ₀ = √(2κ) ln(3T)^g / ln(2T²/δ)^{1/(1+ε)},  g = (1 − ε)/(2(1 + ε)),
    c₀ = 1/√(23 ln(2T²/δ)),  c₁ = τ₀²/(96κ),  κ = d ln(1 + T²/(dλ)),
    β_t = 3√λ S + 24 ln(2T²/δ) τ₀ t^g

    The argmin is found by θ ← Π_H(θ − H⁻¹∇), which never raises the loss: it starts at the last θ
    and stops when a step is shorter than 1e-9 S (after 200 steps at the latest; the next decision
    continues from there). The cost of a decision grows linearly with the number of past decisions.

    Parameters
    ----------
    decisions, delta : int and float
        T, the number of decisions, and δ, the probability that the confidence set misses θ.
    epsilon, moment_bound : float
        ε in (0, 1] and ν^{1+ε}: the noise has E|η|^{1+ε} ≤ ν^{1+ε}.
    norm_bound, ridge : float
        S, a bound on ‖θ‖, and λ, by default d; the paper's code uses d/100.
    bonus : float
        Multiplies β: 1 is the published algorithm, 0 is greedy; the paper's code uses 1e-4.

    Examples
    --------
    >>> policy = HeavyOFUL(decisions=99, epsilon=1, moment_bound=1, bonus=1e-4)
    >>> rng, arms = np.random.default_rng(0), np.eye(2)[None]
    >>> state = policy.init(paths=1, arms=2, dim=2)
    >>> for t in range(99):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [[np.inf if t == 50 else float(chosen[0])]])
    >>> int(policy.choose(state, arms, rng)[0])
    1

    Source: Huang, Zhong, Wang and Yang 2023, HEAVY-OFUL, with the constants of the public code of
    its experiments; λ is from memory. Differences: S in σ, which the code (S = 1) omits, placed as
    the units require; ‖x‖ ≤ 1; one ν for all decisions; the multiplier `bonus`. The published code
    starts its optimiser at the true θ, ours at the last estimate. An infinite reward counts as one
    of size στ.

    Kind: linear, heavy tails.
    Needs: T in decisions, ε, ν, δ, S.
    Regret: Õ(d T^{(1−ε)/(2(1+ε))} √(Σν²)).
    Learns without a mean: not proved.
    """

    def radius(self, state: HuberHistory) -> Array:
        """Return the radius β of the confidence set in each path."""
        growth = 24 * self._log * self._level(state.dim, state.decisions)
        return growth + 3 * math.sqrt(self._penalty(state.dim)) * self.norm_bound

    def _init(self, paths: int, arms: int, dim: int) -> HuberHistory:
        return HuberHistory.start(paths, arms, dim, self._penalty(dim))

    def _scale(self, state: HuberHistory, width: Array) -> Array:
        quarter = math.sqrt(self._tau0(state.dim) / math.sqrt(48))  # (2c₁κ)^¼
        by_bias = np.sqrt(self.norm_bound * width) / quarter
        return np.maximum(width * math.sqrt(23 * self._log), by_bias)

    def _regress(self, state: HuberHistory, x: Array, y: Array, tau: Array) -> None:
        state.append(x, y, tau)
        # Neighbours with equally many observations go together: padding would change the rounding.
        changes = np.flatnonzero(np.diff(state.decisions)) + 1
        for start, stop in pairwise([0, *changes.tolist(), state.paths]):
            past = int(state.decisions[start]) + 1
            for part in chunks(stop - start, past * state.dim):
                rows = slice(start + part.start, start + part.stop)
                state.theta[rows] = self._argmin(state, rows, past)

    def _argmin(self, state: HuberHistory, rows: slice, past: int) -> Array:
        theta, root = state.theta[rows], state.root[rows]
        x, y, tau = (a[rows, :past] for a in (state.contexts, state.rewards, state.thresholds))
        penalty, moving = self._penalty(state.dim), np.ones((len(theta), 1), dtype=bool)
        for _ in range(_STEPS):
            score = np.clip(y - np.matvec(x, theta), -tau, tau)
            descent = np.vecmat(score, x) - penalty * theta
            step = np.matvec(root, np.vecmat(descent, root))
            moved = project(theta + step, root, self.norm_bound)
            length = np.linalg.norm(moved - theta, axis=1, keepdims=True)
            theta = np.where(moving, moved, theta)  # a converged path waits for the others
            moving &= length > _TOLERANCE * self.norm_bound
            if not moving.any():
                break
        return theta
