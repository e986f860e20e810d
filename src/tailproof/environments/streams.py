"""Random streams, named by their purpose, and how much is drawn from them at a time."""

from hashlib import sha256

import numpy as np

__all__ = ["drawn_together", "stream"]

_TOGETHER = 1 << 16
"""Numbers drawn together: 512 kB, which fit a processor's cache. Results depend on this."""


def stream(seed: int, purpose: str, chunk: int) -> np.random.Generator:
    """Return the random stream of a purpose: its key is the SHA-256 of its name.

    >>> bool(stream(0, "noise", chunk=1).random() == stream(0, "noise", chunk=2).random())
    False
    """
    digest = np.frombuffer(sha256(purpose.encode()).digest(), dtype=">u4")
    key = (*digest.tolist(), chunk)
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=key)))


def drawn_together(floats: int) -> int:
    """Return how many pieces, of `floats` numbers each, are drawn at a time, at least one.

    The values depend on how many are drawn at a time, since some laws draw two numbers for each
    value. So, like the seed, this must not depend on the machine.

    >>> drawn_together(2_000), drawn_together(100_000)
    (32, 1)
    """
    return max(1, _TOGETHER // floats)
