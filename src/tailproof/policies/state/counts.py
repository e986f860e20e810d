"""States of K-armed policies: counts, sums and the history of rewards."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from tailproof.policies.state.base import (
    ONE,
    ROOM,
    ArmCounts,
    ArmValues,
    Array,
    FiniteBuffer,
    Index,
    Rule,
    State,
    flat_index,
)

__all__ = ["Counted", "RewardHistory", "Tally", "clip"]

LARGEST = 1e100


def clip(rewards: Array, largest: float = LARGEST) -> Array:
    """Return the rewards clipped to ±1e100, so that sums stay finite.

    >>> clip(np.array([-np.inf, 2.0, 1e300])).tolist()
    [-1e+100, 2.0, 1e+100]
    """
    return np.clip(rewards, -largest, largest)


@dataclass(eq=False)
class Counted(State):
    """How many decisions chose each arm (`counts`), of shape (paths, K)."""

    counts: ArmCounts


@dataclass(eq=False)
class Tally(Counted):
    """The sum of each arm's rewards (`sums`), of shape (paths, K)."""

    sums: ArmValues

    def update(self, chosen: Index, y: Array) -> None:
        """Add one reward of the chosen arm of each path."""
        at = flat_index(chosen, self.arms)
        self.counts.put(at, self.counts.take(at) + ONE)
        self.sums.put(at, self.sums.take(at) + y)


@dataclass(eq=False)
class RewardHistory(Counted):
    """Every reward in the order of decisions, in buffers that double when they are full.

    The arms of a path share one row, however unevenly they were pulled: `samples`, of shape
    (paths, room), holds rewards clipped to ±`largest` and `pulled` their arms, −1 where unused.
    """

    largest: ClassVar[float] = LARGEST
    samples: FiniteBuffer
    pulled: Annotated[Index, Rule((ROOM,), least=-1, names_arms=True, buffer=1, blank=-1)]

    def append(self, chosen: Index, rewards: Array) -> Array:
        """Store one reward of the chosen arm of each path, and return the clipped rewards."""
        kept, path = clip(rewards, self.largest), np.arange(self.paths)
        self.make_room()
        self.counts[path, chosen] += 1
        self.samples[path, self.decisions] = kept
        self.pulled[path, self.decisions] = chosen
        return kept

    @property
    def used(self) -> slice:
        """The columns in use, including the decision that is being learned."""
        return slice(int(self.decisions.max()) + 1)

    def given_by(self, path: Index, arm: Index) -> tuple[Array, NDArray[np.bool_]]:
        """Return the rewards of the given paths, and which of them came from the given arms."""
        return self.samples[path, self.used], self.pulled[path, self.used] == arm[:, None]
