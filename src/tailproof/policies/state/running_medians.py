"""The median of every arm, kept as rewards come."""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tailproof.policies.state.base import ArmCounts, ArmValues, Array, Index, Rule
from tailproof.policies.state.counts import History

__all__ = ["RunningMedians"]

_WIDTH = 64  # of the windows


@dataclass(eq=False)
class RunningMedians(History):
    """A history, and for each arm a window of sorted samples around its median.

    A sample beyond the window is only counted. The middle rank moves by half a place with each
    sample, so it seldom leaves the window, and only then a path looks back.

    Attributes
    ----------
    medians : array of shape (paths, K)
    window : array of shape (paths, K, 64)
        Sorted samples, then +inf.
    held, below : arrays of shape (paths, K)
        The samples in the window, and those before it.
    """

    medians: ArmValues
    window: Annotated[Array, Rule(("arms", _WIDTH), blank=math.inf)]
    held: ArmCounts
    below: ArmCounts

    def update(self, chosen: Index, rewards: Array) -> None:
        """Learn one reward in each path."""
        at = np.arange(self.paths), chosen
        x = self.append(chosen, rewards)
        n, window, held, below = self.counts[at], self.window[at], self.held[at], self.below[at]
        rank = (window < x[:, None]).sum(axis=1)
        before = (rank == 0) & (below > 0)
        after = (rank == held) & (below + held < n - 1)
        inside = ~before & ~after
        column = np.arange(_WIDTH)
        later = np.concatenate([window[:, :1], window[:, :-1]], axis=1)
        shifted = np.where(column > rank[:, None], later, window)
        shifted = np.where(column == rank[:, None], x[:, None], shifted)
        full = inside & (held == _WIDTH)
        window = np.where(inside[:, None], shifted, window)
        held, below = held + inside, below + before
        low, high = (n - 1) // 2, n // 2
        (lost,) = np.nonzero(full | (low < below) | (high >= below + held))
        if len(lost):
            samples, given = self.given_by(lost, chosen[lost])
            ordered = np.sort(np.where(given, samples, np.inf), axis=1)
            ordered = np.pad(ordered, ((0, 0), (0, _WIDTH)), constant_values=np.inf)
            below[lost] = np.maximum(low[lost] - _WIDTH // 4, 0)
            held[lost] = np.minimum(n[lost] - below[lost], _WIDTH // 2)
            places = below[lost, None] + column
            middle = np.take_along_axis(ordered, places, axis=1)
            window[lost] = np.where(column < held[lost, None], middle, np.inf)
        self.window[at], self.held[at], self.below[at] = window, held, below
        places = np.stack([low - below, high - below], axis=1)
        self.medians[at] = np.take_along_axis(window, places, axis=1).mean(axis=1)
