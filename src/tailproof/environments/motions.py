"""How the parameter θ of a linear bandit changes while it is played.

θ is constant between *marks*, which count pulls. A decision sees the θ of its first pull. In a
K-armed bandit θ has the locations of the arms, so that here arms are coordinates of θ. All lengths
are in units of the bandit's `size`.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailproof.checks import Count, Positive, check_fields, require, whole
from tailproof.typing import Array

__all__ = [
    "Jump",
    "Motion",
    "PassOn",
    "Rise",
    "Rotation",
    "Shift",
    "Shuffle",
    "Swap",
    "Walk",
]


class Motion(ABC):
    """A change of θ at certain pulls; a motion of your own is a dataclass with `marks` and `step`.

    >>> from tailproof import UCB1, environments, noise, simulate
    >>> bandit = environments.k_armed(noise.Normal(), locations=(0, 2), motion=Swap(at=(500,)))
    >>> result = simulate({"UCB1": UCB1()}, bandit, horizon=1000, paths=20)
    >>> half, end = result.mean("UCB1")[[99, 199]]
    >>> bool(end > 3 * half)  # regret is against the best arm of the moment
    True
    """

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def marks(self) -> Iterator[int]:
        """Return the pulls, in ascending order, before which θ changes."""

    @abstractmethod
    def step(self, theta: Array, rng: np.random.Generator) -> Array:
        """Return the next θ of every path, of shape (paths, d)."""


@dataclass(frozen=True, kw_only=True)
class _Sudden(Motion):
    at: tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        at: Any = self.at
        require(isinstance(at, tuple | list), "at", "a sequence of pull counts", at)
        marks = tuple(whole("at", mark) for mark in at)
        require(list(marks) == sorted(set(marks)), "at", "in ascending order", at)
        object.__setattr__(self, "at", marks)

    def marks(self) -> Iterator[int]:
        """Return the given pulls."""
        return iter(self.at)


@dataclass(frozen=True, kw_only=True)
class _Steady(Motion):
    every: Count = 100

    def marks(self) -> Iterator[int]:
        """Return the multiples of `every`."""
        return itertools.count(self.every, self.every)


@dataclass(frozen=True, kw_only=True)
class Jump(_Sudden):
    """θ takes a new random direction and keeps its length.

    >>> Jump(at=(2000, 5000)).step(np.array([[3.0, 4.0]]), np.random.default_rng(0)).shape
    (1, 2)
    """

    def step(self, theta: Array, rng: np.random.Generator) -> Array:
        """Return a random direction of the same length."""
        return _as_long(rng.standard_normal(theta.shape), theta)


@dataclass(frozen=True, kw_only=True)
class Shuffle(_Sudden):
    """The arms of a K-armed bandit trade places at random.

    >>> Shuffle(at=(2000,)).step(np.array([[1.0, 2, 3]]), np.random.default_rng(0)).tolist()
    [[3.0, 1.0, 2.0]]
    """

    def step(self, theta: Array, rng: np.random.Generator) -> Array:
        """Return the coordinates of each path in another order."""
        return rng.permuted(theta, axis=1)


@dataclass(frozen=True, kw_only=True)
class Swap(_Sudden):
    """The best and the worst arm of a K-armed bandit trade places.

    >>> Swap(at=(2000,)).step(np.array([[1.0, 2, 3]]), np.random.default_rng(0)).tolist()
    [[3.0, 2.0, 1.0]]
    """

    def step(self, theta: Array, rng: np.random.Generator) -> Array:
        """Return θ with its largest and smallest coordinate exchanged."""
        moved, rows = theta.copy(), np.arange(len(theta))
        moved[rows, theta.argmin(axis=1)] = theta.max(axis=1)
        moved[rows, theta.argmax(axis=1)] = theta.min(axis=1)
        return moved


@dataclass(frozen=True, kw_only=True)
class Rise(_Sudden):
    """The worst arm of a K-armed bandit becomes the best, by a gap of `by`.

    Nothing changes in the arms that a good policy pulls.

    >>> Rise(at=(2000,), by=0.5).step(np.array([[1.0, 2, 3]]), np.random.default_rng(0)).tolist()
    [[3.5, 2.0, 3.0]]
    """

    by: Positive

    def step(self, theta: Array, rng: np.random.Generator) -> Array:
        """Return θ with its smallest coordinate raised."""
        moved = theta.copy()
        moved[np.arange(len(theta)), theta.argmin(axis=1)] = theta.max(axis=1) + self.by
        return moved


@dataclass(frozen=True, kw_only=True)
class Shift(_Sudden):
    """All arms of a K-armed bandit rise or fall by `by`, each with probability ½.

    The best arm stays the best.

    >>> Shift(at=(2000,), by=3).step(np.array([[1.0, 2, 3]]), np.random.default_rng(0)).tolist()
    [[4.0, 5.0, 6.0]]
    """

    by: Positive

    def step(self, theta: Array, rng: np.random.Generator) -> Array:
        """Return θ plus or minus a constant."""
        return theta + self.by * rng.choice([-1.0, 1.0], (len(theta), 1))


@dataclass(frozen=True, kw_only=True)
class PassOn(_Sudden):
    """Each arm of a K-armed bandit takes the place of the arm before it.

    With `tailproof.noise.PassedOn` at the same pulls, whole laws move from arm to arm.

    >>> PassOn(at=(2000,)).step(np.array([[1.0, 2, 3]]), np.random.default_rng(0)).tolist()
    [[2.0, 3.0, 1.0]]
    """

    def step(self, theta: Array, rng: np.random.Generator) -> Array:
        """Return θ moved on by one arm."""
        return np.roll(theta, -1, axis=1)


@dataclass(frozen=True, kw_only=True)
class Walk(_Steady):
    """θ takes a normal step at regular intervals.

    θ' = θ + stride·z,  z ~ N(0, I);  with `keeps_length`, brought back to the length of θ

    >>> Walk(stride=0.1).step(np.zeros((2, 3)), np.random.default_rng(0)).shape
    (2, 3)
    """

    stride: Positive
    keeps_length: bool = False

    def step(self, theta: Array, rng: np.random.Generator) -> Array:
        """Return θ after one step."""
        moved = theta + self.stride * rng.standard_normal(theta.shape)
        return _as_long(moved, theta) if self.keeps_length else moved


@dataclass(frozen=True, kw_only=True)
class Rotation(_Steady):
    """θ rotates in the planes of its coordinates 1 and 2, 3 and 4, …, once in `period` pulls.

    >>> east, rng = np.array([[1.0, 0.0, 0.0]]), np.random.default_rng(0)
    >>> Rotation(period=400).step(east, rng).round(9).tolist()
    [[0.0, 1.0, 0.0]]
    """

    period: Positive

    def step(self, theta: Array, rng: np.random.Generator) -> Array:
        """Return θ rotated by 2π·every/period."""
        angle = 2 * math.pi * self.every / self.period
        even = theta.shape[1] // 2 * 2
        x, y = theta[:, 0:even:2], theta[:, 1:even:2]
        moved = theta.copy()
        moved[:, 0:even:2] = math.cos(angle) * x - math.sin(angle) * y
        moved[:, 1:even:2] = math.sin(angle) * x + math.cos(angle) * y
        return moved


def _as_long(vectors: Array, others: Array) -> Array:
    """Return vectors, rescaled to the lengths of other vectors."""
    ratio = np.linalg.norm(others, axis=1) / np.linalg.norm(vectors, axis=1)
    return np.asarray(vectors * ratio[:, None])
