"""Order statistics of every arm: medians, and bounds on a quantile, exact or from a sketch."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tailproof.policies.state.base import (
    ArmBounds,
    ArmCounts,
    ArmValues,
    Array,
    Buffer,
    Index,
    Rule,
)
from tailproof.policies.state.counts import Counted, RewardHistory

__all__ = ["ExactBounds", "Medians", "QuantileBounds", "SketchedBounds"]

Cells = tuple[Index, Index]
"""The indices of some paths, and of one arm in each."""

_WIDTH = 64  # of a window
_COLUMNS = np.arange(_WIDTH)
_HERE_AND_ABOVE = np.array([[0], [1]])


@dataclass(eq=False)
class QuantileBounds(Counted):
    """The rank J of the order statistic that bounds each arm's quantile, and its value.

    J is the least rank whose evidence reaches f. A pull moves it by one at most and a growing f
    moves it rarely, so it is updated step by step and never searched for.

    Of shape (paths, K), `rank` is J, or n + 1 where no rank is high enough, `limit` the evidence
    at J, which holds as long as f stays below it, and `bound` the reward of rank J or +inf.
    """

    rank: Annotated[Index, Rule(("arms",), blank=1, least=0)]
    limit: ArmBounds
    bound: ArmBounds

    def update(
        self, chosen: Index, y: Array, f: Array, evidence: Callable[[Index, Index], Array]
    ) -> None:
        """Learn one reward in each path; `f` is the evidence that the next decision requires."""
        at: Cells = (np.arange(self.paths), chosen)
        self._insert(at, y)
        moved = [at]
        self._climb(at, f, evidence)
        while np.count_nonzero(short := self.limit < f[:, None]):
            path, arm = np.nonzero(short)
            self._climb((path, arm), f[path], evidence)
            moved.append((path, arm))
        for cells in moved:
            self.bound[cells] = self._read(*cells)

    def _climb(self, at: Cells, f: Array, evidence: Callable[[Index, Index], Array]) -> None:
        """Raise J by one where its evidence is below f."""
        n, ranks = self.counts[at], self.rank[at] + _HERE_AND_ABOVE
        here, above = np.where(ranks > n, np.inf, evidence(n, np.minimum(ranks, n)))
        short = here < f
        self.rank[at] = ranks[0] + short
        self.limit[at] = np.where(short, above, here)

    @property
    def unbounded(self) -> NDArray[np.bool_]:
        """The arms with too few rewards for a bound, of shape (paths, K)."""
        return self.rank > self.counts

    @property
    def standing(self) -> Array:
        """How many arms have a smaller bound; K for arms without one, as a bound may be +inf."""
        smaller = (self.bound[:, :, None] > self.bound[:, None, :]).sum(axis=2)
        return np.where(self.unbounded, float(self.arms), smaller)

    @abstractmethod
    def _insert(self, at: Cells, y: Array) -> None:
        """Add one reward in each path, of the arm at (path, arm)."""

    @abstractmethod
    def _read(self, path: Index, arm: Index) -> Array:
        """Return the least reward known to have rank J or above, +inf where J is n + 1."""


@dataclass(eq=False)
class RankWindow(RewardHistory):
    """Every reward, and for each arm a window of its sorted rewards around the ranks that are read.

    A reward outside the window is only counted, and a full window drops the end that is farther
    from the rank. The rank leaves the window about once in a thousand pulls; only then are the
    arm's rewards sorted. Each path takes 16 bytes per decision and half a kilobyte per arm.

    `window`, of shape (paths, K, 64), holds sorted rewards, then +inf; `held` and `below`, of shape
    (paths, K), the number of rewards in the window and before it in order.
    """

    window: Annotated[Array, Rule(("arms", _WIDTH), blank=math.inf)]
    held: ArmCounts
    below: ArmCounts

    def add(self, at: Cells, y: Array, rank: Index) -> None:
        """Add one reward in each path; the window keeps the rewards around `rank`."""
        y = self.append(at[1], y)
        window, held, below = self.window[at], self.held[at], self.below[at]
        place = (window < y[:, None]).sum(axis=1)
        before = (y < window[:, 0]) & (below > 0)
        after = (place == held) & (below + held < self.counts[at] - 1)
        inside = ~before & ~after
        full = inside & (held == _WIDTH)
        first = full & (rank - below > _WIDTH // 2)  # drop the first, or else the last
        wider = np.concatenate([window, window[:, -1:]], axis=1)
        np.copyto(wider[:, 1:], window, where=place[:, None] <= _COLUMNS)
        wider[at[0], place] = y
        kept = np.where(first[:, None], wider[:, 1:], wider[:, :-1])
        self.window[at] = np.where(inside[:, None], kept, window)
        self.held[at] += inside & ~full
        self.below[at] += before | first

    def of_ranks(self, at: Cells, ranks: Index) -> Array:
        """Return the rewards of rising ranks, of shape (ranks, cells); rank n + 1 is +inf."""
        path, arm = at
        n, below, low, high = self.counts[at], self.below[at], ranks[0], ranks[-1]
        lost = (low <= below) | ((high > below + self.held[at]) & (high <= n))
        if np.count_nonzero(lost):
            there = path[lost], arm[lost]
            samples, given = self.given_by(*there)
            ordered = np.sort(np.where(given, samples, np.inf), axis=1)
            ordered = np.pad(ordered, ((0, 0), (0, _WIDTH)), constant_values=np.inf)
            below[lost] = np.maximum(low[lost] - _WIDTH // 2, 0)
            self.below[there] = below[lost]
            self.held[there] = np.minimum(n[lost] - below[lost], _WIDTH)
            places = below[lost, None] + _COLUMNS
            self.window[there] = np.take_along_axis(ordered, places, axis=1)
        place = np.minimum(ranks - below, _WIDTH) - 1
        return np.where(ranks > n, np.inf, self.window[path, arm, place])


@dataclass(eq=False)
class Medians(RankWindow):
    """The median of each arm's rewards, of shape (paths, K)."""

    medians: ArmValues

    def update(self, chosen: Index, y: Array) -> None:
        """Learn one reward in each path."""
        at: Cells = (np.arange(self.paths), chosen)
        middle = (self.counts[at] + 2 + _HERE_AND_ABOVE) // 2
        self.add(at, y, middle[0])
        low, high = self.of_ranks(at, middle)
        self.medians[at] = (low + high) / 2


