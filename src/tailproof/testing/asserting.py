"""Assertions that every check uses to state its findings."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FALSE_ALARM", "assert_raises", "assert_same", "recipe_is_frozen"]

FALSE_ALARM = 1e-6
"""The false-alarm rate of each statistical check."""


def recipe_is_frozen(recipe: object) -> None:
    """A recipe compares by value, survives copying and pickling, and cannot be changed."""
    assert copy.deepcopy(recipe) == recipe
    assert pickle.loads(pickle.dumps(recipe)) == recipe
    assert hash(copy.deepcopy(recipe)) == hash(recipe)
    for name in [field.name for field in fields(recipe)] or ["anything"]:  # type: ignore[arg-type]
        try:
            setattr(recipe, name, None)
        except FrozenInstanceError:
            continue
        raise AssertionError(f"{name} of {recipe!r} could be changed")


def assert_same(first: dict[str, NDArray[Any]], second: dict[str, NDArray[Any]]) -> None:
    """Raise unless the arrays have the same names and the same bits."""
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)


def assert_raises(action: Callable[..., object], *args: Any) -> None:
    """Raise unless the action refuses its arguments with ``ValueError``."""
    try:
        action(*args)
    except ValueError:
        return
    raise AssertionError("bad input was accepted")
