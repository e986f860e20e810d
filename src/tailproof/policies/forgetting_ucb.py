"""UCB1 that forgets: by discounted rewards, or by the last rewards only."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tailproof.checks import Horizon, NonNegative, Positive, Range
from tailproof.policies.base import Array, Index, Indexed, KArmed
from tailproof.policies.state.base import ArmCounts, Finite, Rule, State
from tailproof.policies.state.counts import clip

__all__ = ["DiscountedUCB", "SlidingWindowUCB"]

Values = Annotated[Array, Rule(("arms",), finite=True)]


@dataclass(eq=False)
class Discounted(State):
    """Σγ^(t−s) over the decisions for each arm, and the same sum of rewards; (paths, K) each."""

    weights: Values
    sums: Values


@dataclass(eq=False)
class LastDecisions(State):
    """The last τ decisions, with the number of pulls and the sum of rewards of each arm.

    `pulled` and `rewards`, of shape (paths, τ), hold decision t in column t mod τ, −1 and 0 where
    there is none yet; `counts` and `sums` have the shape (paths, K).
    """

    pulled: Annotated[Index, Rule(least=-1, names_arms=True)]
    rewards: Finite
    counts: ArmCounts
    sums: Values

    def update(self, chosen: Index, y: Array) -> None:
        """Add a decision of each path to the window, and drop the oldest if the window is full.

        The sum of an arm that loses a reward is computed anew: subtracting a huge reward would
        leave its rounding error.
        """
        path, column = np.arange(self.paths), self.decisions % self.rewards.shape[1]
        old = self.pulled[path, column]
        self.pulled[path, column], self.rewards[path, column] = chosen, y
        self.counts[path, chosen] += 1
        self.sums[path, chosen] += y
        full = np.flatnonzero(old >= 0)
        if len(full):
            left = old[full]
            self.counts[full, left] -= 1
            of_arm = self.pulled[full] == left[:, None]
            self.sums[full, left] = np.where(of_arm, self.rewards[full], 0.0).sum(axis=1)


@dataclass(frozen=True, kw_only=True)
class DiscountedUCB(KArmed[Discounted], Indexed[Discounted]):
    """UCB1 with rewards that count less and less as they age.

    a_t = argmax_a X̄_a + bonus·2B √(ξ ln n/N_a),  N_a = Σ_s γ^(t−s) 1{a_s = a},  n = Σ_a N_a,
    X̄_a the mean of the rewards of arm a with the same weights

    For K arms whose rewards are bounded and change now and then. In a filter it learns without a
    mean. `Vigilant` and `Renewed` let any policy forget.

    Parameters
    ----------
    gamma : float
        γ, the weight of a reward that is one decision old.
    bound : float
        B, the range of the rewards.
    xi : float
        ξ, above ½ in the theorem.
    bonus : float
        Multiplies the width.

    Examples
    --------
    >>> policy, rng = DiscountedUCB(gamma=0.99), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> for t in range(1000):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [[float(chosen[0] == t // 500)]])
    >>> (state.sums / state.weights).round().tolist()
    [[0.0, 1.0]]

    Source: D-UCB of Garivier and Moulines 2011, figure 1; the defaults of B and ξ are from memory.
    Differences: ties and the order of first pulls are random; the multiplier `bonus`; a reward
    beyond ±1e100 counts as ±1e100; an arm whose weight is below 10⁻¹² is pulled as if it were new.

    Kind: K arms.
    Needs: rewards in a range B, γ; arms may change.
    Regret: Õ(√(ΥT)), Υ changes.
    Learns without a mean: no.
    """

    gamma: Annotated[float, Range(above=0, at_most=1)]
    bound: Positive = 1.0
    xi: NonNegative = 0.6
    bonus: NonNegative = 1.0

    def _init(self, paths: int, arms: int, dim: int) -> Discounted:
        return Discounted.start(paths, arms, dim)

    def _index(self, state: Discounted, arms: Array) -> Array:
        n = state.weights
        total = np.maximum(n.sum(axis=1, keepdims=True), 1)
        width = 2 * self.bound * np.sqrt(self.xi * np.log(total) / n)
        return np.where(n < 1e-12, np.inf, state.sums / n + self.bonus * width)

    def _learn(self, state: Discounted, arms: Array, chosen: Index, rewards: Array) -> None:
        path = np.arange(state.paths)
        state.weights *= self.gamma
        state.sums *= self.gamma
        state.weights[path, chosen] += 1
        state.sums[path, chosen] += clip(rewards[:, 0])


@dataclass(frozen=True, kw_only=True)
class SlidingWindowUCB(KArmed[LastDecisions], Indexed[LastDecisions]):
    """UCB1 on the last τ decisions.

    a_t = argmax_a X̄_a + bonus·B √(ξ ln min(t, τ)/N_a),  N_a and X̄_a the number of pulls of arm a
    and the mean of its rewards in the last τ decisions

    For K arms whose rewards are bounded and change now and then. In a filter it learns without a
    mean. `Vigilant` and `Renewed` let any policy forget.

    Parameters
    ----------
    window : int
        τ, in decisions.
    bound : float
        B, the range of the rewards.
    xi : float
        ξ, above ½ in the theorem.
    bonus : float
        Multiplies the width.

    Examples
    --------
    >>> policy, rng = SlidingWindowUCB(window=100), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> for t in range(1000):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [[float(chosen[0] == t // 500)]])
    >>> (state.sums / state.counts).tolist()
    [[0.0, 1.0]]

    Source: SW-UCB of Garivier and Moulines 2011, figure 2; the defaults of B and ξ are from memory.
    Differences: ties and the order of first pulls are random; the multiplier `bonus`; a reward
    beyond ±1e100 counts as ±1e100.

    Kind: K arms.
    Needs: rewards in a range B, τ; arms may change.
    Regret: Õ(√(ΥT)), Υ changes.
    Learns without a mean: no.
    """

    window: Horizon
    bound: Positive = 1.0
    xi: NonNegative = 0.6
    bonus: NonNegative = 1.0

    def _init(self, paths: int, arms: int, dim: int) -> LastDecisions:
        shape = paths, self.window
        return LastDecisions.start(
            paths, arms, dim, pulled=np.full(shape, -1), rewards=np.zeros(shape)
        )

    def _index(self, state: LastDecisions, arms: Array) -> Array:
        n = state.counts
        recent = np.clip(state.decisions, 1, self.window)[:, None]
        width = self.bound * np.sqrt(self.xi * np.log(recent) / n)
        return np.where(n == 0, np.inf, state.sums / n + self.bonus * width)

    def _learn(self, state: LastDecisions, arms: Array, chosen: Index, rewards: Array) -> None:
        state.update(chosen, clip(rewards[:, 0]))