@dataclass(eq=False)
class ExactBounds(QuantileBounds, RankWindow):
    """Every reward, of any size, and bounds that are exact."""

    largest: ClassVar[float] = math.inf
    samples: Buffer

    def _insert(self, at: Cells, y: Array) -> None:
        self.add(at, y, self.rank[at])

    def _read(self, path: Index, arm: Index) -> Array:
        return np.asarray(self.of_ranks((path, arm), self.rank[None, path, arm])[0])


@dataclass(eq=False)
class SketchedBounds(QuantileBounds):
    """Some rewards of every arm with bounds on their ranks, in memory that does not grow.

    Each kept value v has two numbers, a ≤ #{X ≤ v} and b ≥ #{X < v}. A new reward x adds one to
    the a of every v ≥ x and to the b of every v > x. Unless x is kept already it is added, with
    a = 1 + the a before it and b = the b after it. When the sketch is full, values are dropped; no
    a or b changes, so all stay valid. The quantile is bounded by the least kept v with a ≥ J: it is
    between X_(J) and X_(J+e), where e = b − the a before it is at most the number of rewards
    dropped in between.

    Among every other value v_i, the half with the smallest (b_{i+1} − a_{i−1})/(√n + |a_i − J|) is
    dropped, which leaves gaps in proportion to √n around rank J and to the distance farther away.
    The interval at rank J has a width of order √n anyway.

    `facts`, of shape (paths, K, 3, size), holds sorted values, their a and their b; unused columns
    hold +inf, n and n. `held`, of shape (paths, K), is the number of kept values.
    """

    facts: Annotated[Array, Rule(("arms", 3, 512))]
    held: ArmCounts

    @classmethod
    def start(cls, paths: int, arms: int, dim: int, size: int = 512, **arrays: Any) -> Self:
        """Return the state before any decision, with room for `size` values an arm."""
        facts = np.zeros((paths, arms, 3, size))
        facts[:, :, 0] = np.inf
        return super().start(paths, arms, dim, facts=facts, **arrays)

    @property
    def errors(self) -> Index:
        """The e of every arm's bound, of shape (paths, K); 0 where there is no bound."""
        _, a, b = np.moveaxis(self.facts, 2, 0)
        first = (a >= self.rank[..., None]).argmax(axis=-1, keepdims=True)
        before = np.where(first > 0, np.take_along_axis(a, first - 1, axis=-1), 0)
        error = (np.take_along_axis(b, first, axis=-1) - before)[..., 0]
        return np.where(self.unbounded, 0, error).astype(np.int64)

    def _insert(self, at: Cells, y: Array) -> None:
        self.counts[at] += 1
        for path, arm, x in zip(*(column.tolist() for column in (*at, y)), strict=True):
            facts, held = self.facts[path, arm], int(self.held[path, arm])
            value, a, b = facts
            i = int(value[:held].searchsorted(x))
            if i == held or value[i] != x:
                facts[:, i + 1 :] = facts[:, i:-1]
                value[i], a[i] = x, a[i - 1] if i else 0
                self.held[path, arm] = held = held + 1
            a[i:] += 1
            b[i + 1 :] += 1
            if held == len(value):
                self._compress(path, arm)

    def _read(self, path: Index, arm: Index) -> Array:
        at = path.tolist(), arm.tolist(), self.rank[path, arm].tolist()
        last = self.facts.shape[-1] - 1  # always unused
        facts = ((self.facts[i, j], rank) for i, j, rank in zip(*at, strict=True))
        return np.array([value[min(a.searchsorted(rank), last)] for (value, a, _), rank in facts])

    def _compress(self, path: int, arm: int) -> None:
        _, a, b = facts = self.facts[path, arm]
        n, rank = self.counts[path, arm], self.rank[path, arm]
        i = np.arange(1, len(a) - 1, 2)
        scores = (b[i + 1] - a[i - 1]) / (math.sqrt(n) + np.abs(a[i] - rank))
        kept = np.delete(facts, i[np.argsort(scores, kind="stable")[: (len(i) + 1) // 2]], axis=1)
        facts[:] = np.array([[math.inf], [n], [n]])
        facts[:, : kept.shape[1]] = kept
        self.held[path, arm] = kept.shape[1]
