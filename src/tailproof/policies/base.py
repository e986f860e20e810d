"""The contract of a policy, and what every policy shares.

A policy is a recipe: a frozen dataclass of hyper-parameters. What it learns lives in a state
outside it. Everything is written once, for many independent paths at a time; live use is a batch
of one path.
"""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar, Generic, Self, TypeVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tailproof.checks import array, check_fields, number, require, whole
from tailproof.policies.state.base import ONE, Array, Index, State, picked, places

__all__ = [
    "LONGEST",
    "Array",
    "Index",
    "Indexed",
    "Policy",
    "S",
    "State",
    "pick_largest",
    "picked",
    "unwarned",
]

LONGEST = 1e75
"""The longest arm that is taken: squares of lengths can still be added up and multiplied."""

S = TypeVar("S", bound=State)


def unwarned() -> np.errstate:
    """Return what keeps NumPy from warning of infinities, which are legitimate here."""
    return np.errstate(divide="ignore", invalid="ignore", over="ignore")


class Policy(ABC, Generic[S]):
    """A bandit algorithm: it chooses arms and learns from rewards.

    Arms have the shape (paths, K, d), choices (paths,), rewards (paths, `pulls`). K may change from
    call to call: an arm is known by its number, and what is kept for each arm grows when one is
    new, which then is as all were at the start.

    A policy of your own writes `_init`, `_choose` and `_learn`, for arguments that are checked
    already; inside them NumPy does not warn of infinities, which are legitimate. Its fields are
    checked by their types, see `tailproof.checks`.
    """

    scale_field: ClassVar[str | None] = None
    """The field that holds the scale of the noise, if the recipe has one."""
    prior_field: ClassVar[str | None] = None
    """The field that holds the scale of a prior of locations, if the recipe has one; the prior of
    a ridge penalty has the scale of the noise and follows the length of the arms."""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def pulls(self) -> int:
        """The number of rewards wanted for one decision."""
        return 1

    @property
    def least(self) -> int:
        """The fewest rewards that `learn` takes for one decision, where some may be lost."""
        return self.pulls

    @property
    def invariances(self) -> frozenset[str]:
        """The maps of all rewards that change no decision.

        "units" (multiples), "offset" (a constant is added), "increasing" (these and all other
        strictly increasing maps).
        """
        return frozenset()

    @property
    def any_arms(self) -> bool:
        """Whether the number of arms may change from call to call."""
        return True

    @property
    def numbered(self) -> bool:
        """Whether an arm is known by its number, as something is kept for each."""
        return not self.any_arms or bool(_arm_axes(self, 2, 2))

    @property
    def uses_vectors(self) -> bool:
        """Whether the vectors of the arms are looked at: K-armed policies ignore them."""
        return not (self.any_arms and self.numbered)

    @property
    def longest(self) -> float:
        """The longest arm that is taken."""
        return LONGEST

    @property
    def uses_propensity(self) -> bool:
        """Whether `learn` wants to know how probable the chosen arm was."""
        return False

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
        ``ValueError``; so does a NaN or an infinity where nothing that was learned can leave one.

        >>> from tailproof import OFUL, LinTS
        >>> saved = OFUL().init(paths=1, arms=2, dim=2).to_arrays()
        >>> OFUL().restore(saved).theta.tolist()
        [[0.0, 0.0]]
        >>> LinTS().restore(saved)
        Traceback (most recent call last):
        ValueError: policy must be LinTS, got 'OFUL'
        """
        missing = {"arms", "dim", "decisions", "policy"} - arrays.keys()
        require(not missing, "arrays", f"those of a state of {type(self).__name__}", list(arrays))
        owner, decisions = str(np.asarray(arrays["policy"])), np.asarray(arrays["decisions"])
        require(owner == type(self).__name__, "policy", type(self).__name__, owner)
        require(decisions.ndim == 1, "decisions", "an array with one axis", decisions.shape)
        most = 10_000 + sum(np.size(value) for value in arrays.values())  # a bound on what is made
        arms, dim = (
            whole(name, np.asarray(arrays[name])[()], at_most=most) for name in ("arms", "dim")
        )
        state = self.init(1, arms, dim)
        state.fill(arrays, whole("the number of paths", len(decisions)))
        return state

    @final
    def choose(self, state: S, arms: ArrayLike, rng: np.random.Generator) -> Index:
        """Return the arm to pull in each path; the state stays as it is."""
        require(hasattr(rng, "integers"), "rng", "a numpy.random.Generator", rng)
        with unwarned():
            vectors = self._checked_arms(state, arms)
            if vectors.shape[1] != state.arms:
                state = self._resized(state, vectors.shape[1])
            return self._choose(state, vectors, rng)

    @final
    def propensities(self, state: S, arms: ArrayLike) -> Array | None:
        """Return how probable each arm is to be chosen, of shape (paths, K), and None if unknown.

        >>> from tailproof import UCB1
        >>> policy, arms = UCB1(), np.zeros((1, 2, 1))
        >>> state = policy.init(paths=1, arms=2, dim=1)
        >>> policy.propensities(state, arms).tolist()
        [[0.5, 0.5]]
        """
        with unwarned():
            vectors = self._checked_arms(state, arms)
            if vectors.shape[1] != state.arms:
                state = self._resized(state, vectors.shape[1])
            return self._propensities(state, vectors)

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
        not finite raises ``ValueError`` and leaves the state as it was. Where rewards were lost, a
        decision may have fewer than `pulls`, down to `least`; those there are stand for the others
        in turn.

        `propensity`, of shape (paths,), is how probable the chosen arms were, where someone else
        chose them; by default it is the policy's own, see `propensities`.
        """
        with unwarned():
            vectors = self._checked_arms(state, arms)
            index, values = array("chosen", chosen, None), array("rewards", rewards)
            expected = (state.paths, self.pulls)
            if values.shape != expected:
                values = self._filled_up(expected, values)
            require(not math.isnan(values.min()), "rewards", "free of NaN", np.nan)
            if index.shape != expected[:1]:
                raise ValueError(f"chosen must be of shape {expected[:1]}, got {index.shape}")
            offered = vectors.shape[1]
            if index.dtype.kind not in "iu" or index.min() < 0 or index.max() >= offered:
                rule = f"whole numbers from 0 to {offered - 1}"
                raise ValueError(f"chosen must be {rule}, got {chosen!r}")
            known = None
            if propensity is not None or self.uses_propensity:
                known = self._checked_propensity(state, vectors, index, propensity)
            if offered > state.arms:
                self._grow(state, offered)
            self._take(state, vectors, index, values, known if self.uses_propensity else None)

    def propose(self, state: S, rng: np.random.Generator) -> Array:
        """Return the vector of the unit ball to pull in each path; the state stays as it is.

        This takes the place of `choose` where every vector of the ball may be pulled; `learn` is
        then told of the proposed vectors as the only arm, of shape (paths, 1, d).
        """
        raise ValueError(f"policy must be one that can play on the unit ball, got {self!r}")

    def estimate(self, state: S) -> Array | None:
        """Return the estimate of θ, of shape (paths, d), where the algorithm has one."""
        return None

    def recommend(self, state: S) -> Index:
        """Return the arm named as the best in each path, and −1 where none is named yet.

        Only policies that identify a best arm have an answer, see `tailproof.bestarm`.
        """
        raise ValueError(f"policy must be one that names a best arm, got {self!r}")

    @final
    def stopped(self, state: S) -> NDArray[np.bool_]:
        """Return whether each path has named a best arm, and needs no more pulls."""
        return self.recommend(state) >= 0

    def with_scale(self, scale: float) -> Self:
        """Return the recipe told the scale of its noise; one that has no use for it refuses.

        >>> from tailproof import OFUL
        >>> OFUL().with_scale(0.4).noise_scale
        0.4
        """
        number("scale", scale, above=0)
        if self.scale_field is None:
            raise ValueError(
                f"policy must be one with a noise scale, such as OFUL, got {self!r}; "
                "AutoFiltered brings the rewards of any policy to scale one"
            )
        return replace(self, **{self.scale_field: scale})  # type: ignore[type-var]

    @abstractmethod
    def _init(self, paths: int, arms: int, dim: int) -> S: ...

    @abstractmethod
    def _choose(self, state: S, arms: Array, rng: np.random.Generator) -> Index: ...

    @abstractmethod
    def _learn(self, state: S, arms: Array, chosen: Index, rewards: Array) -> None:
        """Learn; a policy with `uses_propensity` has one more argument, of that name."""

    @final
    def _take(
        self,
        state: S,
        arms: Array,
        chosen: Index,
        rewards: Array,
        propensity: Array | None = None,
    ) -> None:
        """Learn from arguments that are checked, or as a simulation makes them, and count it."""
        if propensity is None:
            self._learn(state, arms, chosen, rewards)
        else:
            self._learn(state, arms, chosen, rewards, **{"propensity": propensity})
        state.decisions += ONE

    def _propensities(self, state: S, arms: Array) -> Array | None:
        return None

    def _grow(self, state: S, arms: int) -> None:
        """Make room for more arms."""
        vars(state).update(vars(self._resized(state, arms)))

    def _resized(self, state: S, arms: int) -> S:
        """Return the state as it is for so many arms; what need not be copied is shared."""
        other = copy.copy(state)
        other.arms = max(arms, state.arms)
        axes = _arm_axes(self, state.arms, state.dim)
        start = self.init(1, arms, state.dim) if axes and arms > state.arms else None
        for name, axis in axes.items():
            before = (slice(None),) * axis
            kept = getattr(state, name)[*before, :arms]
            if start is not None:
                fresh = getattr(start, name)[*before, state.arms :]
                shape = (*kept.shape[:axis], arms - state.arms, *kept.shape[axis + 1 :])
                # one path, and one place of a buffer, stand for all
                same = zip(fresh.shape, shape, strict=True)
                fresh = fresh[tuple(slice(None if a == b else 1) for a, b in same)]
                kept = np.concatenate([kept, np.broadcast_to(fresh, shape)], axis=axis)
            setattr(other, name, np.ascontiguousarray(kept))
        return other

    def _among(self, state: S, arms: Index) -> S:
        """Return the state of these arms alone, numbered anew; what it can share is shared."""
        other = copy.copy(state)
        other.arms = len(arms)
        for name, axis in _arm_axes(self, state.arms, state.dim).items():
            setattr(other, name, np.take(getattr(state, name), arms, axis=axis))
        number = np.full(state.arms + 1, -1)
        number[arms] = np.arange(len(arms))
        for name in state.naming_arms():
            setattr(other, name, number[getattr(state, name)])
        return other

    def _filled_up(self, shape: tuple[int, int], rewards: Array) -> Array:
        """Return as many rewards as are wanted, those given in turn."""
        rule = f"of shape {shape}"
        if self.least < self.pulls:
            rule += f", or with {self.least} columns or more"
        ok = rewards.ndim == 2 and len(rewards) == shape[0]
        ok = ok and self.least <= rewards.shape[1] <= self.pulls
        require(ok, "rewards", rule, rewards.shape)
        return rewards[:, np.arange(self.pulls) % rewards.shape[1]]

    def _checked_propensity(
        self, state: S, arms: Array, chosen: Index, propensity: ArrayLike | None
    ) -> Array:
        """Return how probable the chosen arms were, which must have been possible."""
        if propensity is None:
            own = self.propensities(state, arms)
            require(own is not None, "propensity", "given: the policy does not know its own", None)
            known = np.take_along_axis(np.asarray(own), chosen[:, None], axis=1)[:, 0]
        else:
            known = array("propensity", propensity)
        require(known.shape == chosen.shape, "propensity", f"of shape {chosen.shape}", known.shape)
        ok = bool(np.all((known > 0) & (known <= 1)))
        require(ok, "propensity", "above 0 and at most 1", known.tolist())
        return known

    def _checked_arms(self, state: S, arms: ArrayLike) -> Array:
        """Return the arms if they fit the state, and the state the policy."""
        owner = state.policy if isinstance(state, State) else state
        if owner != type(self).__name__:
            raise ValueError(f"state must be one of {type(self).__name__}, got {owner!r}")
        vectors = array("arms", arms)
        expected, shape = (state.paths, state.arms, state.dim), vectors.shape
        if shape != expected:
            some = len(shape) == 3 and shape[1] > 0
            if not some or shape != (expected[0], shape[1], expected[2]):
                raise ValueError(f"arms must be of shape {expected}, got {shape}")
            if not self.any_arms:
                rule = f"{expected[1]}, as {type(self).__name__} keeps those it began with"
                raise ValueError(f"the number of arms must be {rule}, got {shape[1]}")
        own = vectors[:1] if vectors.strides[0] == 0 else vectors  # all paths may share their arms
        flat = own.ravel(order="K")
        most = self.longest
        if not flat @ flat <= most**2:  # NaN, infinite and long arms stand out in the sum
            length = float(np.linalg.norm(vectors, axis=-1).max())
            require(length <= most, "arms", f"finite, no longer than {most:g}", length)
        return vectors


