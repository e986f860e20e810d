"""Samples that are truncated again at every decision, without reading all of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Self

import numpy as np

from tailproof.policies.state.base import Array, Counts, Finite, Index, Rule, State
from tailproof.policies.state.regression import blank, rank_one_update

__all__ = ["Samples"]


@dataclass(eq=False)
class Samples(State):
    """Arms and rewards on each level, with A = λI + Σ x xᵀ.

    A small reward is settled: since A only grows, no later truncation can affect it, and it is kept
    as part of Σ y x. The others, few unless the tails are heavy, are read at every decision.

    All arrays begin with the axes (paths, levels): `root` is S with A⁻¹ = SSᵀ; `x` and `y` hold the
    samples, `count` of them in use; rewards up to the size `settled` are settled, with Σ y x in
    `moment`; `longest` is the largest norm of an arm so far.
    """

    root: Finite
    x: Annotated[Array, Rule(finite=True, buffer=2)]
    y: Annotated[Array, Rule(buffer=2)]
    count: Counts
    moment: Array
    settled: Array
    longest: Array

    @classmethod
    def start(
        cls,
        paths: int,
        arms: int,
        dim: int,
        penalty: float = 1.0,
        levels: int = 1,
        **arrays: Any,
    ) -> Self:
        """Return the state before any sample, with λ = `penalty`."""
        return super().start(
            paths,
            arms,
            dim,
            root=np.stack([blank(paths, dim, penalty)] * levels, axis=1),
            x=np.zeros((paths, levels, 16, dim)),
            y=np.zeros((paths, levels, 16)),
            count=np.zeros((paths, levels), dtype=np.int64),
            moment=np.zeros((paths, levels, dim)),
            settled=np.zeros((paths, levels)),
            longest=np.zeros((paths, levels)),
        )

    def _room_needed(self) -> int:
        return int(self.count.max())

    def unsettled(self, paths: Index, level: Index | int) -> Iterator[tuple[Array, Array]]:
        """Yield the arms and rewards that are not settled, of shapes (n, d) and (n,), by path.

        Nothing is padded: sums over n samples round differently when zeros are added to them, and
        then a path would depend on how many samples the others have.
        """
        level = np.full(paths.shape, level)
        used = int(self.count[paths, level].max(initial=0))
        loose = np.abs(self.y[paths, level, :used]) > self.settled[paths, level][:, None]
        row, place = np.nonzero(loose)
        at = paths[row], level[row], place
        x, y, ends = self.x[at], self.y[at], np.cumsum(loose.sum(axis=1)).tolist()
        return ((x[i:j], y[i:j]) for i, j in pairwise([0, *ends]))

    def update(
        self,
        paths: Index,
        level: Index,
        x: Array,
        y: Array,
        safe: Callable[[Index, Array], Array],
    ) -> None:
        """Add a sample to a level of each path, which must have room for it.

        `safe` maps the paths and the largest eigenvalue of A⁻¹ in each to the size up to which no
        later truncation affects rewards at arms of norm one.
        """
        at = paths, level
        root = self.root[at]
        rank_one_update(root, x, np.empty((len(x), 0)))
        self.root[at] = root
        place = self.count[at]
        self.x[*at, place], self.y[*at, place] = x, y
        self.count[at] += 1
        length = np.sqrt(np.vecdot(x, x))
        grown = length > self.longest[at]
        self.longest[at] = np.maximum(self.longest[at], length)
        # Longer arms may unsettle settled vectors: start over.
        self.settled[at] = np.where(grown, 0.0, self.settled[at])
        self.moment[at] = np.where(grown[:, None], 0.0, self.moment[at])
        small = ~grown & (np.abs(y) <= self.settled[at])
        self.moment[at] += np.where(small, y, 0.0)[:, None] * x
        self._settle(paths, level, safe)

    def _settle(self, paths: Index, level: Index, safe: Callable[[Index, Array], Array]) -> None:
        """Settle vectors that have become small, every 16 samples and at powers of two."""
        count = self.count[paths, level]
        due = (count & (count - 1) == 0) | (count % 16 == 0)
        if not due.any():
            return
        at = paths[due], level[due]
        top: Array = np.linalg.norm(self.root[at], 2, axis=(1, 2)) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = safe(paths[due], top) / self.longest[at]
        bound = np.where(np.isnan(bound), 0.0, bound)
        for path, at_level, most, (x, y) in zip(*at, bound, self.unsettled(*at), strict=True):
            self.moment[path, at_level] += np.where(np.abs(y) <= most, y, 0.0) @ x
        self.settled[at] = np.maximum(self.settled[at], bound)
