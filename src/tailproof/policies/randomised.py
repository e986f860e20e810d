"""Optimism by a random amount that all arms share.

The amount is |Z|, Z ~ N(0, 1), in RevenueUCB and LinRevenueUCB, and U ~ Uniform(0, 1) in UCB1 and
LinStudentUCB.
"""

from abc import abstractmethod
from collections.abc import Callable

import numpy as np
from scipy.special import erfc

from tailproof.chunking import chunks
from tailproof.policies.base import Array, Index, Policy, S, pick_largest

__all__ = [
    "EXCLUDED",
    "TIE",
    "Randomised",
    "draw_index",
    "shares_by_uniform",
    "shares_of_luck",
    "tied",
]
EXCLUDED = -1e300
"""The mean of an arm that only a look can choose: no multiple of a width makes up for it."""
TIE = 1e-6
"""Indices closer than this, in units of the width, are equal: rounding comes up to 1e-9 of it."""


class Randomised(Policy[S]):
    """Pull argmax_a mean_a + |Z| width_a, Z ~ N(0, 1) drawn once for all arms, or take a look.

    A subclass defines means, widths, and the probabilities of looks, which go to arms whatever
    their index.
    """

    @abstractmethod
    def _lines(self, state: S, arms: Array) -> tuple[Array, Array, Array | None]:
        """Return mean, width and the probability of a look at every arm, of shape (paths, K) each.

        The last is None where there are no looks.
        """

    def _choose(self, state: S, arms: Array, rng: np.random.Generator) -> Index:
        luck, place = np.abs(rng.standard_normal(state.paths)), rng.random(state.paths)
        mean, width, looks = self._lines(state, arms)
        chosen = pick_largest(mean + luck[:, None] * width, rng)
        if looks is None:
            return chosen
        upto = looks.cumsum(axis=1)
        looked: Index = np.count_nonzero(upto <= place[:, None], axis=1)
        # the probabilities of looks at all arms may miss 1 by rounding
        looked = np.minimum(looked, looks.shape[1] - 1)
        return np.where(place < np.minimum(upto[:, -1], 1 - 1e-12), looked, chosen)

    def _propensities(self, state: S, arms: Array) -> Array:
        mean, width, looks = self._lines(state, arms)
        share = shares_of_luck(mean, width)
        if looks is None:
            return share
        rest = 1 - looks.sum(axis=1, keepdims=True)
        return np.asarray(looks + np.where(rest > 1e-12, rest, 0) * share)


def shares_of_luck(mean: Array, width: Array) -> Array:
    """Return P(mean_a + |Z| width_a is the largest of its row) for each arm a, Z ~ N(0, 1).

    >>> shares_of_luck(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])).round(4).tolist()
    [[0.6827, 0.3173]]
    """
    root = np.sqrt(0.5)
    return _shares(mean, width, lambda z: np.asarray(erfc(root * z)))


def draw_index(mean: Array, width: Array, rng: np.random.Generator) -> Array:
    """Return the index mean_a + U width_a of every arm, U ~ Uniform(0, 1) drawn once for a row."""
    luck = rng.random(len(mean))[:, None]
    return tied(mean + luck * width, width)


def shares_by_uniform(mean: Array, width: Array) -> Array:
    """Return the probability that `draw_index` is largest at each arm, for finite lines.

    >>> shares_by_uniform(np.array([[1.0, 0.0]]), np.array([[0.0, 4.0]])).tolist()
    [[0.25, 0.75]]
    """
    return _shares(mean, width, lambda u: np.asarray(np.maximum(1 - u, 0)), tie=TIE)


def tied(index: Array, width: Array) -> Array:
    """Return the indices; arms within rounding of the largest index get the largest index."""
    best, tie = index.max(axis=1, keepdims=True), TIE * width.max(axis=1, keepdims=True)
    return np.where(index >= best - tie, best, index)


def _shares(mean: Array, width: Array, beyond: Callable[[Array], Array], tie: float = 0.0) -> Array:
    """Return `_shares_of_lines`; lines that differ by at most `tie` widths are equal."""
    paths, k = mean.shape
    share = np.empty((paths, k))
    for rows in chunks(paths, k * k):
        lines = mean[rows], width[rows]
        share[rows] = _shares_of_lines(*(_alike(*lines, tie) if tie else lines), beyond)
    return share


def _alike(mean: Array, width: Array, tie: float) -> tuple[Array, Array]:
    """Return the lines, made equal for arms that differ by rounding only."""
    least = tie * width.max(axis=1)[:, None, None]
    close = np.abs(mean[:, :, None] - mean[:, None, :]) <= least
    close &= np.abs(width[:, :, None] - width[:, None, :]) <= least
    first = close.argmax(axis=2)
    return np.take_along_axis(mean, first, axis=1), np.take_along_axis(width, first, axis=1)


def _shares_of_lines(mean: Array, width: Array, beyond: Callable[[Array], Array]) -> Array:
    """Return P(mean_a + X width_a is the largest of its row) for each arm a and a random X ≥ 0.

    `beyond` returns P(X > x). As functions of X the indices are lines. Each line is above all
    others between two crossings, or nowhere; equal lines share their part.
    """
    steeper = width[:, :, None] - width[:, None, :]
    lead = mean[:, :, None] - mean[:, None, :]
    crossing = -lead / np.where(steeper == 0, 1.0, steeper)
    first = np.where(steeper > 0, crossing, 0.0).max(axis=2)
    last = np.where(steeper < 0, crossing, np.inf).min(axis=2)
    parallel = steeper == 0
    first = np.where((parallel & (lead < 0)).any(axis=2), np.inf, np.maximum(first, 0))
    share = np.maximum(beyond(first) - beyond(np.maximum(last, 0)), 0)
    return np.asarray(share / np.count_nonzero(parallel & (lead == 0), axis=2))
