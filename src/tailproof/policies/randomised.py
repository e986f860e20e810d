"""Optimism by a random amount that all arms share: the code of RevenueUCB and LinRevenueUCB."""

from abc import abstractmethod

import numpy as np
from scipy.special import erfc

from tailproof.chunking import chunks
from tailproof.policies.base import Array, Index, Policy, S, pick_largest

__all__ = ["Randomised", "shares_of_luck"]


class Randomised(Policy[S]):
    """Pull argmax_a mean_a + |Z| width_a, Z ~ N(0, 1) drawn once for all arms.

    A subclass says what mean and width are.
    """

    @abstractmethod
    def _lines(self, state: S, arms: Array) -> tuple[Array, Array]:
        """Return the mean and the width of every arm, of shape (paths, K) each."""

    def _choose(self, state: S, arms: Array, rng: np.random.Generator) -> Index:
        luck = np.abs(rng.standard_normal(state.paths))
        mean, width = self._lines(state, arms)
        return pick_largest(mean + luck[:, None] * width, rng)

    def _propensities(self, state: S, arms: Array) -> Array:
        mean, width = self._lines(state, arms)
        paths, k = mean.shape
        share = np.empty((paths, k))
        for rows in chunks(paths, k * k):
            share[rows] = shares_of_luck(mean[rows], width[rows])
        return share


def shares_of_luck(mean: Array, width: Array) -> Array:
    """Return P(mean_a + |Z| width_a is the largest of its row) for each arm a.

    As functions of |Z| these are lines. Each is above all others between two crossings, or nowhere;
    equal lines share their part.

    >>> shares_of_luck(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])).round(4).tolist()
    [[0.6827, 0.3173]]
    """
    steeper = width[:, :, None] - width[:, None, :]
    lead = mean[:, :, None] - mean[:, None, :]
    crossing = -lead / np.where(steeper == 0, 1.0, steeper)
    first = np.where(steeper > 0, crossing, 0.0).max(axis=2)
    last = np.where(steeper < 0, crossing, np.inf).min(axis=2)
    parallel = steeper == 0
    first = np.where((parallel & (lead < 0)).any(axis=2), np.inf, np.maximum(first, 0))
    root = np.sqrt(0.5)
    share = np.maximum(erfc(root * first) - erfc(root * np.maximum(last, 0)), 0)
    return np.asarray(share / np.count_nonzero(parallel & (lead == 0), axis=2))
