"""LinRevenueUCB: arms and visitors' features, with rewards mostly zero and wild otherwise."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tailproof.checks import Range
from tailproof.policies.base import Array, Index, View, picked
from tailproof.policies.randomised import Randomised
from tailproof.policies.state.ledger import Ledger

__all__ = ["LinRevenueUCB"]


@dataclass(frozen=True, kw_only=True)
class LinRevenueUCB(Randomised[Ledger]):
    """One regression an arm."""

    share: Annotated[float, Range(above=0.5, below=1)] = 0.99

    @property
    def view(self) -> View:
        """The numbers of the arms and one context for all."""
        return "context"

    def _init(self, paths: int, arms: int, dim: int) -> Ledger:
        return Ledger.start(paths, arms, dim)

    def _lines(self, state: Ledger, arms: Array) -> tuple[Array, Array]:
        mean, width = state.predict(arms)
        blind = state.bought.max(axis=1) == 0
        if np.count_nonzero(blind):
            mean[blind], width[blind] = -state.visitors[blind], 0.0
        return mean, width

    def _learn(self, state: Ledger, arms: Array, chosen: Index, rewards: Array) -> None:
        state.learn(picked(arms, chosen), chosen, rewards[:, 0], self.share)
