"""Baselines that learn nothing."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tailproof.checks import Range
from tailproof.policies.base import Array, Index, KArmed, State

__all__ = ["FixedArm", "Uniform"]


class _Baseline(KArmed[State]):
    """A policy that only counts its decisions."""

    @property
    def invariances(self) -> frozenset[str]:
        """Rewards do not matter."""
        return frozenset({"increasing"})

    def _init(self, paths: int, arms: int, dim: int) -> State:
        return State.start(paths, arms, dim)

    def _learn(self, state: State, arms: Array, chosen: Index, rewards: Array) -> None:
        pass


@dataclass(frozen=True, kw_only=True)
class Uniform(_Baseline):
    """Pull an arm at random.

    P(a_t = a) = 1/K

    >>> policy = Uniform()
    >>> state = policy.init(paths=4, arms=2, dim=1)
    >>> policy.choose(state, np.ones((4, 2, 1)), np.random.default_rng(0)).shape
    (4,)

    Source: elementary. Differences: none.

    Kind: baseline.
    Needs: nothing.
    Learns without a mean: no.
    """

    def _choose(self, state: State, arms: Array, rng: np.random.Generator) -> Index:
        return rng.integers(arms.shape[1], size=state.paths)

    def _propensities(self, state: State, arms: Array) -> Array:
        return np.full(arms.shape[:2], 1 / arms.shape[1])


@dataclass(frozen=True, kw_only=True)
class FixedArm(_Baseline):
    """Always pull the same arm.

    a_t = arm

    >>> policy = FixedArm(arm=1)
    >>> state = policy.init(paths=2, arms=3, dim=1)
    >>> policy.choose(state, np.ones((2, 3, 1)), np.random.default_rng(0)).tolist()
    [1, 1]

    Source: elementary. Differences: none.

    Kind: baseline.
    Needs: nothing.
    Learns without a mean: no.
    """

    arm: Annotated[int, Range(at_least=0, at_most=1e15)] = 0

    def _init(self, paths: int, arms: int, dim: int) -> State:
        self._check(arms)
        return super()._init(paths, arms, dim)

    def _choose(self, state: State, arms: Array, rng: np.random.Generator) -> Index:
        self._check(arms.shape[1])
        return np.full(state.paths, self.arm, dtype=np.int64)

    def _propensities(self, state: State, arms: Array) -> Array:
        chosen = self._choose(state, arms, np.random.default_rng(0))
        return np.eye(arms.shape[1])[chosen]

    def _check(self, arms: int) -> None:
        if self.arm >= arms:
            raise ValueError(f"arm={self.arm} does not exist: with {arms} arms use 0 to {arms - 1}")
