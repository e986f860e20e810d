"""The contract of a policy, with checks that every policy shares.

A policy is a recipe: a frozen dataclass of hyper-parameters. What it learns lives in a state
outside it. Everything is written once, for many independent paths at a time; live use is a batch
of one path.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Generic, Literal, Protocol, Self, TypeVar, final, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tailproof.checks import array, check_fields, number, require, whole
from tailproof.policies.state.base import ONE, Array, Index, State, flat_index, picked
from tailproof.settings import Named

__all__ = [
    "LONGEST",
    "Array",
    "Index",
    "Indexed",
    "KArmed",
    "Policy",
    "Proposes",
    "Recommends",
    "S",
    "State",
    "View",
    "pick_largest",
    "picked",
    "proposing",
    "recommending",
    "shares_of_largest",
    "unwarned",
]

LONGEST = 1e75
"""The longest arm that is accepted: its square can still be added and multiplied."""

View = Literal["arms", "vectors", "context"]
"""What a policy sees: the number of each arm, the vector of each, or one vector for all."""
S = TypeVar("S", bound=State)


def unwarned() -> np.errstate:
    """Return a context in which NumPy does not warn of infinities, which are legitimate here."""
    return np.errstate(divide="ignore", invalid="ignore", over="ignore")


class Policy(Named, ABC, Generic[S]):
    """A bandit algorithm: it chooses arms and learns from rewards.

    Arms have the shape (paths, K, d), choices (paths,), rewards (paths, `pulls`). K may change from
    call to call, unless the state has `fixed_arms`. A policy with the view "arms" knows an arm by
    its number; an arm that appears later starts like the others.

    A policy of your own writes `_init`, `_choose` and `_learn`. Their arguments are checked
    already, and NumPy does not warn of infinities inside them. Fields are checked by their types,
    see `tailproof.checks`.
    """

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def pulls(self) -> int:
        """The number of rewards wanted for one decision."""
        return 1

    @property
    def least(self) -> int:
        """The fewest rewards that `learn` accepts for one decision, if some were lost."""
        return self.pulls

    @property
    def view(self) -> View:
        """Whether arms are known by their number ("arms") or by their vectors ("vectors").

        A policy of another library may also see one "context", which all arms share.
        """
        return "vectors"

    @property
    def invariances(self) -> frozenset[str]:
        """The changes of all rewards that change no decision; `tailproof.testing` checks them.

        "units" (multiples), "offset" (a constant is added), "increasing" (these and all other
        strictly increasing functions).
        """
        return frozenset()

    @final
    def init(self, paths: int, arms: int, dim: int) -> S:
        """Return the state of a policy that has learned nothing yet."""
        state = self._init(whole("paths", paths), whole("arms", arms), whole("dim", dim))
        state.policy = type(self).__name__
        return state

    @final
    def restore(self, arrays: Mapping[str, ArrayLike]) -> S:
        """Return the state that `State.to_arrays` was called on, checked.

        Arrays with other names, shapes or types, of another policy or of another version, raise
        ``ValueError``; so does a NaN or an infinity that learning cannot produce.

        >>> from tailproof import OFUL, LinTS
        >>> saved = OFUL().init(paths=1, arms=2, dim=2).to_arrays()
        >>> OFUL().restore(saved).theta.tolist()
        [[0.0, 0.0]]
        >>> LinTS().restore(saved)
        Traceback (most recent call last):
        ValueError: these arrays are a state of OFUL, not of LinTS
        """
        name = type(self).__name__
        missing = {"arms", "dim", "decisions", "policy"} - arrays.keys()
        require(not missing, "arrays", f"those of a state of {name}", list(arrays))
        owner, decisions = str(np.asarray(arrays["policy"])), np.asarray(arrays["decisions"])
        if owner != name:
            raise ValueError(f"these arrays are a state of {owner}, not of {name}")
        require(decisions.ndim == 1, "decisions", "an array with one axis", decisions.shape)
        most = 10_000 + sum(np.size(value) for value in arrays.values())  # limits the memory taken
        arms, dim = (
            whole(size, np.asarray(arrays[size])[()], at_most=most) for size in ("arms", "dim")
        )
        state = self.init(1, arms, dim)
        state.fill(arrays, whole("the number of paths", len(decisions)))
        return state

    @final
    def choose(self, state: S, arms: ArrayLike, rng: np.random.Generator) -> Index:
        """Return the arm to pull in each path; the state does not change."""
        require(hasattr(rng, "integers"), "rng", "a numpy.random.Generator", rng)
        with unwarned():
            vectors = self.check_arms(state, arms)
            return self._choose(self.resized(state, vectors.shape[1]), vectors, rng)

    @final
    def propensities(self, state: S, arms: ArrayLike) -> Array | None:
        """Return the probability of each arm being chosen, of shape (paths, K); None if unknown.

        >>> from tailproof import UCB1
        >>> policy, arms = UCB1(), np.zeros((1, 2, 1))
        >>> state = policy.init(paths=1, arms=2, dim=1)
        >>> policy.propensities(state, arms).tolist()
        [[0.5, 0.5]]
        """
        with unwarned():
            vectors = self.check_arms(state, arms)
            return self._propensities(self.resized(state, vectors.shape[1]), vectors)

    @final
    def learn(
        self,
        state: S,
        arms: ArrayLike,
        chosen: ArrayLike,
        rewards: ArrayLike,
        propensity: ArrayLike | None = None,
    ) -> None:
        """Learn from the rewards of the chosen arms.

        ±inf and any finite size are legitimate rewards. A wrong shape, a NaN, or an arm that is
        not finite raises ``ValueError`` and leaves the state as it was. A decision that lost
        rewards may have fewer than `pulls`, down to `least`; they are then repeated in turn.

        `propensity`, of shape (paths,), is the probability with which the chosen arms were chosen,
        if this policy did not choose them. Few policies use it.
        """
        with unwarned():
            vectors = self.check_arms(state, arms)
            index, values = array("chosen", chosen, None), array("rewards", rewards)
            expected, offered = (state.paths, self.pulls), vectors.shape[1]
            if values.shape != expected:
                values = self._filled_up(expected, values)
            require(not math.isnan(values.min()), "rewards", "free of NaN", np.nan)
            if index.shape != expected[:1]:
                raise ValueError(f"chosen must be of shape {expected[:1]}, got {index.shape}")
            if index.dtype.kind not in "iu" or index.min() < 0 or index.max() >= offered:
                rule = f"whole numbers from 0 to {offered - 1}"
                raise ValueError(f"chosen must be {rule}, got {chosen!r}")
            if propensity is not None:
                propensity = array("propensity", propensity)
                ok = propensity.shape == index.shape
                require(ok, "propensity", f"of shape {index.shape}", propensity.shape)
                ok = bool(np.all((propensity > 0) & (propensity <= 1)))
                require(ok, "propensity", "above 0 and at most 1", propensity.tolist())
            if offered > state.arms:
                state.become(self.resized(state, offered))
            self.learn_unchecked(state, vectors, index, values, propensity)

    def estimate(self, state: S) -> Array | None:
        """Return the estimate of θ, of shape (paths, d), if the algorithm has one."""
        return None

    def with_scale(self, scale: float) -> Self:
        """Return the recipe with another `noise_scale`; raises if it has none.

        >>> from tailproof import OFUL
        >>> OFUL().with_scale(0.4).noise_scale
        0.4
        """
        number("scale", scale, above=0)
        if not hasattr(self, "noise_scale"):
            raise ValueError(
                f"{self!r} has no noise_scale; AutoFiltered brings the rewards of any policy to "
                "scale one"
            )
        return replace(self, noise_scale=scale)  # type: ignore[type-var]

    # The unchecked verbs: wrappers, simulations and agents check once, at the outermost call.

    @final
    def check_arms(self, state: S, arms: ArrayLike) -> Array:
        """Check the state, and return the arms as a checked array; the verbs below do not check."""
        if not self._owns(state):
            owner = state.policy if isinstance(state, State) else state
            raise ValueError(f"state is one of {owner}, not of {self!r}")
        vectors = array("arms", arms)
        expected, shape = (state.paths, state.arms, state.dim), vectors.shape
        if shape != expected:
            some = len(shape) == 3 and shape[1] > 0
            if not some or shape != (expected[0], shape[1], expected[2]):
                raise ValueError(f"arms must be of shape {expected}, got {shape}")
            if state.fixed_arms:
                name = type(self).__name__
                raise ValueError(f"{name} must keep its {expected[1]} arms, got {shape[1]}")
        distinct = vectors[:1] if vectors.strides[0] == 0 else vectors  # paths may share their arms
        flat = distinct.ravel(order="K")
        most = self._longest
        if not flat @ flat <= most**2:  # NaN, infinite and long arms show in the sum
            length = float(np.linalg.norm(vectors, axis=-1).max())
            require(length <= most, "arms", f"finite, no longer than {most:g}", length)
        return vectors

    @final
    def resized(self, state: S, arms: int) -> S:
        """Return the state for this number of arms: itself if it has this number already."""
        if arms == state.arms:
            return state
        start = self.init(1, arms, state.dim) if arms > state.arms else None
        return state.resized(arms, start)

    @final
    def choose_unchecked(self, state: S, arms: Array, rng: np.random.Generator) -> Index:
        """Choose as `choose` does, from checked arms and a state with the same number of arms."""
        return self._choose(state, arms, rng)

    @final
    def propensities_unchecked(self, state: S, arms: Array) -> Array | None:
        """Return `propensities` of checked arms, for a state with as many arms."""
        return self._propensities(state, arms)

    @final
    def learn_unchecked(
        self,
        state: S,
        arms: Array,
        chosen: Index,
        rewards: Array,
        propensity: Array | None = None,
    ) -> None:
        """Learn as `learn` does, from checked arguments, and count the decision."""
        if propensity is None and self._weighs:
            propensity = self._own_propensity(state, arms, chosen)
        self._learn_weighted(state, arms, chosen, rewards, propensity)
        state.decisions += ONE

    @property
    def _innermost(self) -> "Policy[Any]":
        """The recipe inside all wrappers; the policy itself if it wraps nothing."""
        return self

    def _altered(self, **changes: Any) -> Self:
        """Return the policy with other settings of the recipe inside all wrappers."""
        policy: Any = self
        altered: Self = replace(policy, **changes)
        return altered

    @abstractmethod
    def _init(self, paths: int, arms: int, dim: int) -> S: ...

    @abstractmethod
    def _choose(self, state: S, arms: Array, rng: np.random.Generator) -> Index: ...

    @abstractmethod
    def _learn(self, state: S, arms: Array, chosen: Index, rewards: Array) -> None: ...

    def _learn_weighted(
        self, state: S, arms: Array, chosen: Index, rewards: Array, propensity: Array | None
    ) -> None:
        """Learn; for wrappers, and for policies that use the propensity."""
        self._learn(state, arms, chosen, rewards)

    def _propensities(self, state: S, arms: Array) -> Array | None:
        return None

    @property
    def _longest(self) -> float:
        """The longest arm that is accepted."""
        return LONGEST

    @property
    def _weighs(self) -> bool:
        """Whether `_learn_weighted` needs the propensity."""
        return False

    def _owns(self, state: State) -> bool:
        """Return whether the state belongs to this policy."""
        return isinstance(state, State) and state.policy == type(self).__name__

    def _own_propensity(self, state: S, arms: Array, chosen: Index) -> Array:
        share = self._propensities(state, arms)
        if share is None:
            raise ValueError(f"{self!r} does not report its propensities; pass propensity=")
        propensity: Array = share[np.arange(state.paths), chosen]
        if not propensity.all():
            raise ValueError(f"{self!r} would never choose {chosen.tolist()}; pass propensity=")
        return propensity

    def _filled_up(self, shape: tuple[int, int], rewards: Array) -> Array:
        """Return as many rewards as wanted, repeating the given rewards in turn."""
        rule = f"of shape {shape}"
        if self.least < self.pulls:
            rule += f", or with {self.least} columns or more"
        ok = rewards.ndim == 2 and len(rewards) == shape[0]
        ok = ok and self.least <= rewards.shape[1] <= self.pulls
        require(ok, "rewards", rule, rewards.shape)
        return rewards[:, np.arange(self.pulls) % rewards.shape[1]]


@runtime_checkable
class Proposes(Protocol):
    """A policy that can play on the unit ball, where every vector may be pulled."""

    def propose(self, state: Any, rng: np.random.Generator) -> Array:
        """Return the vector to pull in each path, of shape (paths, d); the state does not change.

        This replaces `choose`; `learn` gets the proposed vectors as the only arm, of shape
        (paths, 1, d).
        """


@runtime_checkable
class Recommends(Protocol):
    """A policy that finds the best arm, see `tailproof.bestarm`."""

    def recommend(self, state: Any) -> Index:
        """Return the recommended arm in each path, −1 before the answer."""

    def stopped(self, state: Any) -> NDArray[np.bool_]:
        """Return which paths have a recommended arm and need no more pulls."""
        return self.recommend(state) >= 0


def proposing(policy: Policy[Any]) -> Proposes:
    """Return the policy if it can play on the unit ball."""
    if not isinstance(policy, Proposes):
        raise ValueError(f"{policy!r} cannot play on the unit ball; policies such as OFUL can")
    return policy


def recommending(policy: Policy[Any]) -> Recommends:
    """Return the policy if it finds the best arm."""
    if not isinstance(policy, Recommends):
        raise ValueError(f"{policy!r} names no best arm; the policies of tailproof.bestarm do")
    return policy


class KArmed(Policy[S]):
    """A policy that knows arms by their number and ignores their vectors."""

    @property
    def view(self) -> View:
        """The numbers of the arms."""
        return "arms"


class Indexed(Policy[S]):
    """A policy that chooses the arm with the largest index; a subclass defines the index."""

    @abstractmethod
    def _index(self, state: S, arms: Array) -> Array:
        """Return the index of every arm, of shape (paths, K)."""

    def _choose(self, state: S, arms: Array, rng: np.random.Generator) -> Index:
        return pick_largest(self._index(state, arms), rng)

    def _propensities(self, state: S, arms: Array) -> Array:
        return shares_of_largest(self._index(state, arms))


def shares_of_largest(index: Array) -> Array:
    """Return the probability with which `pick_largest` picks each position.

    >>> shares_of_largest(np.array([[3.0, 1.0, 3.0]])).tolist()
    [[0.5, 0.0, 0.5]]
    """
    index = np.where(np.isnan(index), -np.inf, index)
    tied = index == index.max(axis=1, keepdims=True)
    return np.asarray(tied / tied.sum(axis=1, keepdims=True))


def pick_largest(index: Array, rng: np.random.Generator) -> Index:
    """Return the position of the largest index in each path, ties broken fairly.

    An undefined index (NaN) loses against any other. One random number is drawn for each path
    whatever the indices are, so that no path can disturb another.
    """
    draw = rng.random(len(index))
    best: Index = index.argmax(axis=1)
    arms = index.shape[1]
    largest = index.take(flat_index(best, arms))  # NaN, if there is one
    if np.count_nonzero(index.ravel() < largest.repeat(arms)) < index.size - len(index):
        index = np.where(np.isnan(index), -np.inf, index)
        tied = index == index.max(axis=1, keepdims=True)
        tied &= tied.cumsum(axis=1) > (draw * tied.sum(axis=1)).astype(np.int64)[:, None]
        best = tied.argmax(axis=1)
    return best
