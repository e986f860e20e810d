"""What K-armed policies remember: how often each arm was pulled, and every reward in order."""

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
    places,
)

__all__ = ["Counted", "History", "Tally", "clip"]

LARGEST = 1e100


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

    counts: ArmCounts


@dataclass(eq=False)
class Tally(Counted):
    """The sum of the rewards of each arm.

    Attributes
    ----------
    sums : array of shape (paths, K)
    """

    sums: ArmValues

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
    samples: FiniteBuffer
    pulled: Annotated[Index, Rule((ROOM,), least=-1, names_arms=True, buffer=1, blank=-1)]

    def append(self, chosen: Index, rewards: Array) -> Array:
        """Keep one reward of the chosen arm of each path, and return what was kept."""
        kept, path = clip(rewards, self.largest), np.arange(self.paths)
        self.make_room()
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
