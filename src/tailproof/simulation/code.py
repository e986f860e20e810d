"""The code that a cell depends on: of the library, and of a user's own classes and functions."""

import inspect
import sys
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

__all__ = ["library_code", "own_code"]

_ROOMS = (
    "bestarm",
    "compiled",
    "environments",
    "integrations/guests",
    "noise",
    "policies",
    "simulation",
    "stats",
    "wrappers",
)
"""Whatever computes results; drawing and reading them is elsewhere."""
_SKIPPED = {"__doc__", "__module__", "__dict__", "__weakref__", "__annotations__"}
_SKIPPED |= {"__dataclass_fields__", "__qualname__", "__firstlineno__", "__static_attributes__"}
_SKIPPED |= {"__annotate_func__", "__annotations_cache__"}  # of Python 3.14


@cache
def library_code() -> str:
    """Return a hash of the files of the library that compute results.

    A release has one hash; in a clone it changes with every edit, so that no earlier cell is used.
    """
    root, digest = Path(__file__).parents[1], sha256()
    for room in _ROOMS:
        for file in sorted((root / room).rglob("*.py")):
            digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def own_code(*things: Any) -> str:
    """Return a hash of the users' code behind objects, "" if all of it is the library's.

    It covers the methods of their classes, and all functions, classes and plain values that these
    methods name, except in installed packages. Comments and blank lines do not count.

    >>> from tailproof import OFUL
    >>> own_code(OFUL())
    ''
    """
    reader = _Reader()
    for thing in things:
        reader.read(thing)
    return sha256("\n".join(reader.pieces).encode()).hexdigest()[:16] if reader.pieces else ""


class _Reader:
    """Walks from objects to the code behind them, and writes down each piece once."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._seen: set[int] = set()
        self._kept: list[Any] = []  # so that no identity is used twice

    def read(self, thing: Any) -> None:
        """Read an object: a function, a class, a container, or whatever has attributes."""
        if id(thing) in self._seen or isinstance(thing, str | bytes | int | float | complex):
            return
        self._seen.add(id(thing))
        self._kept.append(thing)
        if isinstance(thing, FunctionType):
            self._function(thing)
        elif isinstance(thing, MethodType):
            self.read(thing.__func__)
            self.read(thing.__self__)
        elif isinstance(thing, property):
            for part in (thing.fget, thing.fset):
                self.read(part)
        elif isinstance(thing, staticmethod | classmethod):
            self.read(thing.__func__)
        elif isinstance(thing, type):
            self._class(thing)
        elif isinstance(thing, dict):
            for part in thing.values():
                self.read(part)
        elif isinstance(thing, tuple | list | set | frozenset):
            for part in thing:
                self.read(part)
        elif thing is not None and not isinstance(thing, ModuleType | BuiltinFunctionType):
            self._object(thing)

    def _object(self, thing: Any) -> None:
        """Read the class and attributes of an object; of a foreign wrapper the wrapped object."""
        kind = type(thing)
        self.read(kind)
        if _is_own(kind.__module__) or kind.__module__.startswith("tailproof."):
            names = (*getattr(thing, "__dict__", ()), *_slots(thing))
        else:
            names = ("__wrapped__", "py_func", "func", "args", "keywords")  # functools, Numba
            if kind.__module__ == "functools":
                self.pieces += [_plain(getattr(thing, name, None)) for name in names[3:]]
        for name in names:
            self.read(getattr(thing, name, None))

    def _class(self, thing: type) -> None:
        for base in thing.__mro__[1:]:
            self.read(base)
        if not _is_own(thing.__module__):
            return
        self.pieces.append(f"class {thing.__qualname__}({[b.__name__ for b in thing.__bases__]})")
        for name, part in sorted(vars(thing).items()):
            if name not in _SKIPPED and not name.startswith("_abc_"):
                self.pieces.append(f"{thing.__qualname__}.{name} = {_plain(part)}")
                self.read(part)

    def _function(self, thing: FunctionType) -> None:
        if not _is_own(thing.__module__):
            return
        self.pieces.append(f"def {thing.__qualname__}")
        self.pieces += _code(thing.__code__)
        cells = [cell.cell_contents for cell in thing.__closure__ or () if _is_filled(cell)]
        parts = [*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values(), *cells]
        for part in parts:
            self.pieces.append(_plain(part))
            self.read(part)
        for name in sorted(_names(thing.__code__)):
            if name in thing.__globals__:
                self._global(name, thing.__globals__[name])

    def _global(self, name: str, value: Any) -> None:
        self.pieces.append(f"{name} = {_plain(value)}")
        if isinstance(value, ModuleType):
            file = getattr(value, "__file__", None)
            if _is_own(value.__name__) and file and id(value) not in self._seen:
                self._seen.add(id(value))
                self.pieces.append(sha256(Path(file).read_bytes()).hexdigest())
        else:
            self.read(value)


def _plain(value: Any) -> str:
    """Return a plain value as text, and the type of any other value."""
    if isinstance(value, str | bytes | int | float | complex | None):
        return repr(value)
    if isinstance(value, tuple | list):
        return f"{type(value).__name__}({', '.join(map(_plain, value))})"
    if isinstance(value, set | frozenset):
        return f"{type(value).__name__}({', '.join(sorted(map(_plain, value)))})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_plain(key)}: {_plain(item)}' for key, item in value.items())}}}"
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        return f"{array.dtype}{array.shape}{sha256(array.tobytes()).hexdigest()}"
    return type(value).__name__


def _code(code: CodeType) -> Iterator[str]:
    """Yield the code of a function, without its line numbers."""
    yield f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant)
        else:
            yield _plain(constant)


def _names(code: CodeType) -> set[str]:
    """Return the names of a function and of the functions in it."""
    inside = (_names(part) for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*inside)


def _slots(thing: Any) -> list[str]:
    slots = [getattr(kind, "__slots__", ()) for kind in type(thing).__mro__]
    return [name for names in slots for name in ((names,) if isinstance(names, str) else names)]


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # a name that has no value yet
        return False


@cache
def _is_own(module: str | None) -> bool:
    """Return whether a module is a user's: neither ours, nor Python's, nor an installed package."""
    first = (module or "").partition(".")[0]
    if first in {"tailproof", "builtins", *sys.stdlib_module_names} - {"__main__"}:
        return False
    if first == "__main__" or first not in sys.modules:
        return True
    try:
        file = inspect.getfile(sys.modules[first])
    except TypeError:  # built in, or a folder without __init__.py
        file = str(next(iter(getattr(sys.modules[first], "__path__", ())), ""))
    return not {"site-packages", "dist-packages"} & set(Path(file).parts)
