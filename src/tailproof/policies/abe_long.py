"""Abe and Long 1999: Widrow–Hoff regression, and arms drawn by their gap to the best."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tailproof.checks import Fraction, Horizon, Positive
from tailproof.policies.base import Array, Index, Policy, picked
from tailproof.policies.state.base import Rule, State

__all__ = ["AbeLong"]


@dataclass(eq=False)
class _Weights(State):
    """The estimate of θ, of shape (paths, d)."""

    theta: Annotated[Array, Rule(("dim",))]


@dataclass(frozen=True, kw_only=True)
class AbeLong(Policy[_Weights]):
    """Draw arms with probabilities that fall with their predicted gap to the best.

    p_a = 1/(K + γ (max_b x_bᵀθ − x_aᵀθ)) for every arm but the best, which gets the rest,
    θ ← θ + η (y − xᵀθ) x,  η = rate/L²,  γ = stretch·√K T^{1/4}/unit

    where L is the longest arm of the decision. This is the algorithm that introduced linear
    bandits: its regret is of order T^{3/4}, and a decision costs O(K d) without any matrix. Its
    probabilities are known, so logs of it can be judged; `propensities` returns them.

    Parameters
    ----------
    horizon : int
        T, the number of decisions.
    rate : float, optional
        η L², the share of an error that one step removes; by default 1/√T.
    unit : float
        The size of rewards: noise scale plus largest mean. The source has successes, 0 or 1.
    stretch : float
        Multiplies γ: more is greedier.

    Examples
    --------
    >>> policy, rng = AbeLong(horizon=1000), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> for _ in range(1000):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [[float(chosen[0])]])
    >>> policy.propensities(state, arms).round(2).tolist()
    [[0.1, 0.9]]

    Source: Abe and Long 1999, from its abstract ("a learning method like the Widrow–Hoff rule and a
    probabilistic selection strategy") and from Foster and Rakhlin 2020, who took the probabilities
    from it; its text could not be read. Differences: η and γ follow from the regret √T of
    Widrow–Hoff in squared error, as in the later source; rewards of any size, in units of `unit`.
    An infinite reward leaves a path without an estimate; it then draws uniformly.

    Kind: linear.
    Needs: T, size of rewards.
    Regret: Õ(√K T^{3/4}).
    Learns without a mean: no.
    """

    horizon: Horizon
    rate: Fraction | None = None
    unit: Positive = 1.0
    stretch: Positive = 1.0

    def estimate(self, state: _Weights) -> Array:
        """Return the estimate of θ."""
        return state.theta

    def _init(self, paths: int, arms: int, dim: int) -> _Weights:
        return _Weights.start(paths, arms, dim)

    def _propensities(self, state: _Weights, arms: Array) -> Array:
        value, count = np.matvec(arms, state.theta), arms.shape[1]
        best = value.argmax(axis=1)
        gamma = self.stretch * np.sqrt(count) * self.horizon**0.25 / self.unit
        gap = value.max(axis=1, keepdims=True) - value
        share = 1 / (count + gamma * gap)
        rows = np.arange(state.paths)
        share[rows, best] = 0.0
        share[rows, best] = 1 - share.sum(axis=1)
        finite = np.isfinite(value).all(axis=1, keepdims=True)
        return np.asarray(np.where(finite, share, 1 / count))

    def _choose(self, state: _Weights, arms: Array, rng: np.random.Generator) -> Index:
        reached = self._propensities(state, arms).cumsum(axis=1)
        draw = rng.random((state.paths, 1)) * reached[:, -1:]
        return np.asarray((reached[:, :-1] <= draw).sum(axis=1))

    def _learn(self, state: _Weights, arms: Array, chosen: Index, rewards: Array) -> None:
        x = picked(arms, chosen)
        longest = np.linalg.norm(arms, axis=2).max(axis=1)
        rate = self.horizon**-0.5 if self.rate is None else self.rate
        step = rate / np.where(longest > 0, longest, 1.0) ** 2
        error = rewards[:, 0] - np.vecdot(x, state.theta)
        state.theta += (step * error)[:, None] * x
