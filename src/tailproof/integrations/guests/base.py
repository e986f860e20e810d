"""What every guest shares: its decisions as plain arrays, and an object rebuilt from them."""

import inspect
import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import require
from tailproof.policies.base import LONGEST, Array, Index, Policy, State, View
from tailproof.policies.state.base import ROOM, Counts, FiniteBuffer, Rule

__all__ = ["Guest", "GuestState", "Made", "View", "made", "named", "rewards_cut"]

_LOG = logging.getLogger("tailproof.integrations.guests")


@dataclass(frozen=True)
class Made:
    """A class of another library with its settings; call it for a new object.

    >>> made(complex, real=1, imag=2)()
    (1+2j)
    >>> made(complex, real=1) == made(complex, real=1)
    True
    """

    kind: Callable[..., Any] | str
    settings: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, thing: Any, settings: Iterable[tuple[str, Any]] = ()) -> Self:
        """Return a class with its settings; an object must have its settings as attributes."""
        if isinstance(thing, cls):
            return thing
        if isinstance(thing, str) or inspect.isclass(thing) or inspect.isroutine(thing):
            kind, values = thing, dict(settings)
        else:
            kind = type(thing)
            names = inspect.signature(kind).parameters
            rule = f"a class and its settings, as {kind.__name__} does not show its own"
            require(all(hasattr(thing, name) for name in names), "guest", rule, thing)
            values = {name: getattr(thing, name) for name in names} | dict(settings)
        return cls(kind, tuple((name, _plain(value)) for name, value in values.items()))

    def __call__(self, **extra: Any) -> Any:
        """Return a new object."""
        given = {n: v() if isinstance(v, Made) else v for n, v in self.settings}
        if isinstance(self.kind, str):
            raise ValueError(f"a part of a guest must be a class, got {self.kind!r}")
        return self.kind(**given, **extra)


def made(kind: Callable[..., Any] | str, **settings: Any) -> Made:
    """Return a class, or its name in the library, with settings: a part of a guest."""
    return Made.of(kind, settings.items())


def named(guest: Any, settings: Mapping[str, Any], library: Any) -> Made:
    """Return the class and settings of a guest; a name is looked up in its library.

    >>> import fractions
    >>> named("Fraction", {"numerator": 3}, fractions)()
    Fraction(3, 1)
    >>> named("Friction", {}, fractions)
    Traceback (most recent call last):
    ValueError: guest must be the name of a class of fractions, got 'Friction'
    >>> named("Fraction", {"top": 3}, fractions)
    Traceback (most recent call last):
    ValueError: Fraction does not take these settings: got an unexpected keyword argument 'top'
    """
    given = Made.of(guest, settings.items())
    if not isinstance(given.kind, str):
        return given
    kind: Any = None if given.kind.startswith("_") else getattr(library, given.kind, None)
    rule = f"the name of a class of {library.__name__}"
    require(inspect.isclass(kind), "guest", rule, given.kind)
    try:
        inspect.signature(kind).bind_partial(**dict(given.settings))
    except TypeError as error:
        message = f"{kind.__name__} does not take these settings: {error}"
        raise ValueError(message) from None
    return Made(kind, given.settings)


def _plain(value: Any) -> Any:
    """Return a value that compares and hashes by its content."""
    if isinstance(value, list):
        return tuple(value)
    kind: Any = type(value)
    told = value is None or inspect.isclass(value) or inspect.isroutine(value)
    return value if told or kind.__eq__ is not object.__eq__ else Made.of(value)


