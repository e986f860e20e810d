"""Arms whose own rewards may lie in two clusters: a second mean, and when it is to be believed."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailproof.policies.state.base import ONE, Array, Index, Rule, flat_index
from tailproof.policies.state.student_fit import StudentFit

__all__ = ["ArmClusters"]

_SIZES = (5, 6, 8, 10, 13, 16, 20, 25, 32)
"""Numbers of rewards of an arm at which its clusters are looked for: most arms are dropped at 5 to
13. The last is the number of first rewards that are kept."""
_KEPT = _SIZES[-1]
_LOOKS = np.isin(np.arange(_KEPT + 2), _SIZES)
_CUTS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
"""Where the sorted rewards of an arm are split in two."""
_ROUNDING = 1e-9
"""Added to ratios that rounded rewards may have, so that rounding does not decide."""
_SEPARATED = 2.2 + _ROUNDING
"""Half the distance of two clusters in units of the wider one's median deviation from its median:
the halves of a normal sample have 1.7, the halves of a uniform one 2."""
_BETWEEN, _EMPTY = 1 / 3 + _ROUNDING, 0.09
"""Two clusters have less than this share of the rewards between them, nearer to their middle than
a third of the way to either; a normal law has 0.18 there."""
_TAIL, _FAR = 0.25, 2 + _ROUNDING
"""At most this share of a cluster's rewards are twice as far from the middle as its centre is, or
farther: 0.07 of a normal cluster that is just separate, half of a heavy tail."""
_NARROW, _WIDE = 0.75 + _ROUNDING, 1.5 + _ROUNDING
"""Where Huber's mean clips: in interquartile ranges, or in half distances of two clusters."""
_AGREE = 3.0
"""Standard errors by which both means may differ before Huber's alone counts."""
_BELIEVED = 16
"""Rewards of an arm before that."""
_UNEVEN = 4.0
"""What the squared difference of the rewards above and below the middle may be, in rewards, as of
two standard deviations: both clusters of a symmetric law weigh the same, and lies are few."""
_LUCK = 3.0
"""Scales by which an arm may be better than its first rewards say, if they may all be from one
cluster: scales of the noise now or when the last of them came, if that was quieter."""
_STEPS = 4
"""Of Newton's method for Huber's mean: each clips fewer rewards that are well inside."""
# the columns of `centres`
_TWO, _MEAN, _REACH, _INSIDE, _SQUARES, _STRENGTH, _MIDDLE, _GAP, _NEAR = range(9)
_ABOVE, _HIGH, _LOW = range(9, 12)


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
    seen, closed : arrays of shape (paths, d)
        The rewards of each arm that were looked at, and 1 where no more are: the first 32 showed
        one cluster, or a vector that was pulled was no unit vector.
    last_scale : array of shape (paths, d)
        The scale of the noise when the last of these rewards came.
    centres : array of shape (paths, d, 12)
        For each arm 1 if its rewards show two clusters; Huber's mean, where it clips, how many
        rewards are inside, and the sum of squares of the clipped deviations; how separate two
        clusters are, their middle, half their distance; how many rewards are near the middle, above
        it, and beyond the upper and the lower cluster.
    """

    early: Annotated[Array, Rule(("dim", _KEPT), finite=True)]
    seen: Annotated[Index, Rule(("dim",), least=0)]
    closed: Annotated[Index, Rule(("dim",), least=0)]
    last_scale: Annotated[Array, Rule(("dim",), finite=True)]
    centres: Annotated[Array, Rule(("dim", 12), finite=True)]

    def update(self, arms: Array, chosen: Array, y: Array) -> None:
        """Learn from one pull in each path: `chosen` are the vectors, of shape (paths, d)."""
        super().update(arms, chosen, y)
        arm = chosen.argmax(axis=1)
        rows = np.flatnonzero(self.closed.take(flat_index(arm, self.dim)) == 0)
        if not len(rows):
            return
        unit = _unit(chosen[rows])
        if not unit.all():
            self.closed[rows[~unit]] = 1
            rows = rows[unit]
        arm = arm[rows]
        n = self.seen[rows, arm] + ONE
        self.seen[rows, arm] = n
        self.last_scale[rows, arm] = self.scale[rows]
        early = np.flatnonzero(n <= _KEPT)
        self.early[rows[early], arm[early], n[early] - 1] = y[rows[early]]
        apart = np.flatnonzero(self.centres[rows, arm, _STRENGTH] > _SEPARATED)
        if len(apart):
            self._learn_centre(rows[apart], arm[apart], y[rows[apart]])
        due = np.flatnonzero(_LOOKS[np.minimum(n, _KEPT + 1)])
        if len(due):
            self._look(rows[due], arm[due], n[due])

    def _learn_centre(self, rows: Index, arm: Index, y: Array) -> None:
        """Learn one reward of an arm of some paths, whose clusters are far apart."""
        at, n = self.centres[rows, arm], self.seen[rows, arm]
        off = y - at[:, _MEAN]
        clipped = np.minimum(np.maximum(off, -at[:, _REACH]), at[:, _REACH])
        at[:, _INSIDE] += clipped == off
        at[:, _SQUARES] += np.square(clipped)
        at[:, _MEAN] += clipped / np.maximum(at[:, _INSIDE], 1)
        at[:, _NEAR:] += np.stack(_sides(y - at[:, _MIDDLE], at[:, _GAP]), axis=1)
        at[:, _TWO] = _shown(at, n)
        self.centres[rows, arm] = at
        self.closed[rows, arm] = (at[:, _TWO] == 0) & (n >= _KEPT)

    def _look(self, rows: Index, arm: Index, n: Index) -> None:
        """Look for clusters in the first n rewards of an arm of some paths."""
        for size in np.unique(n):
            group = np.flatnonzero(n == size)
            row, which = rows[group], arm[group]
            at = np.zeros((len(group), self.centres.shape[2]))
            at[:, _MEAN:] = _look(np.sort(self.early[row, which, :size], axis=1))
            at[:, _TWO] = _shown(at, n[group])
            self.centres[row, which] = at
            self.closed[row, which] = (at[:, _TWO] == 0) & (size == _KEPT)

    def reconsider(
        self, mean: Array, width: Array, arms: Array, variance: Array, bonus: float
    ) -> tuple[Array, Array]:
        """Return means and widths of arms, others where rewards may lie in two clusters.

        With n < log₂(1 + t/K) rewards, all may be from one cluster, and the arm may be three scales
        better. With more, where two clusters show, Huber's mean counts too, and alone where the
        clusters are even and both means differ by three standard errors, less their difference in
        the median arm.
        """
        share = (self.decisions + 1) / arms.shape[1]
        few = (self.seen < np.log2(1 + share)[:, None]) & (self.seen > 0)
        two = self.centres[..., _TWO] > 0
        if not (few | two).any():
            return mean, width
        here, places = self.gap == 0, np.broadcast_to(np.arange(mean.shape[1]), mean.shape)
        if not _in_order(arms):
            here, places = here & _unit(arms).all(axis=1), arms.argmax(axis=2)
            few, two = (np.take_along_axis(marks, places, axis=1) for marks in (few, two))
        scale = np.sqrt(variance)
        if few.any():
            then = np.take_along_axis(self.last_scale, places, axis=1)
            lucky = _LUCK * np.minimum(self.scale[:, None], then) * np.maximum(scale, 1)
            width = np.where(few & here[:, None], np.maximum(width, lucky), width)
        rows = np.flatnonzero(two.any(axis=1) & here)
        if len(rows):
            mean = mean.copy()
            both = self._huber(
                rows, places[rows], scale[rows], mean[rows], width[rows], share[rows, None], bonus
            )
            mean[rows], width[rows] = both
        return mean, width

    def _huber(
        self,
        rows: Index,
        places: Index,
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
        at, n = (part[rows[:, None], places] for part in (self.centres, self.seen))
        n = np.maximum(n, 1)
        huber = at[..., _MEAN] - self.origin[rows, None]
        apart = np.zeros((len(rows), n.shape[1] + 1))
        apart[:, :-1] = np.where(n >= _SIZES[0], (huber - mean) / scale, 0)
        apart.sort(axis=1)
        huber -= _median(apart)[:, None] * scale
        error = np.sqrt(at[..., _SQUARES]) / np.maximum(at[..., _INSIDE], 1)
        free, log = np.maximum(n - 1, 1), bonus**2 * np.log1p(share / n)
        reach = error * np.sqrt(free * np.expm1(np.minimum(2 * log / free, 500)))
        even = np.square(2 * at[..., _ABOVE] - n) <= _UNEVEN * n
        instead = even & (n >= _BELIEVED) & (np.abs(huber - mean) > _AGREE * error)
        wins = (at[..., _TWO] > 0) & (instead | (huber + reach > mean + width))
        return np.where(wins, huber, mean), np.where(wins, reach, width)


def _shown(at: Array, n: Index) -> NDArray[np.bool_]:
    """Return whether arms with n rewards show two clusters, with next to nothing between them.

    Where one of them is a tail, Huber's mean would be that of the tail.
    """
    near, above, high, low = at[:, _NEAR:].T
    tails = (high <= _TAIL * above + 0.5) & (low <= _TAIL * (n - above) + 0.5)
    return np.asarray((at[:, _STRENGTH] > _SEPARATED) & (near <= _EMPTY * n + 0.5) & tails)


def _sides(off: Array, gap: Array) -> tuple[NDArray[np.bool_], ...]:
    """Return which rewards, by their distance from the middle, are near it, above, beyond."""
    return np.abs(off) < _BETWEEN * gap, off > 0, off > _FAR * gap, off < -_FAR * gap


def _in_order(arms: Array) -> bool:
    """Return whether every offer is the first unit vector, the second, and so on."""
    k, dim = arms.shape[1:]
    return k == dim and bool((arms == _eye(k)).all())


@lru_cache(maxsize=64)
def _eye(size: int) -> Array:
    eye = np.eye(size)
    eye.flags.writeable = False
    return eye


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
    sides = _sides(y - middle[:, None], gap[:, None])
    counts = (np.count_nonzero(side, axis=1) for side in sides)
    columns = (mean[:, 0], reach[:, 0], inside, squares, strength, middle, gap, *counts)
    return np.stack(columns, axis=1)


def _split(y: Array) -> tuple[Array, Array, Array]:
    """Return how separate two parts of sorted samples are at best, and the medians of both."""
    parts = _parts(y.shape[1])
    middle = (y[:, parts.middle[0]] + y[:, parts.middle[1]]) / 2
    off = np.abs(y[:, parts.values] - middle[..., None])
    off[:, parts.beyond] = np.inf
    off.sort(axis=2)
    row = np.arange(off.shape[1])
    width = (off[:, row, parts.half[0]] + off[:, row, parts.half[1]]) / 2
    low, high = np.split(middle, 2, axis=1)
    width = np.maximum(*np.split(width, 2, axis=1))
    strength = np.where(high > low, (high - low) / 2 / np.maximum(width, 1e-300), 0)
    best = np.arange(len(y)), strength.argmax(axis=1)
    values = 1 + np.count_nonzero(np.diff(y, axis=1), axis=1)
    # few different values are explained by rounding
    strength = np.where(3 * values <= y.shape[1], 0, np.minimum(strength[best], 1e100))
    return strength, low[best], high[best]


class _Parts(NamedTuple):
    """Where the lower parts of all splits of n sorted values are, then the upper parts.

    `values` has the shape (parts, n); positions `beyond` the end of a part count for nothing.
    `middle` are the two positions of its median among the values, `half` of any median in it.
    """

    values: Index
    beyond: NDArray[np.bool_]
    middle: Index
    half: Index


@lru_cache(maxsize=len(_SIZES))
def _parts(n: int) -> _Parts:
    sizes = np.unique([round(cut * n) for cut in _CUTS])
    sizes = sizes[np.minimum(sizes, n - sizes) >= 2]
    first = np.concatenate([0 * sizes, sizes])
    size = np.concatenate([sizes, n - sizes])
    values, half = first[:, None] + np.arange(n), np.stack([(size - 1) // 2, size // 2])
    return _Parts(np.minimum(values, n - 1), np.arange(n) >= size[:, None], first + half, half)


def _median(y: Array) -> Array:
    """Return the medians of sorted samples."""
    n = y.shape[1]
    return np.asarray((y[:, (n - 1) // 2] + y[:, n // 2]) / 2)
