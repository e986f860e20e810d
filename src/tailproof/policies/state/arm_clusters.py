"""Arms whose own rewards may lie in two clusters: a second mean, and when it is to be believed."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from tailproof.policies.state.base import ONE, Array, Index, Rule
from tailproof.policies.state.student_fit import StudentFit

__all__ = ["ArmClusters"]

_KEPT = 32
"""First rewards of an arm that are kept, from which its clusters are learned."""
_FIRST, _AGAIN = 5, 1.2
"""Rewards of an arm at which its clusters are first looked for, and how many times more until they
are looked for again, at the next fit."""
_AT_ONCE = np.isin(np.arange(_KEPT + 1), (5, 6, 8, 10, 13))
"""Numbers of rewards at which they are looked for at once: most arms are dropped about then."""
_CUTS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""Where the sorted rewards of an arm are split in two."""
_SEPARATED = 2.2
"""Half the distance of two clusters in units of the wider one's median deviation from its median:
the halves of a normal sample have 1.7, the halves of a uniform one 2."""
_BETWEEN, _EMPTY = 1 / 3, 0.09
"""Two clusters have less than this share of the rewards between them, nearer to their middle than
a third of the way to either; a normal law has 0.18 there."""
_NARROW, _WIDE = 0.75, 1.5
"""Where Huber's mean clips: in interquartile ranges, or in half distances of two clusters."""
_AGREE = 3.0
"""Standard errors by which both means may differ before Huber's alone counts."""
_BELIEVED = 8
"""Rewards of an arm before that."""
_LUCK = 3.0
"""Scales by which an arm may be better than its first rewards say, if they may all be from one
cluster."""
_STEPS = 4
"""Of Newton's method for Huber's mean: each clips fewer rewards that are well inside."""
# the columns of `centres`
_N, _TWO, _SEEN, _MEAN, _REACH, _INSIDE, _SQUARES, _STRENGTH, _MIDDLE, _GAP, _NEAR = range(11)


