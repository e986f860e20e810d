"""RevenueUCB: K arms whose rewards are mostly zero and wild otherwise."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tailproof.checks import Range
from tailproof.policies.base import Array, Index, KArmed
from tailproof.policies.randomised import Randomised
from tailproof.policies.state.purse import Purse

__all__ = ["RevenueUCB"]


@dataclass(frozen=True, kw_only=True)
class RevenueUCB(KArmed[Purse], Randomised[Purse]):
    """Pull the arm with the largest capped mean plus a random number of standard errors.

    a_t = argmax_a X̄_a + c |Z_t| σ̂/√n_a,  Z_t ~ N(0, 1), one draw for all arms
    """

    share: Annotated[float, Range(above=0.5, below=1)] = 0.99

    def _init(self, paths: int, arms: int, dim: int) -> Purse:
        return Purse.start(paths, arms, dim)

    def _lines(self, state: Purse, arms: Array) -> tuple[Array, Array]:
        n = np.maximum(state.visitors, 1)
        total = n.sum(axis=1)
        mean = state.sums.sum(axis=1) / total
        spread = np.maximum(state.squares.sum(axis=1) / total - mean * mean, 0)
        own, width = state.sums / n, 1.5 * np.sqrt(spread[:, None] / n)
        blind = (state.bought.max(axis=1) == 0) | (state.visitors.min(axis=1) == 0)
        if np.count_nonzero(blind):
            own[blind], width[blind] = -state.visitors[blind], 0.0
        return own, width

    def _learn(self, state: Purse, arms: Array, chosen: Index, rewards: Array) -> None:
        state.update(chosen, rewards[:, 0], self.share)
