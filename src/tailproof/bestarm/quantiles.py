"""Confidence intervals for a quantile of each arm, which best-arm policies for quantiles share."""

import math
from abc import ABC
from dataclasses import dataclass
from functools import partial

import numpy as np

from tailproof.bestarm.base import Active, Answer, BestArm
from tailproof.checks import Fraction
from tailproof.policies.base import Array, Index, KArmed
from tailproof.policies.state.quantile_bounds import ExactBounds
from tailproof.stats.order_statistics import log_mixture

__all__ = ["Intervals", "QuantileBestArm"]


@dataclass(eq=False)
class Intervals(Answer):
    """Upper bounds on quantiles of the rewards (`up`) and of the negative rewards (`down`).

    Together they take 32 bytes per decision. `active` marks the arms that are not eliminated.
    """

    up: ExactBounds
    down: ExactBounds
    active: Active

    @property
    def upper(self) -> Array:
        """U of each arm, of shape (paths, K)."""
        return self.up.bound

    @property
    def lower(self) -> Array:
        """L of each arm, of shape (paths, K)."""
        return -self.down.bound


@dataclass(frozen=True, kw_only=True)
class QuantileBestArm(KArmed[Intervals], BestArm[Intervals], ABC):
    """Identify the arm with the largest `quantile` π, for rewards of any law."""

    quantile: Fraction = 0.5

    @property
    def invariances(self) -> frozenset[str]:
        """Nothing but the order of rewards matters."""
        return frozenset({"increasing"})

    def _init(self, paths: int, arms: int, dim: int) -> Intervals:
        up, down = (ExactBounds.start(paths, arms, dim) for _ in range(2))
        return Intervals.start(paths, arms, dim, up=up, down=down)

    def _add_rewards(self, state: Intervals, chosen: Index, y: Array) -> None:
        """Learn one reward in each path."""
        f = np.full(state.paths, math.log(state.arms / self.delta))
        for side, x, level in ((state.up, y, self.quantile), (state.down, -y, 1 - self.quantile)):
            side.update(chosen, x, f, partial(log_mixture, quantile=level))
            side.decisions += 1
