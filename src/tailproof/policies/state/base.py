"""What every state has in common: plain arrays with the paths axis first."""

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache, lru_cache
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Self,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tailproof.checks import require, whole
from tailproof.typing import Array, Index

__all__ = [
    "ONE",
    "ROOM",
    "ArmBounds",
    "ArmCounts",
    "ArmValues",
    "Arms",
    "Array",
    "Buffer",
    "Counts",
    "Finite",
    "FiniteBuffer",
    "Index",
    "Rule",
    "State",
    "flat_index",
    "picked",
]

ONE = np.ones((), dtype=np.int64)
"""A 1 that NumPy adds to few paths in half the time of a plain 1."""
ROOM = 16
"""The length of a buffer at the start, in decisions."""


@dataclass(frozen=True)
class Rule:
    """The shape of an array of a state, and its allowed values; declared with the field."""

    shape: tuple[int | Literal["arms", "dim"], ...] = ()
    """The axes after the paths axis."""
    blank: float = 0
    """What the array holds before anything is learned."""
    finite: bool = False
    """No infinity and no NaN."""
    least: int | None = None
    """The smallest whole number allowed."""
    names_arms: bool = False
    """The numbers are arms: below K."""
    buffer: int = 0
    """The axis that grows with the decisions, if there is one."""

    @property
    def arm_axis(self) -> int | None:
        """The axis that counts arms, if there is one."""
        return 1 + self.shape.index("arms") if "arms" in self.shape else None

    def widened(self, array: NDArray[Any], room: int) -> NDArray[Any]:
        """Return a buffer with at least this much room."""
        missing = room - array.shape[self.buffer]
        if missing <= 0:
            return array
        widths = [(0, missing if axis == self.buffer else 0) for axis in range(array.ndim)]
        return np.pad(array, widths, constant_values=self.blank)


Finite = Annotated[Array, Rule(finite=True)]
Counts = Annotated[Index, Rule(least=0)]
Arms = Annotated[Index, Rule(least=-1, names_arms=True, blank=-1)]
"""Arms by their number, −1 for none."""
ArmCounts = Annotated[Index, Rule(("arms",), least=0)]
ArmValues = Annotated[Array, Rule(("arms",))]
ArmBounds = Annotated[Array, Rule(("arms",), blank=math.inf)]
"""Infinite where nothing is known."""
Buffer = Annotated[Array, Rule((ROOM,), buffer=1)]
FiniteBuffer = Annotated[Array, Rule((ROOM,), finite=True, buffer=1)]


