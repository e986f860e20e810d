"""What every state has in common: plain arrays with the paths axis first."""

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Self, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tailproof.checks import require
from tailproof.typing import Array, Index

__all__ = [
    "ONE",
    "Arms",
    "Array",
    "Buffer",
    "Counts",
    "Finite",
    "Index",
    "Rule",
    "State",
    "picked",
    "places",
]

ONE = np.ones((), dtype=np.int64)
"""To count by: NumPy adds it to few paths in half the time of a plain 1."""


@dataclass(frozen=True)
class Rule:
    """What a restored array must keep to, declared beside its field."""

    finite: bool = False
    """No infinity and no NaN."""
    least: int | None = None
    """The smallest whole number allowed."""
    arms: bool = False
    """The numbers are arms: below K."""
    buffer: int = 0
    """The axis that is as long as needed, if there is one."""
    blank: float = 0
    """What a buffer holds where nothing was put yet."""

    def widened(self, array: NDArray[Any], room: int) -> NDArray[Any]:
        """Return a buffer with at least this much room."""
        missing = room - array.shape[self.buffer]
        if missing <= 0:
            return array
        widths = [(0, missing if axis == self.buffer else 0) for axis in range(array.ndim)]
        return np.pad(array, widths, constant_values=self.blank)


Finite = Annotated[Array, Rule(finite=True)]
Counts = Annotated[Index, Rule(least=0)]
Arms = Annotated[Index, Rule(least=-1, arms=True)]
"""Arms by their number, −1 for none."""
Buffer = Annotated[Array, Rule(buffer=1)]


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
    """Raised when the arrays of a state change their meaning."""
    arms: int
    dim: int
    decisions: Counts
    policy: str = field(default="", init=False)

    @property
    def paths(self) -> int:
        """The number of paths."""
        return len(self.decisions)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything learned as named arrays, ready for ``numpy.savez``.

        The arrays of a state inside this one carry its name and a dot before theirs.
        """
        found: dict[str, NDArray[Any]] = {"format": np.array(self.FORMAT)}
        for name, value in self._parts():
            if isinstance(value, State):
                found |= {f"{name}.{key}": array for key, array in value.to_arrays().items()}
            else:
                found[name] = np.array(value)
        return found

    def fill(self, arrays: Mapping[str, ArrayLike], paths: int, prefix: str = "") -> None:
        """Take over what `to_arrays` returned, checked; see `tailproof.Policy.restore`.

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
            getattr(self, name).shape[rule.buffer]
            for name, rule in _rules(type(self)).items()
            if rule.buffer
        }
        if rooms:
            least = self._room_needed()
            ok = len(rooms) == 1 and max(rooms) >= least
            require(ok, f"{prefix}buffers", f"of one length, at least {least}", sorted(rooms))

    def naming_arms(self) -> list[str]:
        """Return the names of the arrays whose numbers are those of arms."""
        return [name for name, rule in _rules(type(self)).items() if rule.arms]

    def _room_needed(self) -> int:
        """Return how long buffers must be."""
        return int(self.decisions.max())

    def take(self, paths: ArrayLike) -> Self:
        """Return a copy that holds the given paths alone."""
        index = np.asarray(paths)
        return self._mapped(lambda array: array[index])

    def copy(self) -> Self:
        """Return a copy that goes its own way."""
        return self._mapped(np.copy)

    def put(self, paths: Index, other: Self) -> None:
        """Take over what another state has learned, as the given paths of this one."""
        require(other.arms == self.arms, "other", f"a state of {self.arms} arms", other.arms)
        rules = _rules(type(self))
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
        """Return a copy of an array if it fits what this state holds under the name."""
        mine, rule, where = getattr(self, name), _rules(type(self))[name], prefix + name
        shape, rest = (paths, *mine.shape[1:]), list(given.shape)
        if 0 < rule.buffer < len(rest):
            rest[rule.buffer] = mine.shape[rule.buffer]
        require(tuple(rest) == shape, where, f"of shape {shape}", given.shape)
        require(given.dtype.kind == mine.dtype.kind, where, f"of type {mine.dtype}", given.dtype)
        if rule.finite:
            require(bool(np.isfinite(given).all()), where, "finite", "something else")
        if rule.least is not None and given.size:
            low, high = given.min(), given.max()
            require(low >= rule.least, where, f"at least {rule.least}", low)
            require(not rule.arms or high < self.arms, where, f"below {self.arms}", high)
        return np.array(given, dtype=mine.dtype)


def _rules(kind: type[State]) -> dict[str, Rule]:
    """Return the rule of every field, which the annotations declare."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        part.name: next(
            (note for note in getattr(hints[part.name], "__metadata__", ()) if type(note) is Rule),
            Rule(),
        )
        for part in fields(kind)
    }


def places(chosen: Index, arms: int) -> Index:
    """Return where the chosen arms are in an array of shape (paths, arms), read path by path.

    >>> places(np.array([1, 0]), arms=3).tolist()
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
