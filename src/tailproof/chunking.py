"""Paths in chunks small enough for the processor's cache."""

from collections.abc import Iterator

__all__ = ["chunks"]

_FLOATS = 1 << 16  # 512 kB, a second-level cache; no result depends on it


def chunks(paths: int, floats: int) -> Iterator[slice]:
    """Cut the paths into slices whose temporaries, of `floats` numbers a path, stay in the cache.

    >>> list(chunks(paths=5, floats=30_000))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, _FLOATS // floats)
    for start in range(0, paths, step):
        yield slice(start, min(start + step, paths))
