"""Offers: the arms that a request chooses among, with or without features."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from tailproof.checks import array, require
from tailproof.typing import Array

__all__ = ["LONGEST_NAME", "MOST_ARMS", "Features", "Offer"]

MOST_ARMS = 10_000
"""A larger offer is most likely a mistake, and the journal would keep it forever."""
LONGEST_NAME = 200
_NAMES = f"printable strings of 1 to {LONGEST_NAME} characters"

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
    """

    names: tuple[str, ...]
    vectors: Array | None = None

    @classmethod
    def of(cls, offer: "Features | Offer") -> "Offer":
        """Return a checked offer; raises ``ValueError`` if it is invalid."""
        if isinstance(offer, Offer):
            return offer
        rule = "a list of arm names, or a mapping from arm names to features"
        listed = type(offer) is list  # abstract types take longer to ask
        ok = listed or (isinstance(offer, Iterable) and not isinstance(offer, str))
        require(ok, "offer", rule, offer)
        given = tuple(offer)
        try:
            named = _named(given)
        except TypeError:  # of something that is not a string
            raise ValueError(f"arm names must be {_NAMES}, got {list(given)}") from None
        if listed or not isinstance(offer, Mapping):
            return named
        try:
            vectors = array("features", [offer[name] for name in named.names])
        except ValueError:
            vectors = np.empty(0)
        ok = vectors.ndim == 2 and vectors.shape[1] > 0
        require(ok, "features", "vectors of numbers, all of the same length", dict(offer))
        require(bool(np.isfinite(vectors).all()), "features", "finite", dict(offer))
        return cls(named.names, vectors)

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
        hasher = hashlib.blake2b("\0".join(self.names).encode(), digest_size=16)
        if self.vectors is not None:
            hasher.update(b"\0\0" + self.vectors.tobytes())
        return hasher.digest()

    def row(self) -> tuple[str, str | None]:
        """Return names and features as JSON; features that all arms share only once."""
        names = json.dumps(self.names, ensure_ascii=False)
        if self.vectors is None:
            return names, None
        shared = len(self.vectors) > 1 and bool((self.vectors == self.vectors[0]).all())
        return names, json.dumps((self.vectors[:1] if shared else self.vectors).tolist())

    @classmethod
    def from_row(cls, names: str, features: str | None) -> Self:
        """Return the offer that `row` stored."""
        listed = tuple(json.loads(names))
        if features is None:
            return cls(listed)
        vectors = np.array(json.loads(features), dtype=np.float64)
        return cls(listed, np.repeat(vectors, len(listed) // len(vectors), axis=0))


@lru_cache(maxsize=4096)  # a service sees the same few offers again and again
def _named(names: tuple[str, ...]) -> Offer:
    """Return the offer of these names without features; their order does not matter."""
    if not 0 < len(names) <= MOST_ARMS:
        raise ValueError(f"offer must have 1 to {MOST_ARMS} arms, got {len(names)}")
    ok = "".join(names).isprintable() and all(names) and max(map(len, names)) <= LONGEST_NAME
    require(ok, "arm names", _NAMES, list(names))
    require(len(set(names)) == len(names), "arm names", "unique", list(names))
    ordered = tuple(sorted(names))
    return Offer(names) if ordered == names else _named(ordered)