@dataclass(eq=False)
class ArmClusters(StudentFit):
    """The fit, and Huber's mean of each arm, for arms that are unit vectors.

    A score that returns to zero takes one of two clusters for the arm's centre and the other for
    outliers, and the arm is dropped too soon to notice. Huber's mean is between them, and its
    standard error tells how little is known.

    Attributes
    ----------
    early : array of shape (paths, d, 32)
        The first rewards of each arm.
    centres : array of shape (paths, d, 11)
        For each arm the number of rewards, 1 if they show two clusters, and the number at the last
        look for them; Huber's mean, where it clips, how many rewards are inside, and the sum of
        squares of the clipped deviations; how separate two clusters are, their middle, half their
        distance, and how many rewards are near the middle.
    """

    early: Annotated[Array, Rule(("dim", _KEPT), finite=True)]
    centres: Annotated[Array, Rule(("dim", 11), finite=True)]

    def update(self, arms: Array, chosen: Array, y: Array) -> None:
        """Learn from one pull in each path: `chosen` are the vectors, of shape (paths, d)."""
        late = (self.decisions + 1 >= self.due) | (self.kept + 1 == self.rewards.shape[1])
        super().update(arms, chosen, y)
        arm = chosen.argmax(axis=1)
        seen = self.centres[np.arange(self.paths), arm, _TWO : _SEEN + 1]
        # an arm that showed one cluster in its first rewards is not looked at again
        rows = np.flatnonzero(_unit(chosen) & ((seen[:, 1] < _KEPT) | (seen[:, 0] > 0)))
        if len(rows):
            self._learn_centre(rows, arm[rows], y[rows])
        n = self.centres[np.arange(self.paths), arm, _N]
        soon = _AT_ONCE[np.minimum(n, _KEPT).astype(np.int64)]
        if soon.any() or late.any():
            self._look(np.flatnonzero(late | soon), late)

    def _learn_centre(self, rows: Index, arm: Index, y: Array) -> None:
        """Learn one reward of an arm of some paths."""
        at = self.centres[rows, arm]
        n = at[:, _N].astype(np.int64)
        early = np.flatnonzero(n < _KEPT)
        self.early[rows[early], arm[early], n[early]] = y[early]
        at[:, _N] += ONE
        off = y - at[:, _MEAN]
        clipped = np.minimum(np.maximum(off, -at[:, _REACH]), at[:, _REACH])
        at[:, _INSIDE] += clipped == off
        at[:, _SQUARES] += np.square(clipped)
        at[:, _MEAN] += clipped / np.maximum(at[:, _INSIDE], 1)
        at[:, _NEAR] += np.abs(y - at[:, _MIDDLE]) < _BETWEEN * at[:, _GAP]
        at[:, _TWO] = _shown(at)
        self.centres[rows, arm] = at

    def _look(self, rows: Index, late: NDArray[np.bool_]) -> None:
        """Look for clusters in the first rewards of arms that have enough new ones."""
        n, seen = np.minimum(self.centres[rows, :, _N], _KEPT), self.centres[rows, :, _SEEN]
        due = (n >= _FIRST) & ((n >= _AGAIN * seen) | (n == _KEPT)) & (seen < _KEPT)
        due = due & late[rows, None] | _AT_ONCE[n.astype(np.int64)] & (n > seen)
        for size in np.unique(n[due]).astype(np.int64):
            path, arm = np.nonzero(due & (n == size))
            path = rows[path]
            at = self.centres[path, arm]
            at[:, _SEEN] = size
            at[:, _MEAN:] = _look(np.sort(self.early[path, arm, :size], axis=1))
            at[:, _TWO] = _shown(at)
            self.centres[path, arm] = at

    def reconsider(
        self, mean: Array, width: Array, arms: Array, variance: Array, bonus: float
    ) -> tuple[Array, Array]:
        """Return means and widths of arms, others where rewards may lie in two clusters.

        With n < log₂(1 + t/K) rewards, all may be from one cluster, and the arm may be three scales
        better. With more, where two clusters show, Huber's mean counts too, and alone where both
        means differ by three standard errors, less their difference in the median arm.
        """
        n, two = self.centres[..., _N], self.centres[..., _TWO] > 0
        share = (self.decisions[:, None] + 1) / arms.shape[1]
        few = (n < np.log2(1 + share)) & (n > 0)
        marked = few | two
        if not marked.any():
            return mean, width
        rows = np.flatnonzero(marked.any(axis=1) & (self.gap == 0))
        if not len(rows) or not _unit(arms[rows]).all():
            return mean, width
        places = arms[rows].argmax(axis=2)
        scale = np.sqrt(variance[rows])
        lucky = _LUCK * self.scale[rows, None] * np.maximum(scale, 1)
        before = width[rows]
        width = width.copy()
        width[rows] = np.where(few[rows[:, None], places], np.maximum(before, lucky), before)
        some = two[rows].any(axis=1)
        rows, places, scale = rows[some], places[some], scale[some]
        if len(rows):
            mean = mean.copy()
            at = self.centres[rows[:, None], places]
            both = self._huber(at, rows, scale, mean[rows], width[rows], share[rows], bonus)
            mean[rows], width[rows] = both
        return mean, width

    def _huber(
        self,
        at: Array,
        rows: Index,
        scale: Array,
        mean: Array,
        width: Array,
        share: Array,
        bonus: float,
    ) -> tuple[Array, Array]:
        """Return means and widths of arms, replaced by Huber's where those count.

        Skew that all arms share moves one mean of each and not the other; their own difference in
        the median arm, or none, is taken away.
        """
        n = np.maximum(at[..., _N], 1)
        huber = at[..., _MEAN] - self.origin[rows, None]
        apart = np.zeros((len(rows), n.shape[1] + 1))
        apart[:, :-1] = np.where(n >= _FIRST, (huber - mean) / scale, 0)
        apart.sort(axis=1)
        huber -= _median(apart)[:, None] * scale
        error = np.sqrt(at[..., _SQUARES]) / np.maximum(at[..., _INSIDE], 1)
        free, log = np.maximum(n - 1, 1), bonus**2 * np.log1p(share / n)
        reach = error * np.sqrt(free * np.expm1(np.minimum(2 * log / free, 500)))
        instead = (n >= _BELIEVED) & (np.abs(huber - mean) > _AGREE * error)
        wins = (at[..., _TWO] > 0) & (instead | (huber + reach > mean + width))
        return np.where(wins, huber, mean), np.where(wins, reach, width)


