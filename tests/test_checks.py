"""Checks of arguments at their limits, and chunks of paths."""

from dataclasses import dataclass
from typing import Any

import pytest

from tailproof.checks import Count, MomentOrder, Positive, array, check_fields, number, whole
from tailproof.chunking import chunks


@dataclass
class Recipe:
    size: Positive = 1.0
    count: Count | None = None
    order: MomentOrder = 1.0


@pytest.mark.parametrize("value", [True, "1", None, 1j, float("nan"), float("inf"), -(10**400)])
def test_what_is_not_a_number_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="size must be a finite number"):
        number("size", value)
    with pytest.raises(ValueError, match="size must be a whole number"):
        whole("size", value)
    with pytest.raises(ValueError, match="size must be a finite number above 0"):
        check_fields(Recipe(size=value))


def test_inclusive_bounds_are_accepted_and_exclusive_ones_refused() -> None:
    assert number("x", 3, at_least=3) == number("x", 3, at_most=3) == 3
    assert whole("n", 7, at_least=7, at_most=7) == 7
    for bounds in ({"above": 3}, {"below": 3}):
        with pytest.raises(ValueError, match="x must be"):
            number("x", 3, **bounds)
    for count in (0, 10**15 + 1):
        with pytest.raises(ValueError, match="count must be a whole number of at least 1"):
            check_fields(Recipe(count=count))
    check_fields(Recipe(count=10**15, order=1))


def test_an_array_of_complex_numbers_or_words_is_refused() -> None:
    for value in ([1j], ["1"], [[1], [1, 2]]):
        with pytest.raises(ValueError, match="x must be an array of numbers"):
            array("x", value)


@pytest.mark.parametrize(("paths", "floats"), [(1, 1), (7, 1 << 20), (130_000, 1), (9, 30_000)])
def test_chunks_cover_every_path_once(paths: int, floats: int) -> None:
    covered = [path for part in chunks(paths, floats) for path in range(paths)[part]]
    assert covered == list(range(paths))
