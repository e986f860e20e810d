"""What one request has on offer: arms by name, with features or without."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from tailproof.checks import array, require
from tailproof.policies.base import Array

__all__ = ["LONGEST_NAME", "MOST_ARMS", "Features", "Offer"]

MOST_ARMS = 10_000
"""Beyond it a request is a mistake, and would be kept for ever."""
LONGEST_NAME = 200

Features = Iterable[str] | Mapping[str, ArrayLike]
"""The names of the arms, or a mapping from them to vectors of one length."""


@dataclass(frozen=True)
class Offer:
    """The arms of one request.

    Parameters
    ----------
    names : tuple of str
        In the order of the alphabet: that of a request makes no difference.
    vectors : array of shape (K, d), or None
        The features, if the arms have any.

    Examples
    --------
    >>> Offer.of(["red", "blue"]).names
    ('blue', 'red')
    >>> Offer.of({"red": [1, 0], "blue": [0, 1]}).vectors.shape
    (2, 2)
    >>> Offer.of(["red", "red"])
    Traceback (most recent call last):
    ValueError: offer must be of arms with different names, got ['red', 'red']

    Source: our own. Differences: none.
    """

    names: tuple[str, ...]
    vectors: Array | None = None

    @classmethod
    def of(cls, offer: "Features | Offer") -> "Offer":
        """Return what is on offer, checked."""
        if isinstance(offer, Offer):
            return offer
        rule = "names of arms, or a mapping from names to features"
        require(isinstance(offer, Iterable) and not isinstance(offer, str), "offer", rule, offer)
        names = tuple(offer)
        require(0 < len(names) <= MOST_ARMS, "offer", f"of 1 to {MOST_ARMS} arms", len(names))
        try:
            ok = "".join(names).isprintable() and all(names)
        except TypeError:
            ok = False
        ok = ok and max(map(len, names)) <= LONGEST_NAME
        require(ok, "names of arms", f"texts of 1 to {LONGEST_NAME} signs", list(names))
        require(len(set(names)) == len(names), "offer", "of arms with different names", list(names))
        if not isinstance(offer, Mapping):
            return cls(tuple(sorted(names)))
        try:
            names = tuple(sorted(names))
            vectors = array("features", [offer[name] for name in names])
        except ValueError:
            vectors = np.empty(0)
        ok = vectors.ndim == 2 and vectors.shape[1] > 0
        require(ok, "features", "vectors of numbers, all of one length", dict(offer))
        require(bool(np.isfinite(vectors).all()), "features", "finite", dict(offer))
        return cls(names, vectors)

    @property
    def dim(self) -> int | None:
        """The length of the features, if there are any."""
        return None if self.vectors is None else self.vectors.shape[1]

    @cached_property
    def key(self) -> bytes:
        """Sixteen bytes that tell offers apart."""
        found = hashlib.blake2b("\0".join(self.names).encode(), digest_size=16)
        if self.vectors is not None:
            found.update(b"\0\0" + self.vectors.tobytes())
        return found.digest()

    def row(self) -> tuple[str, bytes | None]:
        """Return it as a journal keeps it."""
        features = None if self.vectors is None else self.vectors.astype("<f8").tobytes()
        return json.dumps(self.names, ensure_ascii=False), features

    @classmethod
    def from_row(cls, names: str, features: bytes | None) -> Self:
        """Return what `row` was called on."""
        found = tuple(json.loads(names))
        if features is None:
            return cls(found)
        return cls(found, np.frombuffer(features, "<f8").reshape(len(found), -1).astype(np.float64))
