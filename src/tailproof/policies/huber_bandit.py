"""Huber regression for linear bandits with fresh contexts and heavy-tailed rewards."""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tailproof.checks import MomentOrder, NonNegative, Penalty, Positive
from tailproof.chunking import chunks
from tailproof.policies.base import Array, Index, Policy, picked
from tailproof.policies.state.base import ROOM, Counts, FiniteBuffer, Rule
from tailproof.policies.state.counts import clip
from tailproof.policies.state.huber_fit import GROWTH, minimise
from tailproof.policies.state.regression import Design

__all__ = ["HuberBandit"]


@dataclass(eq=False)
class _Pulls(Design):
    """All pulls, in buffers padded with zeros, and the result of the last fit."""

    contexts: Annotated[Array, Rule(("dim", ROOM), finite=True, buffer=2)]
    rewards: FiniteBuffer
    theta: Annotated[Array, Rule(("dim",), finite=True)]
    fitted: Counts


@dataclass(frozen=True, kw_only=True)
class HuberBandit(Policy[_Pulls]):
    """Pull the best arm of a Huber regression whose threshold grows, and explore ever less.

    a_t = argmax_a x_aᵀθ̂ with probability 1 − q_t, else an arm at random,
    θ̂ = argmin λ/2 ‖θ‖² + Σ_s h(y_s − x_sᵀθ),  h' the identity clipped at ±τ_t,
    τ_t = stretch·(v t/ln(d t + 2))^{1/(1+ε)},  q_t = min(1, explore·(ln(d t + 2)/t)^{ε/(1+ε)})

    For contexts that are drawn afresh and vary in every direction, the contexts of pulled arms
    included, no bonus is needed: each decision informs about all directions. Then the regret is of
    order √d T^{1/(1+ε)}, up to a logarithm, and neither the horizon nor the law must be known. For
    fixed arms only the exploration informs, and a policy with a bonus is better.

    Parameters
    ----------
    epsilon, moment_bound : float
        ε in (0, 1] and v, a bound on the moment E|η|^{1+ε} of the noise.
    stretch, explore : float
        Multiply τ and q; `explore` = 0 is greedy.
    ridge : float
        λ, the ridge penalty.

    Examples
    --------
    >>> policy, rng = HuberBandit(), np.random.default_rng(0)
    >>> state = policy.init(paths=1, arms=4, dim=2)
    >>> for _ in range(200):
    ...     arms = rng.standard_normal((1, 4, 2))
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [arms[0, chosen] @ [1, 0] + rng.standard_t(2)])
    >>> bool(state.theta[0, 0] > 0.7)
    True

    It refits when the number of pulls has grown by an eighth, at O(T d²) for each of a few Newton
    steps. All pulls are kept: 8 to 16 (d + 1) bytes for each.

    Source: Kang and Kim 2023, from its abstract; its text could not be read. Differences: the
    schedule of τ is from adaptive Huber regression (Sun, Zhou and Fan 2020), from memory; the
    schedule of q is ours, the largest whose cost is within the published order; the penalty
    `ridge`; fits as rare as in `SymmetricOFUL`.

    Kind: linear, heavy tails.
    Needs: ε, moment v; contexts that vary in every direction.
    Regret: Õ(√d T^{1/(1+ε)}).
    Learns without a mean: no.
    """

    epsilon: MomentOrder = 1.0
    moment_bound: Positive = 1.0
    stretch: Positive = 1.0
    explore: NonNegative = 0.1
    ridge: Penalty = 1.0

    def estimate(self, state: _Pulls) -> Array:
        """Return θ̂ as of the last fit."""
        return state.theta

    def threshold(self, t: int, dim: int) -> float:
        """Return τ_t.

        >>> round(HuberBandit().threshold(100, dim=2), 2)
        4.34
        """
        ratio = self.moment_bound * t / math.log(dim * t + 2)
        return float(self.stretch * ratio ** (1 / (1 + self.epsilon)))

    def _init(self, paths: int, arms: int, dim: int) -> _Pulls:
        return _Pulls.start(paths, arms, dim, self.ridge)

    def _propensities(self, state: _Pulls, arms: Array) -> Array:
        t = state.decisions + 1
        rate = np.log(state.dim * t + 2) / t
        q = np.minimum(1, self.explore * rate ** (self.epsilon / (1 + self.epsilon)))[:, None]
        value = np.matvec(arms, state.theta)
        tied = value == value.max(axis=1, keepdims=True)
        greedy = tied / tied.sum(axis=1, keepdims=True)
        return np.asarray(q / arms.shape[1] + (1 - q) * greedy)

    def _choose(self, state: _Pulls, arms: Array, rng: np.random.Generator) -> Index:
        reached = self._propensities(state, arms).cumsum(axis=1)
        draw = rng.random((state.paths, 1)) * reached[:, -1:]
        return np.asarray((reached[:, :-1] <= draw).sum(axis=1))

    def _learn(self, state: _Pulls, arms: Array, chosen: Index, rewards: Array) -> None:
        state.make_room()
        path, x = np.arange(state.paths), picked(arms, chosen)
        state.contexts[path, :, state.decisions] = x
        state.rewards[path, state.decisions] = clip(rewards[:, 0])
        state.update(x, np.empty((state.paths, 0)))
        length = state.decisions + 1
        due = length >= state.fitted * (1 + GROWTH)
        for n in np.unique(length[due]).tolist():  # no path depends on the length of others
            (rows,) = np.nonzero(due & (length == n))
            for part in chunks(len(rows), 4 * n * state.dim):
                self._fit(state, rows[part], n)

    def _fit(self, state: _Pulls, rows: Index, n: int) -> None:
        """Refit the given paths, which have n pulls each, in units of τ."""
        tau = self.threshold(n, state.dim)
        x, y = state.contexts[rows, :, :n], clip(state.rewards[rows, :n] / tau)
        theta = minimise(x, y, state.theta[rows] / tau, state.root[rows], self.ridge)
        state.theta[rows], state.fitted[rows] = tau * theta, n
