"""The base class of wrappers: a policy around a policy."""

from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import require
from tailproof.policies.base import (
    Array,
    Index,
    Policy,
    State,
    View,
    proposing,
    recommending,
)

__all__ = ["Repeating", "W", "Wrapped", "Wrapper", "altered", "innermost"]


@dataclass(eq=False)
class Wrapped(State):
    """The state of the policy inside, and the wrapper's own arrays."""

    inner: Any

    @classmethod
    def around(cls, inner: State, **arrays: Any) -> Self:
        """Return the wrapper's state around an inner state that has learned nothing yet."""
        size = {"paths": inner.paths, "arms": inner.arms, "dim": inner.dim}
        state = cls.start(**(size | arrays), inner=inner)
        state.fixed_arms = inner.fixed_arms
        return state


W = TypeVar("W", bound=Wrapped)


@dataclass(frozen=True)
class Wrapper(Policy[W], Generic[W]):
    """A policy around a policy A; it forwards the whole contract, and subclasses change a part.

    Most subclasses define `_arms`, what A sees in place of the arms, or `_rewards`, what A learns
    in place of the rewards, and nothing else.

    Parameters
    ----------
    policy : Policy
        The policy A.
    """

    policy: Policy[Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        require(isinstance(self.policy, Policy), "policy", "a policy", self.policy)

    @property
    def pulls(self) -> int:
        """The rewards wanted for one decision."""
        return self.policy.pulls

    @property
    def least(self) -> int:
        """The fewest rewards accepted for one decision."""
        return self.policy.least

    @property
    def view(self) -> View:
        """The view of A."""
        return self.policy.view

    @property
    def invariances(self) -> frozenset[str]:
        """The changes of rewards that change no decision of A."""
        return self.policy.invariances

    def propose(self, state: W, rng: np.random.Generator) -> Array:
        """Return the proposal of A."""
        return proposing(self.policy).propose(state.inner, rng)

    def estimate(self, state: W) -> Array | None:
        """Return the estimate of A."""
        return self.policy.estimate(state.inner)

    def recommend(self, state: W) -> Index:
        """Return the arm that A recommends."""
        return recommending(self.policy).recommend(state.inner)

    def stopped(self, state: W) -> NDArray[np.bool_]:
        """Return which paths have a recommended arm and need no more pulls."""
        return self.recommend(state) >= 0

    def with_scale(self, scale: float) -> Self:
        """Return the same wrapper around A with another noise scale."""
        return replace(self, policy=self.policy.with_scale(scale))

    @property
    def _innermost(self) -> Policy[Any]:
        return self.policy._innermost

    def _altered(self, **changes: Any) -> Self:
        return replace(self, policy=self.policy._altered(**changes))

    @property
    def _longest(self) -> float:
        return self.policy._longest

    @property
    def _weighs(self) -> bool:
        return self.policy._weighs

    def _owns(self, state: State) -> bool:
        return super()._owns(state) and self.policy._owns(getattr(state, "inner"))  # noqa: B009

    def _init(self, paths: int, arms: int, dim: int) -> Any:
        return Wrapped.around(self.policy.init(paths, arms, dim))

    def _arms(self, state: W, arms: Array) -> Array:
        """Return the arms as A sees them."""
        return arms

    def _rewards(self, state: W, rewards: Array) -> Array:
        """Return the rewards that A learns from."""
        return rewards

    def _choose(self, state: W, arms: Array, rng: np.random.Generator) -> Index:
        return self.policy.choose_unchecked(state.inner, self._arms(state, arms), rng)

    def _propensities(self, state: W, arms: Array) -> Array | None:
        return self.policy.propensities_unchecked(state.inner, self._arms(state, arms))

    def _learn_weighted(
        self, state: W, arms: Array, chosen: Index, rewards: Array, propensity: Array | None
    ) -> None:
        seen, r = self._arms(state, arms), self._rewards(state, rewards)
        self.policy.learn_unchecked(state.inner, seen, chosen, r, propensity)

    @final
    def _learn(self, state: W, arms: Array, chosen: Index, rewards: Array) -> None:
        self._learn_weighted(state, arms, chosen, rewards, None)


class Repeating(Wrapper[W]):
    """A wrapper that takes ñ = `repeats` rewards for each reward that A takes."""

    repeats: int

    @property
    def pulls(self) -> int:
        """The raw rewards wanted for one decision."""
        return self.policy.pulls * self.repeats

    @property
    def least(self) -> int:
        """More than half of `repeats` if A takes one reward a decision; else all rewards."""
        return self.repeats // 2 + 1 if self.policy.pulls == 1 else self.pulls


def innermost(policy: Policy[Any]) -> Any:
    """Return the recipe inside all wrappers.

    >>> from tailproof import UCB1, Filtered
    >>> innermost(Filtered(Filtered(UCB1(), repeats=3), repeats=5))
    UCB1(bonus=1.0, random=False)
    """
    return policy._innermost


def altered(policy: Policy[Any], **changes: Any) -> Any:
    """Return the policy with other settings of the recipe inside all wrappers.

    >>> from tailproof import UCB1, Filtered
    >>> altered(Filtered(UCB1(), repeats=3), bonus=0.5).policy
    UCB1(bonus=0.5, random=False)
    """
    return policy._altered(**changes)
