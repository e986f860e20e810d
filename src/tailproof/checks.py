"""Checks of arguments: each refusal names the parameter, the rule and the value."""

import math
import sys
from numbers import Integral, Real
from typing import Any

__all__ = ["number", "require", "whole"]


def require(ok: bool, name: str, rule: str, value: object) -> None:
    """Raise ``ValueError`` unless ``ok``.

    >>> require(False, "block", "at most 7", 9)
    Traceback (most recent call last):
    ValueError: block must be at most 7, got 9
    """
    if not ok:
        raise ValueError(f"{name} must be {rule}, got {value!r}")


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
