"""Elimination of arms in phases, which RAGE and XY-adaptive share."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from tailproof.bestarm.base import Active, Race, lead
from tailproof.bestarm.design import pairs
from tailproof.policies.base import Array, Index
from tailproof.policies.state.base import Rule

__all__ = ["Phases", "active_pairs"]


@dataclass(eq=False)
class Phases(Race):
    """The regression of the current phase, the arms not yet eliminated, and the phase, from 1."""

    active: Active
    phase: Annotated[Index, Rule(blank=1)]

    def finish(self, arms: Array, paths: Index, factor: Array, tolerance: float) -> None:
        """End a phase in some paths: eliminate arms, recommend if the best is clear, start over.

        An arm is eliminated if another has an estimate larger by `factor` ‖x' − x‖ or more.
        """
        x, kept = arms[paths], self.active[paths]
        count = x.shape[1]
        y = (x[:, None, :, :] - x[:, :, None, :]).reshape(len(paths), count**2, -1)
        values, norm = self.least_squares(paths, np.concatenate([x, y], axis=1))
        lag, width = (part[:, count:].reshape(-1, count, count) for part in (values, norm))
        values, width = values[:, :count], factor[:, None, None] * width
        beaten = (lag >= width) & (lag > 0) & kept[:, None, :]
        kept = kept & ~beaten.any(axis=2)
        leader = lead(np.where(kept, values, -np.inf))
        rows = np.arange(len(paths))
        doubt = (lag + width)[rows, leader]
        clear = ((doubt <= tolerance) | ~kept).all(axis=1) | (kept.sum(axis=1) == 1)
        sure, named = np.zeros(self.paths, dtype=bool), np.zeros(self.paths, dtype=np.int64)
        sure[paths], named[paths] = clear, leader
        self.settle(sure, named)
        self.active[paths] = kept
        self.phase[paths] += 1
        self.restart(paths)


def active_pairs(arms: Array, active: NDArray[np.bool_]) -> Array:
    """Return the differences of active arms, and zero for the other pairs."""
    i, j, y = pairs(arms)
    return y * (active[:, i] & active[:, j])[:, :, None]
