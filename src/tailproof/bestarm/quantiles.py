"""Confidence intervals for a quantile of each arm, which best-arm policies for quantiles share."""

import math
from abc import ABC
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tailproof.bestarm.base import Answer, FixedConfidence
from tailproof.checks import Fraction, whole
from tailproof.policies.base import Array, Index
from tailproof.policies.state.ranked import Sorted
from tailproof.stats.order_statistics import log_mixture

__all__ = ["Intervals", "QuantileBestArm"]


@dataclass(eq=False)
class Intervals(Answer):
    """Upper bounds on quantiles of the rewards (`up`) and of the negative rewards (`down`).

    Together they take 32 bytes per decision. `active` marks the arms that are not eliminated.
    """

    up: Sorted
    down: Sorted
    active: NDArray[np.bool_]

    @property
    def upper(self) -> Array:
        """U of each arm, of shape (paths, K)."""
        return self.up.bound

    @property
    def lower(self) -> Array:
        """L of each arm, of shape (paths, K)."""
        return -self.down.bound


@dataclass(frozen=True, kw_only=True)
class QuantileBestArm(FixedConfidence[Intervals], ABC):
    """Identify the arm with the largest `quantile` π, for rewards of any law."""

    quantile: Fraction = 0.5

    @property
    def invariances(self) -> frozenset[str]:
        """No decision changes under any strictly increasing map."""
        return frozenset({"increasing"})

    def _init(self, paths: int, arms: int, dim: int) -> Intervals:
        whole("arms", arms, at_least=2)
        up, down = Sorted.start(paths, arms, dim), Sorted.start(paths, arms, dim)
        decisions, answer = np.zeros(paths, dtype=np.int64), np.full(paths, -1)
        active = np.ones((paths, arms), dtype=bool)
        return Intervals(
            arms=arms, dim=dim, decisions=decisions, answer=answer, up=up, down=down, active=active
        )

    def _update(self, state: Intervals, chosen: Index, y: Array) -> None:
        """Learn one reward in each path."""
        f = np.full(state.paths, math.log(state.arms / self.delta))
        for side, x, level in ((state.up, y, self.quantile), (state.down, -y, 1 - self.quantile)):
            side.update(chosen, x, f, partial(log_mixture, quantile=level))
            side.decisions += 1