def _shown(at: Array) -> NDArray[np.bool_]:
    """Return whether arms show two clusters, with next to nothing between them."""
    return np.asarray((at[:, _STRENGTH] > _SEPARATED) & (at[:, _NEAR] <= _EMPTY * at[:, _N] + 0.5))


def _unit(vectors: Array) -> NDArray[np.bool_]:
    """Return which vectors have a one and zeros."""
    flat = np.abs(vectors).sum(axis=-1) == 1
    return np.asarray(flat & (vectors.max(axis=-1) == 1))


def _look(y: Array) -> Array:
    """Return all columns but the first, for sorted samples of shape (samples, n)."""
    strength, low, high = _split(y)
    middle, gap = (low + high) / 2, (high - low) / 2
    low, high = (y[:, round(quarter * (y.shape[1] - 1))] for quarter in (0.25, 0.75))
    reach = np.maximum(_NARROW * (high - low), 1e-300)
    reach = np.where(strength > _SEPARATED, np.maximum(reach, _WIDE * gap), reach)[:, None]
    mean, n = _median(y)[:, None], y.shape[1]
    for _ in range(_STEPS):
        off = y - mean
        inside = np.count_nonzero(np.abs(off) <= reach, axis=1, keepdims=True)
        clipped = np.clip(off, -reach, reach).sum(axis=1, keepdims=True)
        mean = mean + clipped / np.maximum(inside, n / 8)
    off = y - mean
    inside = np.maximum(np.count_nonzero(np.abs(off) <= reach, axis=1), n / 8)
    squares = np.square(np.clip(off, -reach, reach)).sum(axis=1)
    near = np.count_nonzero(np.abs(y - middle[:, None]) < _BETWEEN * gap[:, None], axis=1)
    columns = (mean[:, 0], reach[:, 0], inside, squares, strength, middle, gap, near)
    return np.stack(columns, axis=1)


def _split(y: Array) -> tuple[Array, Array, Array]:
    """Return how separate two parts of sorted samples are at best, and the medians of both."""
    n = y.shape[1]
    best, low, high = np.zeros((3, len(y)))
    for size in sorted({round(cut * n) for cut in _CUTS}):
        if min(size, n - size) < 2:
            continue
        parts = y[:, :size], y[:, size:]
        a, b = (_median(part) for part in parts)
        width = np.maximum(_deviation(parts[0], a), _deviation(parts[1], b))
        strength = np.where(b > a, (b - a) / 2 / np.maximum(width, 1e-300), 0)
        better = strength > best
        best = np.where(better, strength, best)
        low, high = np.where(better, a, low), np.where(better, b, high)
    values = 1 + np.count_nonzero(np.diff(y, axis=1), axis=1)
    # few different values are explained by rounding
    return np.where(3 * values <= n, 0, np.minimum(best, 1e100)), low, high


def _median(y: Array) -> Array:
    """Return the medians of sorted samples."""
    n = y.shape[1]
    return np.asarray((y[:, (n - 1) // 2] + y[:, n // 2]) / 2)


def _deviation(y: Array, middle: Array) -> Array:
    """Return the median distance from the middle of each sample."""
    return _median(np.sort(np.abs(y - middle[:, None]), axis=1))
