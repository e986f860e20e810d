"""The layered choice of Auer, Chu and Xue: independent samples on each level of accuracy."""

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from tailproof.policies.base import Array, Index, M, Memory, Policy, pick_largest
from tailproof.policies.ridge import rank_one, squared_norms

__all__ = ["Layered", "LayeredRegression", "Layers"]


class Layered(Policy[M]):
    """A policy that sieves the arms level by level.

    On level s = 1, 2, … with the arms A_s still in the race, values r̂ and widths w from the samples
    of that level alone:

    - all w ≤ 1/√T: choose argmax r̂ + w, and learn nothing;
    - all w ≤ 2^−s: keep the arms with r̂ + w ≥ max(r̂ + w) − 2^(1−s), and go on to level s + 1;
    - else: choose an arm with w > 2^−s, the widest, and add its reward to level s.

    With ``layered=False`` there is one level and the arm with the largest r̂ + w is always chosen.
    """

    horizon: int
    layered: bool = True

    @property
    def levels(self) -> int:
        """The number S of levels."""
        return max(1, math.floor(math.log(self.horizon))) if self.layered else 1

    @abstractmethod
    def _appraise(self, memory: M, arms: Array, level: int, paths: Index) -> tuple[Array, Array]:
        """Return values and widths of the arms of some paths, from one level's samples."""

    @abstractmethod
    def _add(self, memory: M, level: Index, paths: Index, x: Array, rewards: Array) -> None:
        """Add the rewards of some paths, each to a level of its own."""

    def _choose(self, memory: M, arms: Array, rng: np.random.Generator) -> Index:
        return pick_largest(self._sieve(memory, arms)[0], rng)

    def _learn(self, memory: M, arms: Array, chosen: Index, rewards: Array) -> None:
        level = self._sieve(memory, arms)[1]
        paths = np.flatnonzero(level >= 0)
        if len(paths):
            self._add(memory, level[paths], paths, arms[paths, chosen[paths]], rewards[paths])

    def _sieve(self, memory: M, arms: Array) -> tuple[Array, Index]:
        """Return an index to maximise, and the level that learns from it (−1 for none)."""
        racing = np.arange(memory.paths)
        if not self.layered:
            value, width = self._appraise(memory, arms, 0, racing)
            return value + width, np.zeros(memory.paths, dtype=np.int64)
        index = np.full(arms.shape[:2], -np.inf)
        chosen_level = np.full(memory.paths, -1)
        kept = np.ones(arms.shape[:2], dtype=bool)
        for level in range(self.levels):
            value, width = self._appraise(memory, arms[racing], level, racing)
            step = 2.0 ** -(level + 1)
            mine = kept[racing]
            upper = np.where(mine, value + width, -np.inf)
            widest = np.where(mine, width, 0.0).max(axis=1)
            sure = widest <= max(1 / math.sqrt(self.horizon), step * (level == self.levels - 1))
            explore = ~sure & (widest > step)
            index[racing[sure]] = upper[sure]
            wide = np.where(mine & (width > step), width, -np.inf)
            index[racing[explore]] = wide[explore]
            chosen_level[racing[explore]] = level
            go_on = ~sure & ~explore
            kept[racing] = mine & (upper >= upper.max(axis=1, keepdims=True) - 2 * step)
            racing = racing[go_on]
            if not len(racing):
                break
        return index, chosen_level


@dataclass(eq=False)
class Layers(Memory):
    """The samples of each level: A⁻¹ with A = I + Σ x xᵀ, and b^j = Σ y^j x for each replicate j.

    Attributes
    ----------
    inverse : array of shape (paths, levels, d, d)
    moments : array of shape (paths, levels, replicates, d)
    """

    inverse: Array
    moments: Array


class LayeredRegression(Layered[Layers]):
    """A layered policy with a regression for each replicate on each level."""

    @abstractmethod
    def _multiplier(self, memory: Layers) -> Array:
        """Return the width of an arm in units of its norm, in each path."""

    def _init(self, paths: int, arms: int, dim: int) -> Layers:
        return Layers(
            arms=arms,
            dim=dim,
            decisions=np.zeros(paths, dtype=np.int64),
            inverse=np.tile(np.eye(dim), (paths, self.levels, 1, 1)),
            moments=np.zeros((paths, self.levels, self.pulls, dim)),
        )

    def _appraise(
        self, memory: Layers, arms: Array, level: int, paths: Index
    ) -> tuple[Array, Array]:
        inverse = memory.inverse[paths, level]
        values = arms @ (memory.moments[paths, level] @ inverse).mT
        values[np.isnan(values)] = np.inf  # a replicate that saw an infinity
        width = np.sqrt(np.maximum(squared_norms(inverse, arms), 0))
        return np.median(values, axis=2), self._multiplier(memory)[paths, None] * width

    def _add(self, memory: Layers, level: Index, paths: Index, x: Array, rewards: Array) -> None:
        gain, _ = rank_one(memory.inverse[paths, level], x)
        memory.inverse[paths, level] -= np.einsum("pi,pj->pij", gain, gain)
        memory.moments[paths, level] += rewards[:, :, None] * x[:, None, :]
