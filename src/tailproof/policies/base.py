"""The contract of a policy, and what every policy shares.

A policy is a recipe: a frozen dataclass of hyper-parameters. What it learns lives in a memory
outside it. Everything is written once, for many independent paths at a time; live use is a batch
of one path.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Generic, Self, TypeVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tailproof.checks import require, whole

__all__ = ["Array", "Index", "Memory", "Policy", "pick_largest", "picked"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(eq=False)
class Memory:
    """What a policy has learned: plain arrays with the paths axis first.

    Attributes
    ----------
    arms, dim : int
        The number K of arms and the dimension d of their vectors.
    decisions : array of shape (paths,)
        How many decisions each path has learned from.
    """

    arms: int
    dim: int
    decisions: Index

    @property
    def paths(self) -> int:
        """The number of paths."""
        return len(self.decisions)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything learned as named arrays, ready for ``numpy.savez``."""
        return {name: np.array(getattr(self, name)) for name in self._names()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, ArrayLike]) -> Self:
        """Restore what `to_arrays` returned."""
        copies: dict[str, Any] = {name: np.array(arrays[name]) for name in cls._names()}
        return cls(**{name: copy if copy.ndim else copy.item() for name, copy in copies.items()})

    @classmethod
    def _names(cls) -> list[str]:
        return [field.name for field in fields(cls) if field.init]

    def take(self, paths: ArrayLike) -> Self:
        """Return a copy that holds the given paths alone."""
        index = np.asarray(paths)
        return type(self).from_arrays(
            {name: a[index] if a.ndim else a for name, a in self.to_arrays().items()}
        )


M = TypeVar("M", bound=Memory)


class Policy(ABC, Generic[M]):
    """A bandit algorithm: it chooses arms and learns from rewards.

    Arms have the shape (paths, K, d), choices (paths,), rewards (paths, `pulls`). A policy of your
    own writes `_init`, `_choose` and `_learn`, for arguments that are checked already; inside
    them NumPy does not warn of infinities, which are legitimate.
    """

    scale_field: ClassVar[str | None] = None
    """The field that holds the scale of the noise, if the recipe has one."""

    @property
    def pulls(self) -> int:
        """The number of rewards wanted for one decision."""
        return 1

    @final
    def init(self, paths: int, arms: int, dim: int) -> M:
        """Return the memory of a policy that has learned nothing yet."""
        return self._init(whole("paths", paths), whole("arms", arms), whole("dim", dim))

    @final
    def choose(self, memory: M, arms: ArrayLike, rng: np.random.Generator) -> Index:
        """Return the arm to pull in each path; the memory stays as it is."""
        with np.errstate(invalid="ignore", over="ignore"):
            return self._choose(memory, _shaped_arms(memory, arms), rng)

    @final
    def learn(self, memory: M, arms: ArrayLike, chosen: ArrayLike, rewards: ArrayLike) -> None:
        """Learn from the rewards of the chosen arms.

        ±inf and any finite size are legitimate rewards. A wrong shape or a NaN raises
        ``ValueError`` and leaves the memory as it was.
        """
        vectors = _shaped_arms(memory, arms)
        index = np.asarray(chosen)
        values = np.asarray(rewards, dtype=np.float64)
        expected = (memory.paths, self.pulls)
        if values.shape != expected:
            raise ValueError(f"rewards must be of shape {expected}, got {values.shape}")
        require(not math.isnan(values.min()), "rewards", "free of NaN", np.nan)
        if index.shape != expected[:1]:
            raise ValueError(f"chosen must be of shape {expected[:1]}, got {index.shape}")
        if index.dtype.kind not in "iu" or index.min() < 0 or index.max() >= memory.arms:
            rule = f"whole numbers from 0 to {memory.arms - 1}"
            raise ValueError(f"chosen must be {rule}, got {chosen!r}")
        with np.errstate(invalid="ignore", over="ignore"):
            self._learn(memory, vectors, index, values)
        memory.decisions += 1

    def propose(self, memory: M, rng: np.random.Generator) -> Array:
        """Return the vector of the unit ball to pull in each path; the memory stays as it is.

        This takes the place of `choose` where every vector of the ball may be pulled; `learn` is
        then told of the proposed vectors as the only arm, of shape (paths, 1, d).
        """
        raise ValueError(f"policy must be one that can play on the unit ball, got {self!r}")

    def estimate(self, memory: M) -> Array | None:
        """Return the estimate of θ, of shape (paths, d), where the algorithm has one."""
        return None

    def recommend(self, memory: M) -> Index:
        """Return the arm named as the best in each path, and −1 where none is named yet.

        Only policies that identify a best arm have an answer, see `tailproof.bestarm`.
        """
        raise ValueError(f"policy must be one that names a best arm, got {self!r}")

    @final
    def stopped(self, memory: M) -> NDArray[np.bool_]:
        """Return whether each path has named a best arm, and needs no more pulls."""
        return self.recommend(memory) >= 0

    @abstractmethod
    def _init(self, paths: int, arms: int, dim: int) -> M: ...

    @abstractmethod
    def _choose(self, memory: M, arms: Array, rng: np.random.Generator) -> Index: ...

    @abstractmethod
    def _learn(self, memory: M, arms: Array, chosen: Index, rewards: Array) -> None: ...


def _shaped_arms(memory: Memory, arms: ArrayLike) -> Array:
    vectors = np.asarray(arms, dtype=np.float64)
    expected = (memory.paths, memory.arms, memory.dim)
    if vectors.shape != expected:
        raise ValueError(f"arms must be of shape {expected}, got {vectors.shape}")
    return vectors


def picked(arms: Array, chosen: Index) -> Array:
    """Return the vectors of the chosen arms, of shape (paths, d)."""
    return arms[np.arange(len(arms)), chosen]


def pick_largest(index: Array, rng: np.random.Generator) -> Index:
    """Return the position of the largest index in each path, ties broken fairly.

    An undefined index (NaN) loses against any other. One random number is drawn for each path
    whatever the indices are, so that no path can disturb another.
    """
    lot = rng.random(len(index))
    largest = index.max(axis=1, keepdims=True)
    tied = index == largest
    if np.count_nonzero(tied) > len(index) or math.isnan(largest.sum()):  # NaN is the largest
        index = np.where(np.isnan(index), -np.inf, index)
        tied = index == index.max(axis=1, keepdims=True)
        tied &= tied.cumsum(axis=1) > (lot * tied.sum(axis=1)).astype(np.int64)[:, None]
    best: Index = tied.argmax(axis=1)
    return best
