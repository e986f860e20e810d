"""Robust means of every arm, each at the confidence δ = t⁻² of the next decision.

Each is exact at every decision, yet reads old samples only when it must. Catoni's mean, which
always must, has its own file.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from tailproof.chunking import chunks
from tailproof.policies.state.base import Array, Buffer, Counts, Index
from tailproof.policies.state.counts import ROOM, History

__all__ = ["MediansOfMeans", "RobustMeans", "TruncatedMeans"]


@dataclass(eq=False)
class RobustMeans(History):
    """A history, and the means of its arms at the next decision (`means`), of shape (paths, K)."""

    means: Array
    first: ClassVar[int] = 1
    """The number of pulls that a mean needs."""

    @classmethod
    def start(cls, paths: int, arms: int, dim: int, **more: Any) -> Self:
        """Return the state before any decision."""
        return super().start(paths, arms, dim, means=np.zeros((paths, arms)), **more)

    def needed(self, log: Array) -> Array:
        """Return the number of samples that a mean needs, where `log` is ln(1/δ)."""
        return np.full_like(log, self.first)

    @staticmethod
    @abstractmethod
    def width(n: Index, log: Array, epsilon: float, v: float) -> Array:
        """Return the width of a mean of n samples at confidence 1 − δ."""

    @abstractmethod
    def update(self, chosen: Index, rewards: Array, epsilon: float, v: float) -> None:
        """Learn one reward in each path, and compute the means of the next decision."""

    def _next_log(self) -> Array:
        """Return ln(1/δ) = ln t² of the next decision, of shape (paths, 1)."""
        return 2 * np.log(self.decisions[:, None] + 2)


@dataclass(eq=False)
class TruncatedMeans(RobustMeans):
    """(1/n) Σ_j X_j 1{|X_j| ≤ (v j/ln(1/δ))^{1/(1+ε)}}, where v bounds E|X|^{1+ε}.

    X_j counts until ln(1/δ) exceeds its life v j/|X_j|^{1+ε}, and never again, so a path reads old
    samples only when a life ends. Few do: about ln(1/δ)/j of the j-th samples.

    Attributes
    ----------
    sums, soonest : arrays of shape (paths, K) and (paths,)
        The sum of the samples that count, and the shortest of their lives.
    lives : array of shape (paths, room)
    """

    sums: Array
    soonest: Array
    lives: Buffer

    @classmethod
    def start(cls, paths: int, arms: int, dim: int, **more: Any) -> Self:
        """Return the state before any decision."""
        more |= {"sums": np.zeros((paths, arms)), "soonest": np.full(paths, np.inf)}
        return super().start(paths, arms, dim, lives=np.zeros((paths, ROOM)), **more)

    @staticmethod
    def width(n: Index, log: Array, epsilon: float, v: float) -> Array:
        """Return the width of a mean of n samples at confidence 1 − δ."""
        width: Array = 4 * v ** (1 / (1 + epsilon)) * (log / n) ** (epsilon / (1 + epsilon))
        return width

    def update(self, chosen: Index, rewards: Array, epsilon: float, v: float) -> None:
        """Learn one reward in each path, and compute the means of the next decision."""
        x, log, path = self.append(chosen, rewards), self._next_log(), np.arange(self.paths)
        with np.errstate(divide="ignore", over="ignore"):
            life = v * self.counts[path, chosen] / np.abs(x) ** (1 + epsilon)
        self.lives[path, self.decisions] = life
        counts = life >= log[:, 0]
        self.sums[path, chosen] += np.where(counts, x, 0.0)
        self.soonest = np.minimum(self.soonest, np.where(counts, life, np.inf))
        (rows,) = np.nonzero(self.soonest < log[:, 0])
        if len(rows):
            lives = self.lives[rows, self.used]
            alive = lives >= log[rows]
            place = np.arange(len(rows))[:, None] * self.arms + self.pulled[rows, self.used]
            kept = self.samples[rows, self.used][alive]
            sums = np.bincount(place[alive], kept, minlength=len(rows) * self.arms)
            self.sums[rows] = sums.reshape(-1, self.arms)
            self.soonest[rows] = np.where(alive, lives, np.inf).min(axis=1)
        self.means = self.sums / np.maximum(self.counts, 1)

    def _grow(self) -> None:
        super()._grow()
        self.lives = np.concatenate([self.lives, np.zeros_like(self.lives)], axis=1)


@dataclass(eq=False)
class MediansOfMeans(RobustMeans):
    """The median of k means of N samples, k = ⌊min(8 ln(e^⅛/δ), n/2)⌋ and N = ⌊n/k⌋.

    v bounds E|X − μ|^{1+ε}. The blocks change only with k or N: at every second pull of an arm at
    first, at every k-th pull later. `blocks` and `length`, of shape (paths, K), hold k and N.
    """

    blocks: Counts
    length: Counts
    first: ClassVar[int] = 2

    @classmethod
    def start(cls, paths: int, arms: int, dim: int, **more: Any) -> Self:
        """Return the state before any decision."""
        blocks, length = np.zeros((2, paths, arms), dtype=np.int64)
        return super().start(paths, arms, dim, blocks=blocks, length=length, **more)

    @staticmethod
    def width(n: Index, log: Array, epsilon: float, v: float) -> Array:
        """Return the width of a mean of n samples at confidence 1 − δ."""
        rate = 16 * (1 / 8 + log) / n
        width: Array = (12 * v) ** (1 / (1 + epsilon)) * rate ** (epsilon / (1 + epsilon))
        return width

    def update(self, chosen: Index, rewards: Array, epsilon: float, v: float) -> None:
        """Learn one reward in each path, and compute the means of the next decision."""
        self.append(chosen, rewards)
        n = self.counts
        blocks = np.minimum(1 + 8 * self._next_log(), n / 2).astype(np.int64)
        length = n // np.maximum(blocks, 1)
        stale = (blocks > 0) & ((blocks != self.blocks) | (length != self.length))
        self.blocks, self.length = blocks, length
        path, arm = np.nonzero(stale)
        for part in chunks(len(path), self.used.stop):
            self._refresh(path[part], arm[part])

    def _refresh(self, path: Index, arm: Index) -> None:
        at = path, arm
        n, k, length = (a[at][:, None] for a in (self.counts, self.blocks, self.length))
        samples, given = self.given_by(path, arm)
        block = np.arange(int(k.max()) + 1)
        begun: Index = np.minimum(block, k)
        edges = np.cumsum(n)[:, None] - n + begun * length
        sums = np.add.reduceat(np.append(samples[given], 0.0), edges.ravel())
        means = np.where(block < k, sums.reshape(edges.shape) / length, np.inf)
        means.sort(axis=1)
        middle = np.take_along_axis(means, np.concatenate([(k - 1) // 2, k // 2], axis=1), axis=1)
        self.means[at] = middle.mean(axis=1)
