"""The layered choice of Auer, Chu and Xue: independent samples for each level of accuracy."""

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from tailproof.policies.base import Array, Index, Indexed, S
from tailproof.policies.state.base import State
from tailproof.policies.state.regression import blank, rank_one_update

__all__ = ["Layered", "LayeredRegression", "Layers"]


@dataclass(eq=False)
class Layers(State):
    """The samples of each level: A = I + Σ x xᵀ, and a regression for each of r replicates.

    `blocks`, of shape (paths, levels, d, d + r), holds [S | θ¹ … θʳ] with A⁻¹ = SSᵀ, see
    `tailproof.policies.state.regression.rank_one_update`.
    """

    blocks: Array


class Layered(Indexed[S]):
    """A policy that eliminates arms level by level.

    Level s = 1, 2, … predicts values r̂ and widths w of the remaining arms from its own samples:

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
    def _predict(self, state: S, arms: Array, level: int, paths: Index) -> tuple[Array, Array]:
        """Return values and widths of the arms of some paths, from the samples of one level."""

    @abstractmethod
    def _add(self, state: S, level: Index, paths: Index, x: Array, rewards: Array) -> None:
        """Add the rewards of some paths, each to its own level."""

    def _index(self, state: S, arms: Array) -> Array:
        return self._eliminate(state, arms)[0]

    def _learn(self, state: S, arms: Array, chosen: Index, rewards: Array) -> None:
        level = self._eliminate(state, arms)[1]
        paths = np.flatnonzero(level >= 0)
        if len(paths):
            self._add(state, level[paths], paths, arms[paths, chosen[paths]], rewards[paths])

    def _eliminate(self, state: S, arms: Array) -> tuple[Array, Index]:
        """Return an index to maximise, and the level that its reward goes to (−1 for none)."""
        racing = np.arange(state.paths)
        if not self.layered:
            value, width = self._predict(state, arms, 0, racing)
            return value + width, np.zeros(state.paths, dtype=np.int64)
        index = np.full(arms.shape[:2], -np.inf)
        chosen_level = np.full(state.paths, -1)
        kept = np.ones(arms.shape[:2], dtype=bool)
        for level in range(self.levels):
            value, width = self._predict(state, arms[racing], level, racing)
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


class LayeredRegression(Layered[Layers]):
    """A layered policy with a regression for each replicate on each level."""

    @abstractmethod
    def _multiplier(self, state: Layers) -> Array:
        """Return the ratio of width to ‖x‖_{A⁻¹} in each path."""

    def _init(self, paths: int, arms: int, dim: int) -> Layers:
        blocks = np.stack([blank(paths, dim, 1.0, self.pulls)] * self.levels, axis=1)
        return Layers.start(paths, arms, dim, blocks=blocks)

    def _predict(self, state: Layers, arms: Array, level: int, paths: Index) -> tuple[Array, Array]:
        product = arms @ state.blocks[paths, level]
        turned, values = product[..., : state.dim], product[..., state.dim :]
        values[np.isnan(values)] = np.inf  # of a replicate with an infinite reward
        width = np.sqrt(np.vecdot(turned, turned))
        return np.median(values, axis=2), self._multiplier(state)[paths, None] * width

    def _add(self, state: Layers, level: Index, paths: Index, x: Array, rewards: Array) -> None:
        blocks = state.blocks[paths, level]
        rank_one_update(blocks, x, rewards)
        state.blocks[paths, level] = blocks
