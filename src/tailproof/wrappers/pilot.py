"""Wrappers that learn their units from the first decisions, and let A learn these again."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tailproof.policies.base import Array, Index, Policy, State
from tailproof.policies.state.base import ROOM, Buffer, Rule
from tailproof.wrappers.base import Wrapped, Wrapper

__all__ = ["Piloted", "Relearning"]

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
        return self.keeps(self.decisions)

    def keeps(self, decisions: Index) -> NDArray[np.bool_]:
        """Return which paths keep the next decision after this many."""
        return decisions < self.settle

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

    def teach(self, policy: Policy[Any], inner: State, arms: Array, rewards: Array) -> None:
        """Let A learn the first decisions in a new state, with other arms and rewards.

        They have the shapes (paths, decisions, K, …) and (paths, decisions, …).
        """
        for t in range(rewards.shape[1]):
            chosen, propensity = self.pilot_chosen[:, t], self.pilot_propensity[:, t]
            offered = arms[:, t, : self.pilot_offered[:, t].max()]
            policy.learn_unchecked(inner, offered, chosen, rewards[:, t], propensity)


P = TypeVar("P", bound=Piloted)


class Relearning(Wrapper[P]):
    """A wrapper that estimates units from the first decisions, and lets A learn these again.

    Paths may differ in age, as some may have been restarted. A path that is due learns all of its
    decisions again, together with the due paths of its age; the others learn one more decision.
    """

    def _learn_weighted(
        self, state: P, arms: Array, chosen: Index, rewards: Array, propensity: Array | None
    ) -> None:
        young = state.young
        due = young & self._due(state.decisions + 1)
        self._take_in(state, chosen, rewards)
        raw = rewards.reshape(state.paths, *state.pilot_rewards.shape[2:])
        propensities = np.ones(state.paths) if propensity is None else propensity
        if young.any():
            state.keep(np.flatnonzero(young), arms, chosen, raw, propensities)
        if not due.any():
            everyone = slice(None)
            self._learn_on(state, state.inner, everyone, arms, chosen, raw, propensity)
        else:
            self._split(state, due, arms, chosen, raw, propensities)
        if state.pilot_rewards.shape[1] and not state.keeps(state.decisions + 1).any():
            state.forget()

    def _split(
        self,
        state: P,
        due: NDArray[np.bool_],
        arms: Array,
        chosen: Index,
        raw: Array,
        propensity: Array,
    ) -> None:
        """Learn again in the paths that are due, and one more decision in the others."""
        rows = np.flatnonzero(~due)
        if len(rows):
            inner = state.inner.take(rows)
            self._learn_on(state, inner, rows, arms, chosen, raw, propensity[rows])
            state.inner.put(rows, inner)
        for decisions in np.unique(state.decisions[due]):
            rows = np.flatnonzero(due & (state.decisions == decisions))
            part = state.take(rows)
            self._learn_again(part, int(decisions) + 1)
            state.put(rows, part)

    def _due(self, age: Index) -> NDArray[np.bool_]:
        """Return which young paths learn all decisions again, `age` counting the present one."""
        return age > 0

    def _take_in(self, state: P, chosen: Index, rewards: Array) -> None:
        """Let the wrapper itself learn from every decision."""

    @abstractmethod
    def _learn_on(
        self,
        state: P,
        inner: State,
        rows: Index | slice,
        arms: Array,
        chosen: Index,
        raw: Array,
        propensity: Array | None,
    ) -> None:
        """Let A, in the state `inner` of some paths, learn one more decision."""

    @abstractmethod
    def _learn_again(self, part: P, age: int) -> None:
        """Estimate the units of paths of one age, and let A learn all decisions in a new state."""
