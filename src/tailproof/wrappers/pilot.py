"""The first decisions of a wrapper that learns its units from them."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from tailproof.policies.base import Array, Index, Policy, State
from tailproof.policies.state.base import ROOM, Buffer, Rule
from tailproof.wrappers.base import Wrapped

__all__ = ["Piloted"]

_PARTS = ("pilot_arms", "pilot_offered", "pilot_chosen", "pilot_rewards", "pilot_propensity")


@dataclass(eq=False)
class Piloted(Wrapped):
    """The state of the policy A inside, and the first decisions, which A may learn again.

    Attributes
    ----------
    pilot_arms, pilot_chosen, pilot_rewards, pilot_propensity : arrays of shape (paths, room, …)
        The first decisions of each path, with room for more; empty once every path has settled.
    pilot_offered : array of shape (paths, room)
        How many arms were on offer.
    settle : int
        How many decisions are kept.
    """

    pilot_arms: Annotated[Array, Rule((ROOM, "arms", "dim"), finite=True, buffer=1)]
    pilot_offered: Annotated[Index, Rule((ROOM,), least=0, buffer=1)]
    pilot_chosen: Annotated[Index, Rule((ROOM,), least=0, names_arms=True, buffer=1)]
    pilot_rewards: Buffer
    pilot_propensity: Buffer
    settle: int

    @property
    def young(self) -> NDArray[np.bool_]:
        """Which paths keep their decisions."""
        return self.decisions < self.settle

    def _room_needed(self) -> int:
        return int(self.decisions[self.young].max(initial=0))

    def _room_saved(self) -> int:
        return super()._room_saved() if self.young.any() else 0

    def keep(
        self, rows: Index, arms: Array, chosen: Index, rewards: Array, propensity: Array
    ) -> None:
        """Store a decision of some paths."""
        at = self.decisions[rows]
        self.make_room(int(at.max()) + 1)
        self.pilot_arms[rows, at, : arms.shape[1]] = arms[rows]
        self.pilot_offered[rows, at] = arms.shape[1]
        self.pilot_chosen[rows, at] = chosen[rows]
        self.pilot_rewards[rows, at] = rewards[rows]
        self.pilot_propensity[rows, at] = propensity[rows]

    def forget(self) -> None:
        """Drop the first decisions."""
        for name in _PARTS:
            setattr(self, name, getattr(self, name)[:, :0].copy())

    def replay(self, policy: Policy[Any], inner: State, arms: Array, rewards: Array) -> None:
        """Let A learn the first decisions in a new state, with other arms and rewards.

        They have the shapes (paths, decisions, K, …) and (paths, decisions, …).
        """
        for t in range(rewards.shape[1]):
            chosen, known = self.pilot_chosen[:, t], self.pilot_propensity[:, t]
            offered = arms[:, t, : self.pilot_offered[:, t].max()]
            policy._update(inner, offered, chosen, rewards[:, t], known)
