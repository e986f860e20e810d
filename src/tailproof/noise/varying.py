"""Noise that is not the same for every arm or every pull."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import require, whole
from tailproof.noise.base import Array, Noise

__all__ = ["Changing", "PerArm", "Varying"]

Index = NDArray[np.int64]


class Varying(ABC):
    """One of several laws, as the arm and the number of pulls before it say."""

    laws: tuple[Noise, ...]

    def __post_init__(self) -> None:
        laws = tuple(self.laws)
        ok = len(laws) > 0 and all(isinstance(law, Noise) for law in laws)
        require(ok, "laws", "at least one law", self.laws)
        object.__setattr__(self, "laws", laws)

    @abstractmethod
    def which(self, chosen: Index, pulled: int, pulls: int) -> Index:
        """Return which law each pull of a decision follows, of a shape like (paths, pulls)."""

    def sample(self, rng: np.random.Generator, chosen: Index, pulled: int, pulls: int) -> Array:
        """Draw the noise of a decision after `pulled` pulls, of shape (paths, pulls).

        Every law is drawn from, so that what is drawn next does not depend on what was chosen.
        """
        shape = (len(chosen), pulls)
        which = np.broadcast_to(self.which(chosen, pulled, pulls), shape)
        kinds = list(dict.fromkeys(self.laws))  # arms may share a law, and then its sample
        drawn = np.stack([law.sample(rng, shape) for law in kinds])
        of_kind = np.array([kinds.index(law) for law in self.laws])
        picked: Array = np.take_along_axis(drawn, of_kind[which][None], axis=0)[0]
        return picked

    def scaled(self, c: float) -> Self:
        """Return the noise times c > 0."""
        return self._with(tuple(law.scaled(c) for law in self.laws))

    @abstractmethod
    def _with(self, laws: tuple[Noise, ...]) -> Self: ...


@dataclass(frozen=True)
class PerArm(Varying):
    """One law for each arm.

    >>> from tailproof.noise import Cauchy, Normal
    >>> noise = PerArm((Cauchy(), Normal(10)))
    >>> noise.sample(np.random.default_rng(0), np.array([0, 1, 1]), pulled=0, pulls=5).shape
    (3, 5)

    Source: elementary. Differences: none.
    """

    laws: tuple[Noise, ...]

    def which(self, chosen: Index, pulled: int, pulls: int) -> Index:
        """Return the arm."""
        return chosen[:, None]

    def _with(self, laws: tuple[Noise, ...]) -> Self:
        return type(self)(laws)


@dataclass(frozen=True)
class Changing(Varying):
    """One law after another: the next one from each of the pulls `at` on.

    >>> from tailproof.noise import Cauchy
    >>> noise = Changing((Cauchy(), Cauchy(10)), at=(1000,))
    >>> noise.which(np.array([0]), pulled=998, pulls=4).tolist()
    [0, 0, 1, 1]

    Source: elementary. Differences: none.
    """

    laws: tuple[Noise, ...]
    at: Sequence[int]

    def __post_init__(self) -> None:
        super().__post_init__()
        at: Any = tuple(self.at) if isinstance(self.at, Sequence) else self.at
        ok = isinstance(at, tuple) and len(at) == len(self.laws) - 1
        require(ok, "at", "one whole number fewer than laws", self.at)
        at = tuple(whole("at", mark, at_least=0) for mark in at)
        require(list(at) == sorted(at), "at", "in order", self.at)
        object.__setattr__(self, "at", at)

    def which(self, chosen: Index, pulled: int, pulls: int) -> Index:
        """Return the laws by the number of pulls before, one for each pull."""
        return np.searchsorted(self.at, pulled + np.arange(pulls), side="right")

    def _with(self, laws: tuple[Noise, ...]) -> Self:
        return type(self)(laws, self.at)
