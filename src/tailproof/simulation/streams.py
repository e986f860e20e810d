"""Random streams, named by what they feed."""

import zlib

import numpy as np

__all__ = ["stream"]


def stream(seed: int, purpose: str, chunk: int) -> np.random.Generator:
    """Return the random stream of a purpose, named by what it feeds."""
    key = (zlib.crc32(purpose.encode()), chunk)
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=key)))
