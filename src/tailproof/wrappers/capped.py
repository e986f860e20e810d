"""A cap on wild rewards, learned as they come: the capped mean is what is maximised."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Self

import numpy as np

from tailproof.checks import Range
from tailproof.policies.base import Array, Index
from tailproof.policies.state.base import Buffer, Finite, Rule
from tailproof.wrappers.base import Wrapped, Wrapper

__all__ = ["Capped"]

_PILOT = ("pilot_arms", "pilot_chosen", "pilot_rewards", "pilot_propensity")
_ROOM = 16  # decisions to make room for at first
_MOST = 1e150
"""A reward beyond this, infinite ones included, counts as this: squares of it can be added up."""


@dataclass(eq=False)
class Ranged(Wrapped):
    """What a cap knows beside the state of the policy inside.

    Attributes
    ----------
    low, high, unit : arrays of shape (paths,)
        The range that rewards are cut to, and their standard deviation within it.
    pilot_arms, pilot_chosen, pilot_rewards, pilot_propensity : arrays of shape (paths, room, …)
        The first decisions of each path, with room for more; empty once every range has settled.
    settle : int
        After how many decisions a range stays as it is.
    """

    low: Finite
    high: Finite
    unit: Finite
    pilot_arms: Annotated[Array, Rule(finite=True, buffer=1)]
    pilot_chosen: Annotated[Index, Rule(least=0, arms=True, buffer=1)]
    pilot_rewards: Buffer
    pilot_propensity: Buffer
    settle: int

    def _room_needed(self) -> int:
        settled = self.decisions.min() >= self.settle
        return 0 if settled else min(int(self.decisions.max()), self.settle)

    def keep(
        self, rows: Index, arms: Array, chosen: Index, rewards: Array, propensity: Array
    ) -> None:
        """Keep a decision of some paths, in buffers that double."""
        at = self.decisions[rows]
        if at.max() >= self.pilot_chosen.shape[1]:
            for name in _PILOT:
                full = getattr(self, name)
                setattr(self, name, np.concatenate([full, np.zeros_like(full)], axis=1))
        self.pilot_arms[rows, at, : arms.shape[1]] = arms[rows]
        self.pilot_chosen[rows, at] = chosen[rows]
        self.pilot_rewards[rows, at] = rewards[rows]
        self.pilot_propensity[rows, at] = propensity[rows]

    def forget(self) -> None:
        """Drop the first decisions."""
        for name in _PILOT:
            setattr(self, name, getattr(self, name)[:, :0].copy())


@dataclass(frozen=True)
class Capped(Wrapper[Ranged]):
    """Any policy A, given rewards cut to a range that all arms share, in units of their spread.

    A learns (min(max(r, low), high) − low)/unit, where low and high are the (1 − share)- and
    share-quantiles of all rewards so far, whatever the arm, and unit is their standard
    deviation within the range

    So A maximises `tailproof.CappedMean`, which every law has, and meets a noise of scale one, as
    `UCB1` and `OFUL` assume; units and an offset of the rewards change nothing. The range is
    learned anew when the number of decisions has doubled, and A learns all decisions anew with it;
    after `settle` decisions it stays, and those are forgotten. `estimate` is in the units of the
    rewards, less the offset.

    Parameters
    ----------
    policy : Policy
        The algorithm A.
    share : float
        The share of all rewards below the cap, above ½.
    settle : int
        The number of decisions after which the range stays as it is. Until then they are kept, at
        8(K d + pulls + 1) bytes each for every path.

    Examples
    --------
    >>> from tailproof import UCB1
    >>> policy, rng = Capped(UCB1(), share=0.95), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> for _ in range(2000):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, 100 * chosen[:, None] + 50 * rng.pareto(0.9, (1, 1)))
    >>> int(state.inner.counts[0].argmax())
    1

    Source: capping at a percentile is a habit of experiment platforms; Dixon 1960 for winsorising.
    Differences: the range is learned, not told.
    """

    share: Annotated[float, Range(above=0.5, below=1)] = field(kw_only=True, default=0.99)
    settle: Annotated[int, Range(at_least=2, at_most=1e9)] = field(kw_only=True, default=2048)

    def with_scale(self, scale: float) -> Self:
        """Refuse: capped rewards are brought to a scale of one."""
        raise ValueError(f"policy must be one that does not learn its noise scale, got {self!r}")

    def estimate(self, state: Ranged) -> Array | None:
        """Return the estimate of the policy inside, in the units of the rewards."""
        inside = super().estimate(state)
        return None if inside is None else inside * state.unit[:, None]

    def _init(self, paths: int, arms: int, dim: int) -> Ranged:
        return Ranged.around(
            self.policy.init(paths, arms, dim),
            settle=self.settle,
            low=np.zeros(paths),
            high=np.zeros(paths),
            unit=np.ones(paths),
            pilot_arms=np.zeros((paths, _ROOM, arms, dim)),
            pilot_chosen=np.zeros((paths, _ROOM), dtype=np.int64),
            pilot_rewards=np.zeros((paths, _ROOM, self.pulls)),
            pilot_propensity=np.ones((paths, _ROOM)),
        )

    def _learn(
        self, state: Ranged, arms: Array, chosen: Index, rewards: Array, **more: Any
    ) -> None:
        known = more.get("propensity", np.ones(state.paths))
        age = state.decisions + 1
        young = age <= self.settle
        again = young & ((age & (age - 1) == 0) | (age == self.settle))
        if young.any():
            state.keep(np.flatnonzero(young), arms, chosen, rewards, known)
        if not again.any():
            super()._learn(state, arms, chosen, self._cut(state, rewards), **more)
        else:
            rows = np.flatnonzero(~again)
            if len(rows):  # paths of another age go on by themselves
                rest, cut = state.inner.take(rows), self._cut(state, rewards)[rows]
                self.policy.learn(rest, arms[rows], chosen[rows], cut, known[rows])
                state.inner.put(rows, rest)
            for count in np.unique(age[again]):
                self._learn_again(state, np.flatnonzero(again & (age == count)), int(count))
        if (age >= self.settle).all() and state.pilot_rewards.shape[1]:
            state.forget()

    def _learn_again(self, state: Ranged, rows: Index, age: int) -> None:
        """Learn the range of some paths of one age, and all their decisions with it."""
        rewards = np.clip(state.pilot_rewards[rows, :age], -_MOST, _MOST)
        seen = np.sort(rewards.reshape(len(rows), -1))
        beyond = int((1 - self.share) * seen.shape[1] + 1e-9)
        low, high = seen[:, beyond], seen[:, seen.shape[1] - 1 - beyond]
        state.low[rows], state.high[rows] = low, high
        cut = np.clip(rewards, low[:, None, None], high[:, None, None])
        state.unit[rows] = _deviation(cut)
        inner = self.policy.init(len(rows), state.arms, state.dim)
        part = state.take(rows)
        for t in range(age):
            arms, chosen = part.pilot_arms[:, t], part.pilot_chosen[:, t]
            cut_again = self._cut(part, part.pilot_rewards[:, t])
            self.policy.learn(inner, arms, chosen, cut_again, part.pilot_propensity[:, t])
        state.inner.put(rows, inner)

    def _cut(self, state: Ranged, rewards: Array) -> Array:
        """Return the rewards for A."""
        low, high, unit = (x[:, None] for x in (state.low, state.high, state.unit))
        return (np.clip(rewards, low, high) - low) / unit


def _deviation(cut: Array) -> Array:
    """Return the standard deviation of each path; one where it is zero."""
    deviation: Array = cut.std(axis=(1, 2))
    return np.where(deviation > 0, deviation, 1.0)
