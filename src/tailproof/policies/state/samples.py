"""Samples that are truncated anew at every decision, without looking at all of them again."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np

from tailproof.policies.state.base import Array, Counts, Finite, Index, Rule, State
from tailproof.policies.state.regression import absorb, blank

__all__ = ["Samples"]


@dataclass(eq=False)
class Samples(State):
    """Arms and rewards on each level, with A = λI + Σ x xᵀ.

    A small reward is settled: no later truncation can touch it, since A only grows, and it is
    remembered as part of Σ y x. The others, few unless the noise is wild, are looked at again.

    Attributes
    ----------
    root : array of shape (paths, levels, d, d)
        S with A⁻¹ = SSᵀ.
    x, y : arrays of shape (paths, levels, capacity, d) and (paths, levels, capacity)
        The samples; `count` of them are in use.
    moment : array of shape (paths, levels, d)
        Σ y x over the settled samples.
    settled, longest : arrays of shape (paths, levels)
        Rewards up to this size are settled; the largest norm of an arm so far.
    """

    root: Finite
    x: Annotated[Array, Rule(finite=True, buffer=2)]
    y: Annotated[Array, Rule(buffer=2)]
    count: Counts
    moment: Array
    settled: Array
    longest: Array

    @classmethod
    def start(cls, paths: int, arms: int, dim: int, penalty: float, levels: int = 1) -> Self:
        """Return the state before any sample, with λ = `penalty`."""
        return cls(
            arms=arms,
            dim=dim,
            decisions=np.zeros(paths, dtype=np.int64),
            root=np.stack([blank(paths, dim, penalty)] * levels, axis=1),
            x=np.zeros((paths, levels, 16, dim)),
            y=np.zeros((paths, levels, 16)),
            count=np.zeros((paths, levels), dtype=np.int64),
            moment=np.zeros((paths, levels, dim)),
            settled=np.zeros((paths, levels)),
            longest=np.zeros((paths, levels)),
        )

    def unsettled(self, paths: Index, level: Index | int) -> tuple[Array, Array]:
        """Return arms and rewards that are not settled, padded with zero rewards.

        Their shapes are (paths, most, d) and (paths, most).
        """
        used = int(self.count[paths, level].max(initial=0))
        y = self.y[paths, level, :used]
        loose = np.abs(y) > self.settled[paths, level][:, None]
        row, place = np.nonzero(loose)
        counts = loose.sum(axis=1)
        column = np.arange(len(row)) - (counts.cumsum() - counts)[row]
        found = np.zeros((len(y), int(counts.max(initial=0))))
        arms = np.zeros((*found.shape, self.dim))
        found[row, column] = y[row, place]
        arms[row, column] = self.x[paths, level, :used][row, place]
        return arms, found

    def update(
        self,
        paths: Index,
        level: Index,
        x: Array,
        y: Array,
        safe: Callable[[Array], Array],
    ) -> None:
        """Add a sample to a level of each path.

        `safe` tells from the largest eigenvalue of A⁻¹ which rewards, at arms of norm one, no
        truncation can touch from now on.
        """
        at = paths, level
        root = self.root[at]
        absorb(root, x, np.empty((len(x), 0)))
        self.root[at] = root
        if self.count[at].max(initial=0) == self.y.shape[2]:
            self.x = np.concatenate([self.x, np.zeros_like(self.x)], axis=2)
            self.y = np.concatenate([self.y, np.zeros_like(self.y)], axis=2)
        place = self.count[at]
        self.x[*at, place], self.y[*at, place] = x, y
        self.count[at] += 1
        length = np.sqrt(np.vecdot(x, x))
        grown = length > self.longest[at]
        self.longest[at] = np.maximum(self.longest[at], length)
        # Longer arms may unsettle what was settled: start again from nothing.
        self.settled[at] = np.where(grown, 0.0, self.settled[at])
        self.moment[at] = np.where(grown[:, None], 0.0, self.moment[at])
        small = ~grown & (np.abs(y) <= self.settled[at])
        self.moment[at] += np.where(small, y, 0.0)[:, None] * x
        self._settle(paths, level, safe)

    def _settle(self, paths: Index, level: Index, safe: Callable[[Array], Array]) -> None:
        """Settle what has become small, now and then."""
        due = (self.count[paths, level] & (self.count[paths, level] - 1) == 0) | (
            self.count[paths, level] % 16 == 0
        )
        paths, level = paths[due], level[due]
        top: Array = np.linalg.norm(self.root[paths, level], 2, axis=(1, 2)) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = safe(top) / self.longest[paths, level]
        bound = np.where(np.isnan(bound), 0.0, bound)
        arms, y = self.unsettled(paths, level)
        ripe = np.where(np.abs(y) <= bound[:, None], y, 0.0)
        self.moment[paths, level] += np.vecmat(ripe, arms)
        self.settled[paths, level] = np.maximum(self.settled[paths, level], bound)
