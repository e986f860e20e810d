"""Late rewards made up meanwhile, as agents of 0.3.0 did: what the random form is compared with."""

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from tailproof import LinStudentUCB
from tailproof.policies.base import Index
from tailproof.policies.state.student_fit import StudentFit
from tailproof.typing import Array

__all__ = ["Imputing"]

_RECENT = 256
"""Rewards whose deviations are drawn from."""


class Imputing(LinStudentUCB):
    """LinStudentUCB that learns an expected reward at once, and the true ones when they come.

    The expected reward is the prediction plus the deviation of a recent reward. The pending ones
    are made up again once a fourth as many rewards came. For one simulation: it notes its choices.
    """

    def _init(self, paths: int, arms: int, dim: int) -> StudentFit:
        state = super()._init(paths, arms, dim)
        vars(self).update(pending=deque[tuple[Array, Index]](), recent=deque[Array](maxlen=_RECENT))
        vars(self).update(came=0, made=0, belief=state.copy())
        return state

    def _choose(self, state: StudentFit, arms: Array, rng: np.random.Generator) -> Index:
        own: Any = vars(self)
        chosen = super()._choose(own["belief"], arms, rng)
        own["pending"].append((arms, chosen))
        self._imagine(state, own["belief"], own["pending"][-1])
        return chosen

    def _learn(self, state: StudentFit, arms: Array, chosen: Index, rewards: Array) -> None:
        own: Any = vars(self)
        own["pending"].popleft()
        own["recent"].append(rewards[:, 0] - self._predicted(state, arms, chosen))
        super()._learn(state, arms, chosen, rewards)
        own["came"] += 1
        if 4 * own["came"] >= len(own["pending"]):
            own["came"], own["belief"] = 0, state.copy()
            for decision in own["pending"]:
                self._imagine(state, own["belief"], decision)

    def _imagine(
        self, state: StudentFit, belief: StudentFit, decision: tuple[Array, Index]
    ) -> None:
        own: Any = vars(self)
        recent: Sequence[Array] = own["recent"]
        if recent:
            own["made"] += 1
            deviation = recent[own["made"] % len(recent)]
            rewards = self._predicted(state, *decision) + deviation
            super()._learn(belief, *decision, rewards[:, None])
            belief.decisions += 1

    def _predicted(self, state: StudentFit, arms: Array, chosen: Index) -> Array:
        mean: Array = self.predict(state, arms)[0][np.arange(state.paths), chosen]
        return mean