@dataclass(eq=False)
class GuestState(State):
    """Every decision that a guest learned from, in order.

    Attributes
    ----------
    chosen, offered, width : arrays of shape (paths, room)
        The arm, out of how many, and how many features were seen.
    rewards, propensity : arrays of shape (paths, room)
        The reward, clipped to what the guest accepts, and the probability of the choice.
    seen : array of shape (paths, room, …)
        Nothing, the context, or the vectors of all arms, depending on the view of the guest.
    cut : array of shape (paths,)
        How many rewards were clipped.
    """

    chosen: Annotated[Index, Rule((ROOM,), least=-1, names_arms=True, buffer=1, blank=-1)]
    offered: Annotated[Index, Rule((ROOM,), least=0, buffer=1)]
    width: Annotated[Index, Rule((ROOM,), least=0, buffer=1)]
    rewards: FiniteBuffer
    propensity: FiniteBuffer
    seen: Annotated[Array, Rule((ROOM, "dim"), finite=True, buffer=1)]
    cut: Counts

    @cached_property
    def live(self) -> dict[int, tuple[int, Any]]:
        """The guest object of each path and how many decisions it has learned; not saved."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "live"}

    def put(self, paths: Index, other: Self) -> None:
        """Copy what another state has learned; guests of these paths are rebuilt."""
        super().put(paths, other)
        for path in paths.tolist():
            self.live.pop(path, None)

    def resized(self, arms: int, start: Self | None) -> Self:
        """Return the state for K arms; the guest objects are shared."""
        other = super().resized(max(arms, self.arms), start)
        other.live = self.live
        return other

    def among(self, arms: Index) -> Self:
        """Return the state itself: another library's policy must be offered all arms it knows."""
        alone = np.array_equal(arms, np.arange(self.arms))
        require(alone, "arms", f"all {self.arms} that {self.policy} knows", arms.tolist())
        return self

    def append(self, **decision: NDArray[Any]) -> None:
        """Store one decision of each path."""
        self.make_room()
        path = np.arange(self.paths)
        for name, value in decision.items():
            getattr(self, name)[path, self.decisions, *(slice(n) for n in value.shape[1:])] = value


@dataclass(eq=False)
class GuestStateWithVectors(GuestState):
    """The decisions of a guest that sees the vectors of all arms."""

    seen: Annotated[Array, Rule((ROOM, "arms", "dim"), finite=True, buffer=1)]


