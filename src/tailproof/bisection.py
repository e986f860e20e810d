"""Bisection: where a condition begins to hold."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tailproof.typing import Array, Index

__all__ = ["bisect", "first_integer"]


def bisect(
    holds: Callable[[Array], NDArray[np.bool_]], low: Array, high: Array, *, halvings: int
) -> tuple[Array, Array]:
    """Halve many intervals around the numbers where their conditions begin to hold.

    >>> low, high = bisect(lambda x: x * x >= 2, np.array(0.0), np.array(2.0), halvings=50)
    >>> round(float(high), 9)
    1.414213562
    """
    for _ in range(halvings):
        middle = low / 2 + high / 2  # the sum may be too large for a float
        reached = holds(middle)
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return low, high


def first_integer(
    holds: Callable[[Index], NDArray[np.bool_]], low: int | Index, high: int | Index
) -> Index:
    """Return the least integers above `low` at which a condition holds; at `high` it must hold.

    >>> int(first_integer(lambda n: n * n >= 200, 0, 100))
    15
    """
    below, above = np.asarray(low, dtype=np.int64), np.asarray(high, dtype=np.int64)
    while True:
        middle = (below >> 1) + (above >> 1) + (below & above & 1)  # low + high may overflow
        if not (middle > below).any():
            return above
        reached = holds(middle)
        below, above = np.where(reached, below, middle), np.where(reached, middle, above)
