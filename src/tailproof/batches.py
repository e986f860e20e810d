"""Paths in batches small enough for the processor's cache."""

from collections.abc import Iterator

__all__ = ["batches", "stock"]

_FLOATS = 1 << 16  # 512 kB, a second-level cache


def batches(paths: int, floats: int) -> Iterator[slice]:
    """Cut the paths into slices whose temporaries, of `floats` numbers a path, stay in the cache.

    >>> list(batches(paths=5, floats=30_000))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = stock(floats)
    for start in range(0, paths, step):
        yield slice(start, min(start + step, paths))


def stock(floats: int) -> int:
    """Return how many pieces, of `floats` numbers each, fit into the cache; one at least.

    >>> stock(2_000), stock(100_000)
    (32, 1)
    """
    return max(1, _FLOATS // floats)
