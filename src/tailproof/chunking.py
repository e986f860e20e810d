"""Split paths into chunks that fit into the processor's cache."""

from collections.abc import Iterator

__all__ = ["chunks"]

_FLOATS = 1 << 16  # 512 kB, a typical L2 cache; results do not depend on it


def chunks(paths: int, floats: int) -> Iterator[slice]:
    """Return slices of paths whose temporary arrays, of `floats` numbers per path, fit the cache.

    >>> list(chunks(paths=5, floats=30_000))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, _FLOATS // floats)
    for start in range(0, paths, step):
        yield slice(start, min(start + step, paths))
