"""Compile plain scalar functions, and the functions that they call, for cores or a GPU.

The functions of this room are plain Python: loops over numbers, without a decorator. They call each
other by name, and some of these names are placeholders, which a loop, a wrapper or a mixture
replaces. A `Bound` fills the placeholders; `compile_for` compiles the whole tree.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from dis import get_instructions
from functools import cache
from importlib.metadata import version
from pathlib import Path
from threading import RLock
from types import FunctionType
from typing import Any, Literal

import numpy as np

from tailproof.extras import import_extra

__all__ = ["Bound", "Target", "apart", "bind", "compile_for", "lent", "numpy_of_numba"]

Target = Literal["cores", "gpu", "python"]
"""What to compile for; "python" compiles nothing, so that a test can step through."""
_INSIDE_LOOPS = f"{__name__.rpartition('.')[0]}.elementary"
"""The file of functions without which a loop would call, and so compute one number at a time."""


@dataclass(frozen=True)
class Bound:
    """A plain function whose placeholders are filled by functions or numbers.

    A function with a `signature` is compiled apart from those that call it, see `apart`.
    """

    function: Callable[..., Any]
    names: tuple[tuple[str, Any], ...] = ()
    signature: str = ""

    def text(self) -> str:
        """Return the tree in words, the same in every run."""
        inside = ", ".join(
            f"{name}={thing.text() if isinstance(thing, Bound) else _word(thing)}"
            for name, thing in self.names
        )
        return f"{_word(self.function)}({inside})"


def bind(function: Callable[..., Any], signature: str = "", /, **names: Any) -> Bound:
    """Return a function with its placeholders filled.

    >>> def twice(x: float) -> float:
    ...     return step(step(x))
    >>> def step(x: float) -> float:
    ...     raise NotImplementedError
    >>> def increment(x: float) -> float:
    ...     return x + 1
    >>> compile_for("python", bind(twice, step=increment))(5)
    7
    """
    return Bound(function, tuple(sorted(names.items())), signature)


def apart(function: Callable[..., Any] | Bound, signature: str, **names: Any) -> Bound:
    """Return a function like `bind`, which cores call by its address.

    Numba optimises a function again within each function that calls it, at any depth. So large
    functions that are called seldom should be apart. The signature is Numba's: "void(int64)".
    """
    inside = _bound(function)
    return bind(inside.function, signature, **dict(inside.names), **names)


def compile_for(target: Target, tree: Bound, *, entry: bool = False) -> Any:
    """Return the function compiled for a target, and with it all functions that it calls.

    Numbers that fill placeholders are passed on to all functions inside, which may use the same
    placeholder; functions are not.

    The `entry` is what Python calls: on cores it lets other threads run and is kept on disk, in the
    folder where Numba keeps what it compiled; on a GPU it is a kernel.
    """
    with _LOCK:  # two threads would compile the same twice
        return _compiled(target, tree, (), entry)


@contextmanager
def numpy_of_numba() -> Iterator[None]:
    """Lend NumPy the name `row_stack`: numba-cuda 0.30 reads it, and NumPy 2.5 has it no more.

    >>> with numpy_of_numba():
    ...     hasattr(np, "row_stack")
    True
    """
    lent = not hasattr(np, "row_stack")
    if lent:
        setattr(np, "row_stack", np.vstack)  # noqa: B010
    try:
        yield
    finally:
        if lent:
            delattr(np, "row_stack")


@cache
def lent() -> Any:
    """Return compiled code that makes an array whose slices count no references.

    Numba counts the slices of an array by atomic operations, which take longer than a sum over ten
    numbers. Whoever lends the array keeps it.
    """
    numba = import_extra("numba.extending", "compiled", "the engine")

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.return_type)(context, builder, arguments[0])
        array.meminfo = array.meminfo.type(None)
        return array._getvalue()

    def lend(typing: Any, array: Any) -> Any:
        return array(array), code

    return numba.intrinsic(lend)


_LOCK = RLock()
Numbers = tuple[tuple[str, Any], ...]


@cache
def _compiled(target: Target, tree: Bound, numbers: Numbers, entry: bool = False) -> Any:
    function, filled = tree.function, dict(tree.names)
    filled_numbers = {name: thing for name, thing in filled.items() if not _is_code(thing)}
    passed = dict(numbers) | filled_numbers
    inside = {
        name: function.__globals__[name]
        for name in _names(function)
        if name not in filled and _is_code(function.__globals__.get(name))
    } | {name: thing for name, thing in filled.items() if _is_code(thing)}
    parts = {
        name: _compiled(target, part, _used(part, tuple(passed.items())))
        for name, part in ((name, _bound(thing)) for name, thing in inside.items())
    }
    copy = FunctionType(
        function.__code__, {**function.__globals__, **passed, **parts}, function.__name__
    )
    copy.__module__ = function.__module__
    if target == "python":
        return copy
    if target == "gpu":
        cuda = import_extra("numba.cuda", "cuda", "the engine")
        return cuda.jit(copy) if entry else cuda.jit(device=True)(copy)
    numba = import_extra("numba", "compiled", "the engine")
    # Numba finds a function on disk by this name, and machine code that was kept calls functions
    # by it: if two of them shared a name, the wrong one might be called.
    copy.__qualname__ = f"{function.__name__}_{_digest(copy, tree, parts)}"
    # Without fast-math flags: infinities are legitimate here, and a path is to be the same bits
    # on any number of cores.
    if tree.signature:
        return _by_address(copy, tree.signature)
    inner = {"no_cpython_wrapper": not entry, "no_cfunc_wrapper": not entry}
    inner["forceinline"] = function.__module__ == _INSIDE_LOOPS
    return numba.njit(copy, error_model="numpy", nogil=entry, cache=entry, **inner)


def _by_address(function: FunctionType, signature: str) -> Any:
    """Return a call of a function that Numba compiles by itself, kept on disk as an entry is.

    The call is of a symbol, as an address would differ in the next process.
    """
    numba = import_extra("numba", "compiled", "the engine")
    code = numba.cfunc(signature, cache=True, error_model="numpy")(function)
    symbol, returned = function.__qualname__, code._sig.return_type
    import_extra("llvmlite.binding", "compiled", "the engine").add_symbol(symbol, code.address)

    def lowered(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = [context.get_value_type(kind) for kind in code._sig.args]
        types = import_extra("llvmlite.ir", "compiled", "the engine")
        kind = types.FunctionType(context.get_value_type(returned), kinds)
        called = builder.module.globals.get(symbol) or types.Function(builder.module, kind, symbol)
        parts = [builder.extract_value(arguments[0], place) for place in range(len(kinds))]
        return builder.call(called, parts)

    def call(typing: Any, *arguments: Any) -> Any:
        return returned(numba.types.StarArgTuple.from_types(code._sig.args)), lowered

    call.__qualname__ = symbol
    return numba.extending.intrinsic(call)


def _used(tree: Bound, numbers: Numbers) -> Numbers:
    """Return the numbers that are used by a function or by the functions that it calls."""
    wanted = _wanted(tree)
    return tuple((name, number) for name, number in numbers if name in wanted)


@cache
def _wanted(tree: Bound) -> frozenset[str]:
    """Return the global names that a function or the functions it calls use."""
    names, filled = set(_names(tree.function)), dict(tree.names)
    for name in list(names):
        thing = filled.get(name, tree.function.__globals__.get(name))
        if _is_code(thing):
            names |= _wanted(_bound(thing))
    return frozenset(names)


def _is_code(thing: Any) -> bool:
    return isinstance(thing, Bound | FunctionType)


def _bound(thing: Any) -> Bound:
    return thing if isinstance(thing, Bound) else Bound(thing)


def _names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the global names that a function uses, without the names of attributes."""
    loads = (step.argval for step in get_instructions(function) if step.opname == "LOAD_GLOBAL")
    return tuple(dict.fromkeys(loads))


def _word(thing: Any) -> str:
    if isinstance(thing, FunctionType):
        return f"{thing.__module__}.{thing.__qualname__}"
    return repr(thing)


def _digest(copy: FunctionType, tree: Bound, parts: dict[str, Any]) -> str:
    """Return a hash of everything that the machine code depends on.

    That is the tree, the numbers that it uses, the functions that it calls, our files and versions.
    """
    read = {name: copy.__globals__.get(name) for name in _names(tree.function)}
    numbers = {name: x for name, x in read.items() if isinstance(x, int | float | tuple)}
    called = {name: getattr(part, "py_func", part).__qualname__ for name, part in parts.items()}
    text = [tree.text(), repr(numbers), repr(called), _source_digest()]
    text += [version("numba"), version("numpy")]
    return hashlib.sha256("\n".join(text).encode()).hexdigest()[:24]


@cache
def _source_digest() -> str:
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256("\n".join(file.read_text() for file in files).encode()).hexdigest()
