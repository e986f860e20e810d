"""M-UCB: the index for K arms whose quality is their median."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tailproof.checks import number
from tailproof.policies.base import Array, Index, Policy, pick_largest
from tailproof.policies.history import History

__all__ = ["MedianUCB", "RunningMedians"]

_WIDTH = 64  # of the windows


@dataclass(eq=False)
class RunningMedians(History):
    """A history, and for each arm a window of sorted samples around its median.

    A sample beyond the window is only counted. The middle rank moves by half a place with each
    sample, so it seldom leaves the window, and only then a path looks back.

    Attributes
    ----------
    medians : array of shape (paths, K)
    window : array of shape (paths, K, 64)
        Sorted samples, then +inf.
    held, below : arrays of shape (paths, K)
        The samples in the window, and those before it.
    """

    medians: Array
    window: Array
    held: Index
    below: Index

    @classmethod
    def start(cls, paths: int, arms: int, dim: int, **more: Any) -> Self:
        """Return the memory before any decision."""
        held, below = np.zeros((2, paths, arms), dtype=np.int64)
        more |= {"window": np.full((paths, arms, _WIDTH), np.inf), "held": held, "below": below}
        return super().start(paths, arms, dim, medians=np.zeros((paths, arms)), **more)

    def learn(self, chosen: Index, rewards: Array) -> None:
        """Learn one reward in each path."""
        at = np.arange(self.paths), chosen
        x = self.append(chosen, rewards)
        n, window, held, below = self.counts[at], self.window[at], self.held[at], self.below[at]
        rank = (window < x[:, None]).sum(axis=1)
        before = (rank == 0) & (below > 0)
        after = (rank == held) & (below + held < n - 1)
        inside = ~before & ~after
        column = np.arange(_WIDTH)
        later = np.concatenate([window[:, :1], window[:, :-1]], axis=1)
        shifted = np.where(column > rank[:, None], later, window)
        shifted = np.where(column == rank[:, None], x[:, None], shifted)
        full = inside & (held == _WIDTH)
        window = np.where(inside[:, None], shifted, window)
        held, below = held + inside, below + before
        low, high = (n - 1) // 2, n // 2
        (lost,) = np.nonzero(full | (low < below) | (high >= below + held))
        if len(lost):
            samples, given = self.given_by(lost, chosen[lost])
            ordered = np.sort(np.where(given, samples, np.inf), axis=1)
            ordered = np.pad(ordered, ((0, 0), (0, _WIDTH)), constant_values=np.inf)
            below[lost] = np.maximum(low[lost] - _WIDTH // 4, 0)
            held[lost] = np.minimum(n[lost] - below[lost], _WIDTH // 2)
            places = below[lost, None] + column
            middle = np.take_along_axis(ordered, places, axis=1)
            window[lost] = np.where(column < held[lost, None], middle, np.inf)
        self.window[at], self.held[at], self.below[at] = window, held, below
        places = np.stack([low - below, high - below], axis=1)
        self.medians[at] = np.take_along_axis(window, places, axis=1).mean(axis=1)


@dataclass(frozen=True, kw_only=True)
class MedianUCB(Policy[RunningMedians]):
    """Pull the arm with the largest median plus bonus: no mean is needed.

    a_t = argmax_a median_a + bonus (√(2 v ε) + 2 ε √(v/n)),
    v = 4/(n hazard²), ε = confidence·ln t, with n samples of the arm, each arm once first

    Parameters
    ----------
    hazard : float
        L, a lower bound on the hazard rate f/(1 − F) of the rewards. Laws with heavy tails have
        none far out; there it stands for the rate around the median, 2 f(median).
    confidence : float
        α: the median may be off by more than the bonus with a probability of about t^−α.
    bonus : float
        β, which multiplies the width: 1 is the bound itself.

    Examples
    --------
    >>> policy, rng = MedianUCB(bonus=0.2), np.random.default_rng(0)
    >>> memory = policy.init(paths=1, arms=2, dim=2)
    >>> arms = np.eye(2)[None]
    >>> for _ in range(1000):
    ...     chosen = policy.choose(memory, arms, rng)
    ...     policy.learn(memory, arms, chosen, chosen[:, None] + rng.standard_cauchy((1, 1)))
    >>> int(memory.counts[0].argmax())
    1

    Source: M-UCB of Zhang and Ong 2021, from their public code. Differences: ties and the order
    of first pulls are random; one `hazard` for all arms, given and not estimated; a reward
    beyond ±1e100 counts as ±1e100. The paper itself was not at hand: the default of `confidence`
    is the 4 of UCB1, not theirs.
    """

    hazard: float = 1.0
    confidence: float = 4.0
    bonus: float = 1.0

    def __post_init__(self) -> None:
        number("hazard", self.hazard, above=0)
        number("confidence", self.confidence, at_least=0)
        number("bonus", self.bonus, at_least=0)

    def _init(self, paths: int, arms: int, dim: int) -> RunningMedians:
        return RunningMedians.start(paths, arms, dim)

    def _choose(self, memory: RunningMedians, arms: Array, rng: np.random.Generator) -> Index:
        n = np.maximum(memory.counts, 1)
        v = 4 / (n * self.hazard**2)
        eps = self.confidence * np.log(np.maximum(memory.decisions, 1))[:, None]
        index = memory.medians + self.bonus * (np.sqrt(2 * v * eps) + 2 * eps * np.sqrt(v / n))
        return pick_largest(np.where(memory.counts == 0, np.inf, index), rng)

    def _learn(self, memory: RunningMedians, arms: Array, chosen: Index, rewards: Array) -> None:
        memory.learn(chosen, rewards[:, 0])
