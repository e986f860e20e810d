"""Checks of arguments: every error names the parameter, the rule and the value.

A dataclass declares the rules of its fields by their types, and `check_fields` checks them all::

    bonus: NonNegative = 1.0
    threshold: Literal["own", "euclidean"] = "own"
"""

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = [
    "Count",
    "Fraction",
    "Horizon",
    "MomentOrder",
    "NonNegative",
    "Penalty",
    "Positive",
    "Range",
    "array",
    "check_fields",
    "count",
    "meant",
    "number",
    "require",
    "whole",
]


def require(ok: bool, name: str, rule: str, value: object) -> None:
    """Raise ``ValueError`` unless ``ok``; `rule` completes the sentence "`name` must be …".

    >>> require(False, "block", "at most 7", 9)
    Traceback (most recent call last):
    ValueError: block must be at most 7, got 9
    """
    if not ok:
        raise ValueError(f"{name} must be {rule}, got {value!r}")


def meant(name: str, known: Iterable[str]) -> str:
    """Return the names that are spelled like a wrong name, as the end of a sentence.

    >>> meant("ofull", ["OFUL", "UCB1"]), meant("moon", ["OFUL"])
    ('; did you mean OFUL?', '')
    """
    spelled = {other.lower(): other for other in known}
    near = [spelled[other] for other in get_close_matches(name.lower(), sorted(spelled), 3)]
    return f"; did you mean {' or '.join(near)}?" if near else ""


def number(
    name: str,
    value: Any,
    *,
    above: float = -math.inf,
    below: float = math.inf,
    at_least: float = -math.inf,
    at_most: float = math.inf,
) -> float:
    """Return ``value`` if it is a finite number within the bounds.

    >>> number("delta", 0.01, above=0, below=1)
    0.01
    >>> number("delta", 1.5, above=0, below=1)
    Traceback (most recent call last):
    ValueError: delta must be a number above 0 and below 1, got 1.5
    """
    bounds = {"above": above, "at least": at_least, "below": below, "at most": at_most}
    given = {word: bound for word, bound in bounds.items() if math.isfinite(bound)}
    words = " and ".join(f"{word} {bound:g}" for word, bound in given.items())
    ok = isinstance(value, Real) and not isinstance(value, bool)
    ok = ok and abs(value) <= sys.float_info.max  # compares exactly, also for huge integers
    ok = ok and above < float(value) < below and at_least <= float(value) <= at_most
    kind = "a number" if min(below, at_most) < math.inf else "a finite number"
    require(ok, name, f"{kind} {words}".rstrip(), value)
    return float(value)


def whole(name: str, value: Any, *, at_least: int = 1, at_most: float = math.inf) -> int:
    """Return ``value`` if it is a whole number within the bounds.

    >>> whole("paths", 10)
    10
    >>> whole("paths", 2.5)
    Traceback (most recent call last):
    ValueError: paths must be a whole number of at least 1, got 2.5
    """
    ok = isinstance(value, Integral) and not isinstance(value, bool)
    ok = ok and at_least <= int(value) <= at_most
    bound = f" and at most {at_most:g}" if at_most < math.inf else ""
    require(ok, name, f"a whole number of at least {at_least}{bound}", value)
    return int(value)


def count(name: str, value: Any, *, at_most: float = math.inf) -> int:
    """Return ``value`` as a whole number of at least 1; the float 1e4 becomes 10000.

    >>> count("horizon", 1e4)
    10000
    """
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    return whole(name, value, at_most=at_most)


def array(name: str, value: Any, dtype: DTypeLike | None = np.float64) -> NDArray[Any]:
    """Return ``value`` as an array, of floats unless another type is given.

    >>> array("rewards", [1, 2]).tolist()
    [1.0, 2.0]
    >>> array("rewards", ["a"])
    Traceback (most recent call last):
    ValueError: rewards must be an array of numbers, got ['a']
    """
    try:
        values = np.asarray(value)
        if values.dtype.kind in "biufO":  # not complex, not strings
            return np.asarray(values, dtype=dtype)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{name} must be an array of numbers, got {value!r}")


@dataclass(frozen=True)
class Range:
    """The bounds of a field, checked by `number`, or by `whole` if its type is int."""

    above: float = -math.inf
    below: float = math.inf
    at_least: float = -math.inf
    at_most: float = math.inf


Positive = Annotated[float, Range(above=0)]
"""A finite number above 0."""
NonNegative = Annotated[float, Range(at_least=0)]
"""A finite number, 0 or more."""
Fraction = Annotated[float, Range(above=0, below=1)]
"""Strictly between 0 and 1."""
Penalty = Annotated[float, Range(at_least=1e-8)]
"""A ridge penalty; one below 1e-8 would be lost to rounding when added to squares near 1."""
Count = Annotated[int, Range(at_least=1, at_most=1e15)]
"""A whole number, 1 or more."""
Horizon = Annotated[int, Range(at_least=2, at_most=1e15)]
"""The total number of pulls, for algorithms that use its logarithm."""
MomentOrder = Annotated[float, Range(above=0, at_most=1)]
"""ε: moments of order 1 + ε are finite."""


def check_fields(recipe: Any) -> None:
    """Check every field of a dataclass whose type declares a rule.

    >>> @dataclass
    ... class Recipe:
    ...     bonus: NonNegative = 1.0
    ...     kind: Literal["own", "other"] = "own"
    >>> check_fields(Recipe(bonus=-1))
    Traceback (most recent call last):
    ValueError: bonus must be a finite number at least 0, got -1
    >>> check_fields(Recipe(kind="third"))
    Traceback (most recent call last):
    ValueError: kind must be one of own, other, got 'third'
    """
    kind: Any = type(recipe)
    for name, (hint, optional) in _hints(kind).items():
        value = getattr(recipe, name)
        if optional and value is None:
            continue
        if get_origin(hint) is Literal:
            choices = get_args(hint)
            ok = isinstance(value, str) and value in choices
            require(ok, name, f"one of {', '.join(choices)}", value)
        elif hint is bool:
            require(isinstance(value, bool), name, "True or False", value)
        elif get_origin(hint) is Annotated:
            base, rule = get_args(hint)
            if base is int:
                whole(name, value, at_least=int(rule.at_least), at_most=rule.at_most)
            else:
                number(name, value, **vars(rule))


@cache
def _hints(kind: type[Any]) -> dict[str, tuple[Any, bool]]:
    """Return the type of each field without ``None``, and whether ``None`` is allowed."""
    parts = {}
    hints = get_type_hints(kind, include_extras=True)
    for part in fields(kind):
        hint = hints[part.name]
        options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        (first, *_) = (option for option in options if option is not NoneType)
        parts[part.name] = first, NoneType in options
    return parts
