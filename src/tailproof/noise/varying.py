"""Noise whose law depends on the arm or on the number of pulls."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from tailproof.checks import require, whole
from tailproof.noise.base import Array, Noise, check_laws
from tailproof.typing import Index

__all__ = ["Changing", "PassedOn", "PerArm", "Varying"]


class Varying(ABC):
    """Noise whose law depends on the arm or on the number of pulls so far."""

    laws: tuple[Noise, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "laws", check_laws(self.laws))

    @abstractmethod
    def which(self, chosen: Index, pulled: int, pulls: int) -> Index:
        """Return the index of the law of each pull; it broadcasts to (paths, pulls)."""

    def sample(self, rng: np.random.Generator, chosen: Index, pulled: int, pulls: int) -> Array:
        """Draw the noise of a decision after `pulled` pulls, of shape (paths, pulls).

        Every law is sampled, so that later draws do not depend on the arms chosen now.
        """
        shape = (len(chosen), pulls)
        which = np.broadcast_to(self.which(chosen, pulled, pulls), shape)
        kinds = list(dict.fromkeys(self.laws))  # arms with equal laws share a sample
        drawn = np.stack([law.sample(rng, shape) for law in kinds])
        of_kind = np.array([kinds.index(law) for law in self.laws])
        picked: Array = np.take_along_axis(drawn, of_kind[which][None], axis=0)[0]
        return picked

    def scaled(self, c: float) -> Self:
        """Return the noise multiplied by c > 0."""
        noise: Any = self
        scaled: Self = replace(noise, laws=tuple(law.scaled(c) for law in self.laws))
        return scaled


@dataclass(frozen=True)
class PerArm(Varying):
    """One law for each arm.

    >>> from tailproof.noise import Cauchy, Normal
    >>> noise = PerArm((Cauchy(), Normal(10)))
    >>> noise.sample(np.random.default_rng(0), np.array([0, 1, 1]), pulled=0, pulls=5).shape
    (3, 5)
    """

    laws: tuple[Noise, ...]

    def which(self, chosen: Index, pulled: int, pulls: int) -> Index:
        """Return the chosen arm."""
        return chosen[:, None]


@dataclass(frozen=True)
class Changing(Varying):
    """A sequence of laws: each pull count in `at` starts the next law.

    >>> from tailproof.noise import Cauchy
    >>> noise = Changing((Cauchy(), Cauchy(10)), at=(1000,))
    >>> noise.which(np.array([0]), pulled=998, pulls=4).tolist()
    [0, 0, 1, 1]
    """

    laws: tuple[Noise, ...]
    at: Sequence[int]

    def __post_init__(self) -> None:
        super().__post_init__()
        at = _pull_counts(self.at)
        ok = len(at) == len(self.laws) - 1
        require(ok, "at", "a sequence of pull counts, one fewer than laws", self.at)
        object.__setattr__(self, "at", at)

    def which(self, chosen: Index, pulled: int, pulls: int) -> Index:
        """Return the index of the law in force at each pull."""
        return np.searchsorted(self.at, pulled + np.arange(pulls), side="right")


@dataclass(frozen=True)
class PassedOn(Varying):
    """One law for each arm; after each pull count in `at`, an arm has the law of the next arm.

    >>> from tailproof.noise import Cauchy, Normal
    >>> noise = PassedOn((Cauchy(), Normal(10)), at=(1000,))
    >>> noise.which(np.array([0, 1]), pulled=999, pulls=2).tolist()
    [[0, 1], [1, 0]]
    """

    laws: tuple[Noise, ...]
    at: Sequence[int]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "at", _pull_counts(self.at))

    def which(self, chosen: Index, pulled: int, pulls: int) -> Index:
        """Return the index of the law of the chosen arm at each pull."""
        passed = np.searchsorted(self.at, pulled + np.arange(pulls), side="right")
        return (chosen[:, None] + passed) % len(self.laws)


def _pull_counts(at: Any) -> tuple[int, ...]:
    require(isinstance(at, Sequence), "at", "a sequence of pull counts", at)
    marks = tuple(whole("at", mark, at_least=0) for mark in at)
    require(list(marks) == sorted(marks), "at", "in ascending order", at)
    return marks