class Indexed(Policy[S]):
    """A policy that chooses the arm with the largest index; a subclass says what the index is."""

    @abstractmethod
    def _index(self, state: S, arms: Array) -> Array:
        """Return the index of every arm, of shape (paths, K)."""

    def _choose(self, state: S, arms: Array, rng: np.random.Generator) -> Index:
        return pick_largest(self._index(state, arms), rng)

    def _propensities(self, state: S, arms: Array) -> Array:
        index = self._index(state, arms)
        index = np.where(np.isnan(index), -np.inf, index)
        tied = index == index.max(axis=1, keepdims=True)
        return np.asarray(tied / tied.sum(axis=1, keepdims=True))


@lru_cache(maxsize=256)
def _arm_axes(policy: Policy[Any], arms: int, dim: int) -> dict[str, int]:
    """Return which arrays of a state have a place for each arm, and on which axis.

    They are those whose shape is another one where there is another arm.
    """
    less, more = (vars(policy.init(1, k, dim)) for k in (arms, arms + 1))
    return {
        name: next(
            axis
            for axis, lengths in enumerate(zip(value.shape, more[name].shape, strict=True))
            if len(set(lengths)) > 1
        )
        for name, value in less.items()
        if isinstance(value, np.ndarray) and value.shape != more[name].shape
    }


def pick_largest(index: Array, rng: np.random.Generator) -> Index:
    """Return the position of the largest index in each path, ties broken fairly.

    An undefined index (NaN) loses against any other. One random number is drawn for each path
    whatever the indices are, so that no path can disturb another.
    """
    lot = rng.random(len(index))
    best: Index = index.argmax(axis=1)
    arms = index.shape[1]
    largest = index.take(places(best, arms))  # NaN, if there is one
    if np.count_nonzero(index.ravel() < largest.repeat(arms)) < index.size - len(index):
        index = np.where(np.isnan(index), -np.inf, index)
        tied = index == index.max(axis=1, keepdims=True)
        tied &= tied.cumsum(axis=1) > (lot * tied.sum(axis=1)).astype(np.int64)[:, None]
        best = tied.argmax(axis=1)
    return best
