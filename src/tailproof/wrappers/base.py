"""The one base of every wrapper: a policy around a policy."""

from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar

import numpy as np

from tailproof.checks import require
from tailproof.policies.base import Array, Index, Policy, State

__all__ = ["W", "Wrapped", "Wrapper", "altered", "innermost"]


@dataclass(eq=False)
class Wrapped(State):
    """The state of the policy inside, and whatever the wrapper remembers beside it."""

    inner: Any

    @classmethod
    def around(cls, inner: State, **more: Any) -> Self:
        """Return the state around a state that has learned nothing yet."""
        decisions = np.zeros(inner.paths, dtype=np.int64)
        size = {"arms": inner.arms, "dim": inner.dim}
        return cls(**(size | more), decisions=decisions, inner=inner)


W = TypeVar("W", bound=Wrapped)


@dataclass(frozen=True)
class Wrapper(Policy[W], Generic[W]):
    """A policy that forwards the whole contract to the policy inside; subclasses change a part.

    Parameters
    ----------
    policy : Policy
        The policy inside.
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
        """The fewest rewards taken for one decision: those of the policy inside."""
        return self.policy.least

    @property
    def invariances(self) -> frozenset[str]:
        """The maps of all rewards that change no decision: those of the policy inside."""
        return self.policy.invariances

    @property
    def any_arms(self) -> bool:
        """Whether the number of arms may change from call to call."""
        return self.policy.any_arms

    @property
    def numbered(self) -> bool:
        """Whether the policy inside knows an arm by its number."""
        return self.policy.numbered

    @property
    def uses_vectors(self) -> bool:
        """Whether the policy inside looks at the vectors of the arms."""
        return self.policy.uses_vectors

    @property
    def longest(self) -> float:
        """The longest arm that the policy inside takes."""
        return self.policy.longest

    @property
    def uses_propensity(self) -> bool:
        """Whether the policy inside wants to know how probable the chosen arm was."""
        return self.policy.uses_propensity

    def propose(self, state: W, rng: np.random.Generator) -> Array:
        """Return the proposal of the policy inside."""
        return self.policy.propose(state.inner, rng)

    def estimate(self, state: W) -> Array | None:
        """Return the estimate of the policy inside."""
        return self.policy.estimate(state.inner)

    def recommend(self, state: W) -> Index:
        """Return the arm that the policy inside names."""
        return self.policy.recommend(state.inner)

    def with_scale(self, scale: float) -> Self:
        """Return the same wrapper around the policy told a scale of its noise."""
        return replace(self, policy=self.policy.with_scale(scale))

    def _init(self, paths: int, arms: int, dim: int) -> Any:
        return Wrapped.around(self.policy.init(paths, arms, dim))

    def _choose(self, state: W, arms: Array, rng: np.random.Generator) -> Index:
        return self.policy.choose(state.inner, arms, rng)

    def _propensities(self, state: W, arms: Array) -> Array | None:
        return self.policy.propensities(state.inner, arms)

    def _learn(self, state: W, arms: Array, chosen: Index, rewards: Array, **more: Any) -> None:
        self.policy.learn(state.inner, arms, chosen, rewards, **more)

    def _grow(self, state: W, arms: int) -> None:
        super()._grow(state, arms)
        self.policy._grow(state.inner, arms)

    def _among(self, state: W, arms: Index) -> W:
        other = super()._among(state, arms)
        other.inner = self.policy._among(state.inner, arms)
        return other


def innermost(policy: Policy[Any]) -> Any:
    """Return the recipe inside all wrappers.

    >>> from tailproof import UCB1, Filtered
    >>> innermost(Filtered(Filtered(UCB1(), repeats=3), repeats=5))
    UCB1(bonus=1.0)
    """
    return innermost(policy.policy) if isinstance(policy, Wrapper) else policy


def altered(policy: Policy[Any], **changes: Any) -> Any:
    """Return the policy with other settings of the recipe inside all wrappers.

    >>> from tailproof import UCB1, Filtered
    >>> altered(Filtered(UCB1(), repeats=3), bonus=0.5).policy
    UCB1(bonus=0.5)
    """
    if isinstance(policy, Wrapper):
        return replace(policy, policy=altered(policy.policy, **changes))
    inside: Any = policy
    return replace(inside, **changes)
