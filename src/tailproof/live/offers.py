"""Offers: the arms that a request chooses among, with or without features."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from tailproof.checks import array, require
from tailproof.policies.base import Array

__all__ = ["LONGEST_NAME", "MOST_ARMS", "Features", "Offer"]

MOST_ARMS = 10_000
"""A larger offer is most likely a mistake, and the journal would keep it forever."""
LONGEST_NAME = 200

Features = Iterable[str] | Mapping[str, ArrayLike]
"""Arm names, or a mapping from arm names to vectors of equal length."""


@dataclass(frozen=True)
class Offer:
    """The arms of one request.

    Parameters
    ----------
    names : tuple of str
        Sorted, so that their order in a request makes no difference.
    vectors : array of shape (K, d), or None
        The feature vectors, if the arms have any.

    Examples
    --------
    >>> Offer.of(["red", "blue"]).names
    ('blue', 'red')
    >>> Offer.of({"red": [1, 0], "blue": [0, 1]}).vectors.shape
    (2, 2)
    >>> Offer.of(["red", "red"])
    Traceback (most recent call last):
    ValueError: arm names must be unique, got ['red', 'red']

    Source: our own. Differences: none.
    """

    names: tuple[str, ...]
    vectors: Array | None = None

    @classmethod
    def of(cls, offer: "Features | Offer") -> "Offer":
        """Return a checked offer; raises ``ValueError`` if it is invalid."""
        if isinstance(offer, Offer):
            return offer
        rule = "a list of arm names, or a mapping from arm names to features"
        require(isinstance(offer, Iterable) and not isinstance(offer, str), "offer", rule, offer)
        names = tuple(offer)
        if not 0 < len(names) <= MOST_ARMS:
            raise ValueError(f"offer must have 1 to {MOST_ARMS} arms, got {len(names)}")
        try:
            ok = "".join(names).isprintable() and all(names)
        except TypeError:
            ok = False
        ok = ok and max(map(len, names)) <= LONGEST_NAME
        rule = f"printable strings of 1 to {LONGEST_NAME} characters"
        require(ok, "arm names", rule, list(names))
        require(len(set(names)) == len(names), "arm names", "unique", list(names))
        if not isinstance(offer, Mapping):
            return cls(tuple(sorted(names)))
        try:
            names = tuple(sorted(names))
            vectors = array("features", [offer[name] for name in names])
        except ValueError:
            vectors = np.empty(0)
        ok = vectors.ndim == 2 and vectors.shape[1] > 0
        require(ok, "features", "vectors of numbers, all of the same length", dict(offer))
        require(bool(np.isfinite(vectors).all()), "features", "finite", dict(offer))
        return cls(names, vectors)

    def among(self, places: Sequence[int]) -> "Offer":
        """Return an offer of only some of the arms.

        >>> Offer(("blue", "green", "red")).among([0, 2]).names
        ('blue', 'red')
        """
        vectors = None if self.vectors is None else self.vectors[np.asarray(places)]
        return Offer(tuple(self.names[i] for i in places), vectors)

    @property
    def dim(self) -> int | None:
        """The length of the feature vectors, None without features."""
        return None if self.vectors is None else self.vectors.shape[1]

    @cached_property
    def key(self) -> bytes:
        """A 16-byte digest that identifies the offer."""
        found = hashlib.blake2b("\0".join(self.names).encode(), digest_size=16)
        if self.vectors is not None:
            found.update(b"\0\0" + self.vectors.tobytes())
        return found.digest()

    def row(self) -> tuple[str, int | None, bytes | None]:
        """Return the columns that a journal stores; features that all arms share only once."""
        names = json.dumps(self.names, ensure_ascii=False)
        if self.vectors is None:
            return names, None, None
        shared = len(self.vectors) > 1 and bool((self.vectors == self.vectors[0]).all())
        vectors = self.vectors[:1] if shared else self.vectors
        return names, self.dim, vectors.astype("<f8").tobytes()

    @classmethod
    def from_row(cls, names: str, dim: int | None, features: bytes | None) -> Self:
        """Return the offer that `row` stored."""
        found = tuple(json.loads(names))
        if dim is None or features is None:
            return cls(found)
        vectors = np.frombuffer(features, "<f8").reshape(-1, dim).astype(np.float64)
        return cls(found, np.repeat(vectors, len(found) // len(vectors), axis=0))