class Guest(Policy[GuestState]):
    """A bandit of another library, unchanged, as a policy.

    A subclass creates it, asks it for an arm and tells it a reward, on one path. Its state is
    the list of decisions it learned from; the object itself is rebuilt by replaying them, so it
    can be saved, restored and copied in any case. Before each choice the object is seeded with a
    random number of the call, and before each update with the number of the update.
    """

    largest: ClassVar[float] = 1e30
    """Rewards beyond ± this, whose squares may overflow, are clipped, and counted in `cut`."""
    longest_seen: ClassVar[float] = 1e4
    """Longer arms are refused: their squares would swamp a penalty of 1 in normal equations."""
    weighs: ClassVar[bool] = False
    """Whether the guest uses the probability of the choice."""

    @property
    @abstractmethod
    def view(self) -> View:
        """What the guest sees."""

    @property
    def keeps_arms(self) -> bool:
        """Whether the number of arms must stay the same."""
        return False

    @property
    def _weighs(self) -> bool:
        return self.weighs

    @property
    def _longest(self) -> float:
        return LONGEST if self.view == "arms" else self.longest_seen

    @abstractmethod
    def _make(self, arms: int) -> Any:
        """Return a guest that has learned nothing."""

    @abstractmethod
    def _ask(self, guest: Any, arms: int, seen: Array, seed: int) -> int:
        """Return the number of the arm that it chooses."""

    @abstractmethod
    def _tell(
        self, guest: Any, arms: int, seen: Array, chosen: int, reward: float, propensity: float
    ) -> None:
        """Let it learn one reward."""

    def _shares(self, guest: Any, arms: int, seen: Array) -> Any:
        """Return the probability of each arm; None if the guest does not report it."""
        return None

    def _reseed(self, guest: Any, seed: int) -> None:
        """Seed the guest, if it draws random numbers."""

    def _init(self, paths: int, arms: int, dim: int) -> GuestState:
        if self.view == "arms":
            state = GuestState.start(paths, arms, dim, seen=np.zeros((paths, ROOM, 0)))
        else:
            kind = GuestStateWithVectors if self.view == "vectors" else GuestState
            state = kind.start(paths, arms, dim)
        state.fixed_arms = self.keeps_arms
        return state

    def _choose(self, state: GuestState, arms: Array, rng: np.random.Generator) -> Index:
        seeds = rng.integers(2**31 - 1, size=state.paths)
        offers, k = self._offers(arms), arms.shape[1]
        chosen = np.empty(state.paths, dtype=np.int64)
        for path, (seen, seed) in enumerate(zip(offers, seeds.tolist(), strict=True)):
            guest = self._guest(state, path)
            self._reseed(guest, seed)
            chosen[path] = self._ask(guest, k, seen, seed)
        return chosen

    def _propensities(self, state: GuestState, arms: Array) -> Array | None:
        k, offers = arms.shape[1], self._offers(arms)
        shares = [
            self._shares(self._guest(state, path), k, seen) for path, seen in enumerate(offers)
        ]
        return None if shares[0] is None else np.array(shares, dtype=np.float64)

    @final
    def _learn(self, state: GuestState, arms: Array, chosen: Index, rewards: Array) -> None:
        self._learn_weighted(state, arms, chosen, rewards, None)

    def _learn_weighted(
        self,
        state: GuestState,
        arms: Array,
        chosen: Index,
        rewards: Array,
        propensity: Array | None,
    ) -> None:
        paths, seen = state.paths, self._offers(arms)
        kept = np.clip(rewards[:, 0], -self.largest, self.largest)
        cut = kept != rewards[:, 0]
        if cut.any() and not state.cut.any():
            message = "%s: reward %g was clipped to %g; `rewards_cut` counts all of them"
            _LOG.warning(message, self, rewards[cut, 0][0], kept[cut][0])
        state.cut += cut
        state.append(
            chosen=chosen,
            offered=np.full(paths, arms.shape[1]),
            width=np.full(paths, seen.shape[-1]),
            rewards=kept,
            propensity=np.ones(paths) if propensity is None else propensity,
            seen=seen,
        )

    def _guest(self, state: GuestState, path: int) -> Any:
        """Return the guest of a path, with everything learned so far."""
        learned, guest = state.live.get(path, (0, None))
        guest = self._make(state.arms) if guest is None else guest
        for n in range(learned, int(state.decisions[path])):
            k, width = int(state.offered[path, n]), int(state.width[path, n])
            seen = state.seen[path, n, ..., :width]
            self._reseed(guest, n)
            self._tell(
                guest,
                k,
                seen[:k] if self.view == "vectors" else seen,
                int(state.chosen[path, n]),
                float(state.rewards[path, n]),
                float(state.propensity[path, n]),
            )
        state.live[path] = int(state.decisions[path]), guest
        return guest

    def _offers(self, arms: Array) -> Array:
        """Return the features as the guest takes them, with the paths axis first."""
        if self.view == "arms":
            return np.empty((len(arms), 0))
        return arms if self.view == "vectors" else _context(arms)


def _context(arms: Array) -> Array:
    """Return the context that all arms share, with a wrapper's constant if there is one.

    >>> x = np.array([2.0, 3.0])
    >>> _context(np.stack([x, x])[None]).tolist()
    [[2.0, 3.0]]
    >>> _context(np.column_stack([np.kron(np.eye(2), x), np.ones(2)])[None]).tolist()
    [[2.0, 3.0, 1.0]]
    """
    first: Array = arms[:, 0]
    if np.array_equal(arms, np.broadcast_to(first[:, None], arms.shape)):
        return first
    paths, k, dim = arms.shape
    size, constants = divmod(dim, k)  # e_k ⊗ x, then what all arms share
    x = np.delete(first, np.s_[size : dim - constants], axis=1)
    blocks = (np.eye(k)[:, :, None] * x[:, None, None, :size]).reshape(paths, k, -1)
    shared = np.broadcast_to(x[:, None, size:], (paths, k, constants))
    if np.array_equal(arms, np.concatenate([blocks, shared], axis=2)):
        return x
    raise ValueError(
        "this guest needs one context for all arms: the same vector x for every arm, "
        f"or e_k ⊗ x for arm k; got vectors of shape {arms.shape} that differ"
    )


def rewards_cut(state: State) -> Index:
    """Return how many rewards were clipped in each path.

    The state may be the state of a wrapper around the guest.
    """
    inside: Any = state
    while not hasattr(inside, "cut"):
        require(hasattr(inside, "inner"), "state", "that of a guest", type(state).__name__)
        inside = inside.inner
    return np.array(inside.cut)
