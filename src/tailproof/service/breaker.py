"""A circuit breaker: no calls to a service that keeps failing, but for a try now and then."""

import time
from collections.abc import Callable

__all__ = ["Breaker"]

_FAILURES = 5
_PAUSE, _LONGEST_PAUSE = 1.0, 30.0


class Breaker:
    """Says whether a call may be made.

    Closed, it allows every call. After 5 failed calls in a row it opens, and allows none for a
    second. Then it is half-open: it allows one call, and closes if that succeeds; otherwise it
    opens again for twice as long, up to 30 seconds.

    Parameters
    ----------
    clock : callable, optional
        Returns the time in seconds.

    Examples
    --------
    >>> breaker = Breaker(clock=lambda: 0.0)
    >>> for _ in range(5):
    ...     breaker.failed()
    >>> breaker.allows(), breaker.left()
    (False, 1.0)

    Source: M. Nygard, "Release It!" (2007), chapter 5. Differences: the pause doubles.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.succeeded()

    @property
    def open(self) -> bool:
        """Whether calls are held back, but for tries."""
        return self._failures >= _FAILURES

    def allows(self) -> bool:
        """Return whether a call may be made now; if it is a try, the next one is a pause later."""
        if not self.open:
            return True
        if self.left() > 0:
            return False
        self._next = self._clock() + self._pause
        return True

    def left(self) -> float:
        """Return the seconds until the next try."""
        return max(0.0, self._next - self._clock())

    def succeeded(self) -> None:
        """Close it."""
        self._failures, self._pause, self._next = 0, _PAUSE, 0.0

    def failed(self) -> None:
        """Count a failed call."""
        self._failures += 1
        if self.open:
            if self._failures > _FAILURES:
                self._pause = min(2 * self._pause, _LONGEST_PAUSE)
            self._next = self._clock() + self._pause
