"""Clipped-SGD-UCB: clipped gradient steps towards each arm's location, for symmetric rewards."""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tailproof.checks import Count, NonNegative, Positive, Range
from tailproof.policies.base import Array, Index, Indexed, KArmed
from tailproof.policies.state.base import ArmValues
from tailproof.policies.state.counts import Counted, clip

__all__ = ["ClippedSGDUCB", "Iterates"]


@dataclass(eq=False)
class Iterates(Counted):
    """The current iterate x of each arm (`points`), of shape (paths, K)."""

    points: ArmValues


@dataclass(frozen=True, kw_only=True)
class ClippedSGDUCB(KArmed[Iterates], Indexed[Iterates]):
    """Pull the arm with the largest iterate plus bonus; rewards must be symmetric but need no mean.

    a_t = argmax_a x_a + bonus √(ln t / N_a), where t and N_a count pulls, each arm once first;
    x ← x − γ clip(g, −mean_bound, mean_bound),
    g = median over 2m + 1 blocks of the mean over n pulls of x − reward,
    γ = 1/ln(4 (T + 1)/δ), δ = 1/T², T = horizon

    Parameters
    ----------
    horizon, mean_bound : int and float
        T, in pulls, and R, a bound on the absolute location of every arm.
    m, n : int
        Each step uses 2m + 1 blocks of n pulls. In the paper's names m = 0, n = 1 is SGD-UCB,
        m > 0, n = 1 is SGD-UCB-Median, and m > 0, n > 1 is SGD-UCB-SMoM.
    bonus : float
        Multiplies the width; the public experiments use 0.1 and 0.2.

    Examples
    --------
    >>> policy, rng = ClippedSGDUCB(horizon=3000, mean_bound=2.0), np.random.default_rng(0)
    >>> policy.pulls
    3
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> for _ in range(1000):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, chosen[:, None] + rng.standard_cauchy((1, 3)))
    >>> int(state.counts[0].argmax())
    1

    Source: Dorn et al. 2024 (arXiv 2402.07062), from the public code, without access to the paper.
    Differences: an arm starts at the median of the (2m + 1) n rewards of its first
    decision (the code pulls 3 times there), clipped to ±mean_bound; no Gaussian smoothing of the
    block means (of scale 0.001 in the code); ties and the order of first pulls are random; a reward
    beyond ±1e100 counts as ±1e100.

    Kind: K arms, heavy tails.
    Needs: T, a bound on locations.
    Pulls: (2m+1)n.
    Regret: Õ(√(KT)) for symmetric noise.
    Learns without a mean: yes.
    """

    horizon: Count
    mean_bound: Positive = 1.0
    m: Annotated[int, Range(at_least=0, at_most=1e15)] = 1
    n: Count = 1
    bonus: NonNegative = 0.1

    @property
    def pulls(self) -> int:
        """The (2m + 1) n rewards that a decision needs."""
        return (2 * self.m + 1) * self.n

    @property
    def step(self) -> float:
        """γ, the step size."""
        return 1 / math.log(4 * (self.horizon + 1) * self.horizon**2)

    def _init(self, paths: int, arms: int, dim: int) -> Iterates:
        return Iterates.start(paths, arms, dim)

    def _index(self, state: Iterates, arms: Array) -> Array:
        log_t = np.log(np.maximum(state.decisions, 1) * self.pulls)[:, None]
        width = np.sqrt(log_t / (np.maximum(state.counts, 1) * self.pulls))
        index = state.points + self.bonus * width
        return np.where(state.counts == 0, np.inf, index)

    def _learn(self, state: Iterates, arms: Array, chosen: Index, rewards: Array) -> None:
        at, bound, y = (np.arange(state.paths), chosen), self.mean_bound, clip(rewards)
        x, first = state.points[at], state.counts[at] == 0
        blocks = y.reshape(state.paths, 2 * self.m + 1, self.n).mean(axis=2)
        descended = x - self.step * np.clip(x - np.median(blocks, axis=1), -bound, bound)
        start = np.clip(np.median(y, axis=1), -bound, bound)
        state.points[at] = np.where(first, start, descended)
        state.counts[at] += 1
