"""What K-armed policies remember: how often each arm was pulled, and every reward in order."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tailproof.policies.state.base import ONE, Array, Counts, Index, Rule, State, places

__all__ = ["Counted", "History", "Tally", "clip"]

LARGEST = 1e100
ROOM = 16
"""The decisions for which a buffer has room at first."""


def clip(rewards: Array, largest: float = LARGEST) -> Array:
    """Return the rewards with ±1e100 in place of anything larger, so that sums stay finite.

    >>> clip(np.array([-np.inf, 2.0, 1e300])).tolist()
    [-1e+100, 2.0, 1e+100]
    """
    return np.clip(rewards, -largest, largest)


@dataclass(eq=False)
class Counted(State):
    """How often each arm was learned from.

    Attributes
    ----------
    counts : array of shape (paths, K)
    """

    counts: Counts

    @classmethod
    def start(cls, paths: int, arms: int, dim: int, **more: Any) -> Self:
        """Return the state before any decision."""
        return cls(
            arms=arms,
            dim=dim,
            decisions=np.zeros(paths, dtype=np.int64),
            counts=np.zeros((paths, arms), dtype=np.int64),
            **more,
        )


@dataclass(eq=False)
class Tally(Counted):
    """The sum of the rewards of each arm.

    Attributes
    ----------
    sums : array of shape (paths, K)
    """

    sums: Array

    @classmethod
    def start(cls, paths: int, arms: int, dim: int, **more: Any) -> Self:
        """Return the state before any decision."""
        return super().start(paths, arms, dim, sums=np.zeros((paths, arms)), **more)

    def update(self, chosen: Index, y: Array) -> None:
        """Add one reward of the chosen arm of each path."""
        at = places(chosen, self.arms)
        self.counts.put(at, self.counts.take(at) + ONE)
        self.sums.put(at, self.sums.take(at) + y)


@dataclass(eq=False)
class History(Counted):
    """Every reward in the order of its decision, in buffers that double when they are full.

    One row a path, shared by its arms, takes as much room as there were decisions, however
    unevenly the arms were pulled.

    Attributes
    ----------
    samples : array of shape (paths, room)
        One reward for each decision, within ±`largest`.
    pulled : array of shape (paths, room)
        The arm of each reward, −1 where there is none yet.
    """

    largest: ClassVar[float] = LARGEST
    samples: Annotated[Array, Rule(finite=True, buffer=1)]
    pulled: Annotated[Index, Rule(least=-1, arms=True, buffer=1, blank=-1)]

    @classmethod
    def start(cls, paths: int, arms: int, dim: int, **more: Any) -> Self:
        """Return the state before any decision."""
        return super().start(
            paths,
            arms,
            dim,
            samples=np.zeros((paths, ROOM)),
            pulled=np.full((paths, ROOM), -1, dtype=np.int64),
            **more,
        )

    def append(self, chosen: Index, rewards: Array) -> Array:
        """Keep one reward of the chosen arm of each path, and return what was kept."""
        kept, path = clip(rewards, self.largest), np.arange(self.paths)
        if self.decisions.max() == self.samples.shape[1]:
            self._grow()
        self.counts[path, chosen] += 1
        self.samples[path, self.decisions] = kept
        self.pulled[path, self.decisions] = chosen
        return kept

    @property
    def used(self) -> slice:
        """The columns in use, the decision that is being learned included."""
        return slice(int(self.decisions.max()) + 1)

    def given_by(self, path: Index, arm: Index) -> tuple[Array, NDArray[np.bool_]]:
        """Return the rewards of the given paths, and which of them the given arms gave."""
        return self.samples[path, self.used], self.pulled[path, self.used] == arm[:, None]

    def _grow(self) -> None:
        self.samples = np.concatenate([self.samples, np.zeros_like(self.samples)], axis=1)
        self.pulled = np.concatenate([self.pulled, np.full_like(self.pulled, -1)], axis=1)
