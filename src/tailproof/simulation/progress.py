"""A progress bar for Python: one line on stderr, on a terminal and in a notebook."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from tailproof.checks import require
from tailproof.formatting import clock

__all__ = ["shown"]

_WIDTH = 30
"""Characters of a full bar."""
_PATIENCE = 2.0
"""Seconds before a bar that nobody asked for appears."""


@contextmanager
def shown(
    progress: Callable[[int, int], None] | bool | None,
) -> Iterator[Callable[[int, int], None]]:
    """Yield a function to call with the steps done and their total.

    >>> with shown(False) as report:
    ...     report(1, 2)
    """
    ok = progress is None or isinstance(progress, bool) or callable(progress)
    require(ok, "progress", "True, False, or a function of two numbers", progress)
    if callable(progress):
        yield progress
        return
    wanted = _is_watched(sys.stderr) if progress is None else progress
    if not wanted:
        yield lambda done, total: None
        return
    bar = _Bar(sys.stderr, 0.0 if progress else _PATIENCE)
    try:
        yield bar
    finally:
        bar.clear()


class _Bar:
    """Draws one line again and again, and takes it away at the end."""

    def __init__(self, stream: TextIO, patience: float) -> None:
        self._stream, self._patience = stream, patience
        self._begin, self._first, self._length = time.monotonic(), 0, 0

    def __call__(self, done: int, total: int) -> None:
        elapsed = time.monotonic() - self._begin
        if not self._length:
            self._first = self._first or done  # cells of an earlier run take no time
        if elapsed < self._patience:
            return
        full = _WIDTH * done // max(total, 1)
        left = elapsed / (done - self._first) * (total - done) if done > self._first else None
        text = f"{'━' * full}{'─' * (_WIDTH - full)} {done}/{total} cells"
        text += "" if left is None else f", {clock(left)} left"
        self._write(text)

    def clear(self) -> None:
        """Take the line away."""
        if self._length:
            self._write("")
            self._stream.write("\r")
            self._stream.flush()

    def _write(self, text: str) -> None:
        encoding = self._stream.encoding or "ascii"
        plain = text.encode(encoding, errors="replace").decode(encoding)
        self._stream.write(f"\r{plain.ljust(self._length)}")
        self._stream.flush()
        self._length = len(plain)


def _is_watched(stream: TextIO) -> bool:
    """Return whether somebody sees the stream now: a terminal, or a notebook."""
    return stream.isatty() or type(stream).__module__.startswith("ipykernel")
