"""One lock for all acts of an agent."""

import os
import threading

__all__ = ["Turn"]


class Turn:
    """A lock that cannot be taken twice by one thread, nor in a forked child."""

    def __init__(self) -> None:
        self._lock, self._owner, self._process = threading.Lock(), -1, os.getpid()

    def __enter__(self) -> None:
        if os.getpid() != self._process:  # locks may belong to threads that do not exist here
            raise RuntimeError("an Agent cannot be used after a fork: create one in each process")
        me = threading.get_ident()
        if self._owner == me:
            raise RuntimeError("an Agent cannot be called from within its own ask or tell")
        self._lock.acquire()
        self._owner = me

    def __exit__(self, *_: object) -> None:
        self._owner = -1
        self._lock.release()
