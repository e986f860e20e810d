"""Two independent rewards for every pull of an arm, most of them sorted by size."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tailproof.chunking import chunks
from tailproof.policies.state.base import ROOM, ArmCounts, Array, FiniteBuffer, Index
from tailproof.policies.state.counts import RewardHistory, clip

__all__ = ["PairedRewards", "Unsorted"]

_SMALLEST = 1e-150


class Unsorted(NamedTuple):
    """The pairs that are not sorted yet, of shape (paths, n), and the cells of their arms."""

    place: Index
    x: Array
    other: Array


@dataclass(eq=False)
class PairedRewards(RewardHistory):
    """Pairs of rewards (X, X') of every arm, and sums over the small ones of either.

    The first columns of each row are sorted by arm and then by size, with running sums for each
    arm: there a binary search finds any sum over small rewards. The last columns, at most about
    2√n after n decisions, are in the order of decisions, and sums read all of them.

    Attributes
    ----------
    samples, others : arrays of shape (paths, room)
        X and X'², sorted separately; `pulled` holds the arms of both.
    sums, squares, other_sums : arrays of shape (paths, room)
        In sorted columns, the sums of X, X² and X'² of the arm from its first column to this one.
    ordered, nonzero : arrays of shape (paths, K)
        The number of pairs in sorted columns, and of nonzero X'.
    """

    others: FiniteBuffer
    sums: FiniteBuffer
    squares: FiniteBuffer
    other_sums: FiniteBuffer
    ordered: ArmCounts
    nonzero: ArmCounts

    def add(self, chosen: Index, pair: Array) -> None:
        """Store a pair of rewards, of shape (paths, 2), of the chosen arm of each path."""
        path, kept = np.arange(self.paths), np.where(np.abs(pair) < _SMALLEST, 0.0, clip(pair))
        self.append(chosen, kept[:, 0])
        self.others[path, self.decisions] = kept[:, 1] ** 2
        self.nonzero[path, chosen] += kept[:, 1] != 0
        n = self.decisions + 1
        (due,) = np.nonzero((n - self.ordered.sum(axis=1)) ** 2 >= 4 * n + ROOM**2)
        for part in chunks(len(due), 16 * self.used.stop):
            self._sort(due[part])

    def unsorted(self) -> Unsorted:
        """Return the pairs that are not sorted yet, for `small` and `small_others`."""
        begin, end = self.ordered.sum(axis=1)[:, None], self.decisions[:, None] + 1
        column = begin + np.arange(int((end - begin).max()))
        at = self._row + np.minimum(column, end - 1)
        arm = np.where(column < end, self.pulled.take(at), self.arms)  # K for none
        place = np.arange(self.paths)[:, None] * (self.arms + 1) + arm
        return Unsorted(place, self.samples.take(at), self.others.take(at))

    def small(self, unsorted: Unsorted, bound: Array) -> tuple[Array, Array]:
        """Return Σ X and Σ X² over |X| ≤ bound for every arm, of shape (paths, K)."""
        last, some = self._last(self.samples, bound)
        arms, x = self._inside(unsorted.place, unsorted.x, bound)
        total = np.where(some, self.sums.take(last), 0.0) + self._total(arms, x)
        square = np.where(some, self.squares.take(last), 0.0) + self._total(arms, x**2)
        return total, square

    def small_others(self, unsorted: Unsorted, bound: Array) -> tuple[Array, Array]:
        """Return Σ 1 and Σ X'² over X'² ≤ bound for every arm, of shape (paths, K)."""
        last, some = self._last(self.others, bound)
        arms, other = self._inside(unsorted.place, unsorted.other, bound)
        before = self.ordered.cumsum(axis=1) - self.ordered
        count = last + 1 - self._row - before + self._total(arms, np.ones_like(other))
        return count, np.where(some, self.other_sums.take(last), 0.0) + self._total(arms, other)

    @property
    def _row(self) -> Index:
        """The start of each path in a flattened buffer, of shape (paths, 1)."""
        return np.asarray(np.arange(self.paths)[:, None] * self.samples.shape[1])

    def _last(self, row: Array, bound: Array) -> tuple[Index, Any]:
        """Return where each arm's last sorted value within the bound is, and if there is one."""
        end = self._row + self.ordered.cumsum(axis=1)
        begin = end - self.ordered
        last, step = begin, 1 << int(self.ordered.max()).bit_length()
        while step := step >> 1:
            ahead = np.minimum(last + step, end)
            within = np.abs(row.take(ahead - 1, mode="wrap")) <= bound
            last = np.where(within, ahead, last)
        return last - 1, last > begin

    def _inside(self, place: Index, values: Array, bound: Array) -> tuple[Index, Array]:
        limit = np.pad(bound, ((0, 0), (0, 1)), constant_values=-1.0)
        inside = np.abs(values) <= limit.take(place)
        return place[inside], values[inside]

    def _total(self, place: Index, values: Array) -> Array:
        """Return the sums of every arm, added in order so that padding changes no bit."""
        size = self.arms + 1
        total = np.bincount(place, values, minlength=self.paths * size)
        return np.asarray(total, dtype=np.float64).reshape(-1, size)[:, :-1]

    def _sort(self, rows: Index) -> None:
        """Sort all columns of some paths by arm and then by size, and compute running sums."""
        at = rows, self.used
        arm = np.where(self.pulled[at] < 0, self.arms, self.pulled[at])
        order = np.argsort(arm + 1j * np.abs(self.samples[at]), axis=1, kind="stable")
        x = np.take_along_axis(self.samples[at], order, axis=1)
        second = np.sort(arm + 1j * self.others[at], axis=1, kind="stable")
        arm, other = second.real, second.imag
        sums = np.zeros((3, *x.shape))
        for k in range(self.arms):
            of_arm = arm == k
            for total, values in zip(sums, (x, x**2, other), strict=True):
                total += np.where(of_arm, np.where(of_arm, values, 0.0).cumsum(axis=1), 0.0)
        self.samples[at], self.others[at] = x, other
        self.pulled[at] = np.where(arm < self.arms, arm, -1)
        self.sums[at], self.squares[at], self.other_sums[at] = sums
        self.ordered[rows] = self.counts[rows]
