"""Optimism by a random amount that all arms share: RevenueUCB, LinRevenueUCB, LinStudentUCB."""

from abc import abstractmethod
from collections.abc import Callable

import numpy as np
from scipy.special import erfc

from tailproof.chunking import chunks
from tailproof.policies.base import Array, Index, Policy, S, pick_largest

__all__ = ["EXCLUDED", "Randomised", "shares_of_lines", "shares_of_luck"]
EXCLUDED = -1e300
"""The mean of an arm that only a look can choose: no multiple of a width makes up for it."""


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
        paths, k = mean.shape
        share = np.empty((paths, k))
        for rows in chunks(paths, k * k):
            share[rows] = shares_of_luck(mean[rows], width[rows])
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
    return shares_of_lines(mean, width, lambda z: np.asarray(erfc(root * z)))


def shares_of_lines(mean: Array, width: Array, beyond: Callable[[Array], Array]) -> Array:
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