@dataclass(eq=False)
class State:
    """What a policy has learned.

    Attributes
    ----------
    arms, dim : int
        The most arms there were so far, and the dimension d of their vectors.
    decisions : array of shape (paths,)
        How many decisions each path has learned from.
    policy : str
        The name of the policy whose state this is.
    """

    FORMAT: ClassVar[int] = 2
    """Incremented when the arrays of a state change their meaning."""
    fixed_arms = False
    """Whether K must stay as it was at the start."""
    fewest_arms = 1
    """The smallest K."""
    arms: int
    dim: int
    decisions: Counts
    policy: str = field(default="", init=False)

    @classmethod
    def start(cls, paths: int, arms: int, dim: int, **arrays: Any) -> Self:
        """Return the state before any decision; arrays that are not given are blank."""
        whole("arms", arms, at_least=cls.fewest_arms)
        sizes: dict[int | str, int] = {"arms": arms, "dim": dim}
        declared = cls.declared()
        for name, dtype in declared.dtypes.items():
            if name not in arrays:
                rule = declared.rules[name]
                shape = (paths, *(sizes.get(size, size) for size in rule.shape))
                blank = np.asarray(rule.blank, dtype)
                arrays[name] = np.full(shape, blank) if blank else np.zeros(shape, dtype)
        return cls(arms=arms, dim=dim, **arrays)

    @classmethod
    def declared(cls) -> "Declared":
        """Return the rules of the arrays, from the annotations of the fields."""
        kind: Any = cls
        return _declared(kind)

    @property
    def paths(self) -> int:
        """The number of paths."""
        return len(self.decisions)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything learned as named arrays, ready for ``numpy.savez``.

        The arrays of a state inside this one carry its name and a dot before theirs. Buffers are
        as long as their decisions need, whatever room other paths needed before.
        """
        arrays: dict[str, NDArray[Any]] = {"format": np.array(self.FORMAT)}
        buffers = self.declared().buffers
        room = self._room_saved() if buffers else 0
        for name, value in self._parts():
            if isinstance(value, State):
                arrays |= {f"{name}.{key}": array for key, array in value.to_arrays().items()}
            elif name in buffers:
                arrays[name] = np.array(value[*(slice(None),) * buffers[name].buffer, :room])
            else:
                arrays[name] = np.array(value)
        return arrays

    def fill(self, arrays: Mapping[str, ArrayLike], paths: int, prefix: str = "") -> None:
        """Check and copy the arrays that `to_arrays` returned; see `tailproof.Policy.restore`.

        The state itself says which names, kinds and shapes are expected.
        """
        given = {name: np.asarray(value) for name, value in arrays.items()}
        wanted = {"format", *(name for name, _ in self._parts())}
        nested = {name for name, value in self._parts() if isinstance(value, State)}
        flat = {name for name in given if name.partition(".")[0] not in nested}
        rule = f"the arrays {', '.join(sorted(wanted - nested))} of {self.policy}"
        require(flat == wanted - nested, f"{prefix}arrays", rule, sorted(flat))
        version = given["format"]
        require(bool(np.all(version == self.FORMAT)), f"{prefix}format", str(self.FORMAT), version)
        owner = str(given["policy"])
        require(owner == self.policy, f"{prefix}policy", self.policy, owner)
        for name, value in self._parts():
            if isinstance(value, State):
                start = f"{name}."
                inside = {
                    key.removeprefix(start): array
                    for key, array in given.items()
                    if key.startswith(start)
                }
                value.fill(inside, paths, f"{prefix}{start}")
            elif isinstance(value, np.ndarray):
                setattr(self, name, self._checked(prefix, name, given[name], paths))
            elif name != "policy":
                require(bool(np.all(given[name] == value)), prefix + name, str(value), given[name])
        rooms = {
            getattr(self, name).shape[rule.buffer] for name, rule in self.declared().buffers.items()
        }
        if rooms:
            least = self._room_needed()
            ok = len(rooms) == 1 and max(rooms) >= least
            require(ok, f"{prefix}buffers", f"of one length, at least {least}", sorted(rooms))

    def arm_axis(self, name: str) -> int | None:
        """Return the axis of an array that counts arms, if there is one."""
        return self.declared().rules[name].arm_axis

    def resized(self, arms: int, start: Self | None) -> Self:
        """Return the state for K arms; arrays that stay the same are shared.

        New arms are as in `start`, a state of K arms that has learned nothing.
        """
        other = copy.copy(self)
        other.arms = max(arms, self.arms)
        for name, value in self._parts():
            fresh = None if start is None else getattr(start, name)
            if isinstance(value, State):
                setattr(other, name, value.resized(arms, fresh))
            elif (axis := self.arm_axis(name)) is not None:
                before = (slice(None),) * axis
                kept = value[*before, :arms]
                if fresh is not None:
                    shape = (*kept.shape[:axis], arms - self.arms, *kept.shape[axis + 1 :])
                    new = fresh[*before, self.arms :]
                    # axes along which all values are equal have length one
                    same = zip(new.shape, shape, strict=True)
                    new = new[tuple(slice(None if a == b else 1) for a, b in same)]
                    kept = np.concatenate([kept, np.broadcast_to(new, shape)], axis=axis)
                setattr(other, name, np.ascontiguousarray(kept))
        return other

    def become(self, other: Self) -> None:
        """Take the sizes and the arrays of another state in place of these."""
        for name, value in other._parts():
            setattr(self, name, value)

    def among(self, arms: Index) -> Self:
        """Return the state for a choice among these arms only, numbered from 0."""
        other = copy.copy(self)
        other.arms = len(arms)
        for name, value in self._parts():
            if isinstance(value, State):
                setattr(other, name, value.among(arms))
            elif (axis := self.arm_axis(name)) is not None:
                setattr(other, name, np.take(value, arms, axis=axis))
        return other

    def make_room(self, count: int | None = None) -> None:
        """Double the buffers until they hold this many decisions, by default one more than now."""
        count = int(self.decisions.max()) + 1 if count is None else count
        for name, rule in self.declared().buffers.items():
            array = getattr(self, name)
            room = array.shape[rule.buffer]
            if room < count:
                setattr(self, name, rule.widened(array, _doubled(room, count)))

    def _room_needed(self) -> int:
        """Return how long buffers must be."""
        return int(self.decisions.max())

    def _room_saved(self) -> int:
        """Return how much of the buffers is saved."""
        return _doubled(ROOM, self._room_needed())

    def take(self, paths: ArrayLike) -> Self:
        """Return a copy with the given paths only."""
        index = np.asarray(paths)
        return self._mapped(lambda array: array[index])

    def copy(self) -> Self:
        """Return an independent copy."""
        return self._mapped(np.copy)

    def put(self, paths: Index, other: Self) -> None:
        """Copy the arrays of another state into the given paths of this one."""
        require(other.arms == self.arms, "other", f"a state of {self.arms} arms", other.arms)
        rules = self.declared().rules
        for name, value in self._parts():
            if isinstance(value, State):
                value.put(paths, getattr(other, name))
            elif isinstance(value, np.ndarray):
                rule, new = rules[name], getattr(other, name)
                if rule.buffer:
                    room = max(value.shape[rule.buffer], new.shape[rule.buffer])
                    value, new = (rule.widened(array, room) for array in (value, new))
                    setattr(self, name, value)
                value[paths] = new

    def _mapped(self, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Self:
        other = copy.copy(self)
        for name, value in self._parts():
            if isinstance(value, State):
                setattr(other, name, value._mapped(change))
            elif isinstance(value, np.ndarray):
                setattr(other, name, change(value))
        return other

    def _parts(self) -> Iterator[tuple[str, Any]]:
        return ((part.name, getattr(self, part.name)) for part in fields(self))

    def _checked(self, prefix: str, name: str, given: NDArray[Any], paths: int) -> NDArray[Any]:
        """Return a copy of an array if it fits the array of this name."""
        mine, rule, where = getattr(self, name), self.declared().rules[name], prefix + name
        shape, rest = (paths, *mine.shape[1:]), list(given.shape)
        if 0 < rule.buffer < len(rest):
            rest[rule.buffer] = mine.shape[rule.buffer]
        require(tuple(rest) == shape, where, f"of shape {shape}", given.shape)
        require(given.dtype.kind == mine.dtype.kind, where, f"of type {mine.dtype}", given.dtype)
        if rule.finite:
            require(bool(np.isfinite(given).all()), where, "finite", "NaN or infinity")
        if rule.least is not None and given.size:
            low, high = int(given.min()), int(given.max())
            require(low >= rule.least, where, f"at least {rule.least}", low)
            require(not rule.names_arms or high < self.arms, where, f"below {self.arms}", high)
        return np.array(given, dtype=mine.dtype)


class Declared(NamedTuple):
    """What the annotations of a state say, by the names of its fields."""

    rules: dict[str, Rule]
    buffers: dict[str, Rule]
    dtypes: dict[str, type[np.generic]]


@cache
def _declared(kind: type[Any]) -> Declared:
    hints = get_type_hints(kind, include_extras=True)
    plain = get_type_hints(kind)
    rules, dtypes = {}, {}
    for part in fields(kind):
        notes = getattr(hints[part.name], "__metadata__", ())
        rules[part.name] = next((note for note in notes if type(note) is Rule), Rule())
        if dtype := dtype_named(plain[part.name]):
            dtypes[part.name] = dtype
    return Declared(rules, {name: rule for name, rule in rules.items() if rule.buffer}, dtypes)


def dtype_named(hint: Any) -> type[np.generic] | None:
    """Return the type of the elements if the hint is an array's, None otherwise.

    NumPy 2.5 names an array by a lazy alias (``type NDArray[T] = ...``), older ones by the class.

    >>> dtype_named(NDArray[np.int64]).__name__, dtype_named(int)
    ('int64', None)
    """
    alias, arguments = get_origin(hint), get_args(hint)
    if alias is np.ndarray:
        element: type[np.generic] = get_args(arguments[1])[0]
        return element
    if hasattr(hint, "__value__"):
        return dtype_named(alias.__value__[arguments] if arguments else hint.__value__)
    return None


def _doubled(room: int, least: int) -> int:
    """Return the room, doubled until it is enough.

    >>> _doubled(16, 40)
    64
    """
    while room < least:
        room *= 2
    return room


def flat_index(chosen: Index, arms: int) -> Index:
    """Return where the chosen arms are in an array of shape (paths, arms), read path by path.

    >>> flat_index(np.array([1, 0]), arms=3).tolist()
    [1, 3]
    """
    return _starts(len(chosen), arms) + chosen


@lru_cache(maxsize=64)
def _starts(paths: int, arms: int) -> Index:
    starts = np.arange(0, paths * arms, arms)
    starts.flags.writeable = False
    return starts


def picked(arms: Array, chosen: Index) -> Array:
    """Return the vectors of the chosen arms, of shape (paths, d)."""
    return arms[np.arange(len(arms)), chosen]
