"""Policies that learn nothing: what every other one must beat."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tailproof.checks import Range, require
from tailproof.policies.base import Array, Index, KArmed, State

__all__ = ["FixedArm", "Uniform"]


class _Indifferent(KArmed[State]):
    """A policy that only counts its decisions."""

    def _init(self, paths: int, arms: int, dim: int) -> State:
        return State.start(paths, arms, dim)

    def _learn(self, state: State, arms: Array, chosen: Index, rewards: Array) -> None:
        pass


@dataclass(frozen=True, kw_only=True)
class Uniform(_Indifferent):
    """Pull an arm at random.

    P(a_t = a) = 1/K

    >>> policy = Uniform()
    >>> state = policy.init(paths=4, arms=2, dim=1)
    >>> policy.choose(state, np.ones((4, 2, 1)), np.random.default_rng(0)).shape
    (4,)

    Source: elementary. Differences: none.
    """

    def _choose(self, state: State, arms: Array, rng: np.random.Generator) -> Index:
        return rng.integers(arms.shape[1], size=state.paths)

    def _propensities(self, state: State, arms: Array) -> Array:
        return np.full(arms.shape[:2], 1 / arms.shape[1])


@dataclass(frozen=True, kw_only=True)
class FixedArm(_Indifferent):
    """Pull the same arm always.

    a_t = arm

    >>> policy = FixedArm(arm=1)
    >>> state = policy.init(paths=2, arms=3, dim=1)
    >>> policy.choose(state, np.ones((2, 3, 1)), np.random.default_rng(0)).tolist()
    [1, 1]

    Source: elementary. Differences: none.
    """

    arm: Annotated[int, Range(at_least=0, at_most=1e15)] = 0

    def _init(self, paths: int, arms: int, dim: int) -> State:
        require(self.arm < arms, "arm", f"below {arms}, the number of arms", self.arm)
        return super()._init(paths, arms, dim)

    def _choose(self, state: State, arms: Array, rng: np.random.Generator) -> Index:
        require(self.arm < arms.shape[1], "arm", f"below {arms.shape[1]}, those offered", self.arm)
        return np.full(state.paths, self.arm, dtype=np.int64)

    def _propensities(self, state: State, arms: Array) -> Array:
        chosen = self._choose(state, arms, np.random.default_rng(0))
        return np.eye(arms.shape[1])[chosen]
