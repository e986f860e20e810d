"""StudentUCB: the index for K arms that learns the law of the noise."""

from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np

from tailproof.checks import NonNegative, Range
from tailproof.policies.base import Array, Index, Policy, pick_largest
from tailproof.policies.state import student
from tailproof.policies.state.counts import Counted, tame

__all__ = ["StudentLocations", "StudentUCB"]


@dataclass(eq=False)
class StudentLocations(Counted):
    """The location of each arm, the law of the noise, and the first pulls.

    Attributes
    ----------
    locations : array of shape (paths, K)
    law : array of shape (paths, 4, shapes)
        What `student` knows of the noise, the same for all arms.
    first : array of shape (paths, K, room)
        The first rewards of each arm, within ±1e100, then +inf.
    """

    locations: Array
    law: Array
    first: Array

    @classmethod
    def start(cls, paths: int, arms: int, dim: int, **more: Any) -> Self:
        """Return the state before any decision, with room for `room` rewards of each arm."""
        first = np.full((paths, arms, more.pop("room")), np.inf)
        more |= {"locations": np.zeros((paths, arms)), "law": student.start(paths)}
        return super().start(paths, arms, dim, first=first, **more)

    def update(self, chosen: Index, y: Array) -> None:
        """Learn one reward in each path."""
        path, room = np.arange(self.paths), self.first.shape[-1]
        n = self.counts[path, chosen]
        stretch = np.sqrt(1 + 1 / np.maximum(n, 1))
        residual = (y - self.locations[path, chosen]) / stretch
        self.law, move = student.advance(self.law, self.decisions, residual)
        self.locations[path, chosen] += stretch * move / (n + 1)
        self.counts[path, chosen] += 1
        young = np.flatnonzero(n < room)
        if len(young):
            arm = chosen[young]
            self.first[young, arm, n[young]] = y[young]
            ordered = np.sort(self.first[young, arm], axis=1)
            middle = np.stack([n[young] // 2, (n[young] + 1) // 2], axis=1)
            self.locations[young, arm] = np.take_along_axis(ordered, middle, axis=1).mean(axis=1)
        t = self.decisions + 1
        rows = np.flatnonzero((t <= self.arms * room) & (t % np.maximum(t // 8, 1) == 0))
        if len(rows):
            first = self.first[rows]
            used = np.isfinite(first)
            residuals = np.where(used, first - self.locations[rows, :, None], 0.0)
            shape = len(rows), -1
            self.law[rows] = student.refit(residuals.reshape(shape), used.reshape(shape))[0]


@dataclass(frozen=True, kw_only=True)
class StudentUCB(Policy[StudentLocations]):
    """Pull the arm with the largest location plus bonus; scale and tail of the noise are learned.

    a_t = argmax_a m_a + bonus·σ (√(L/n) + L/(10 n)),  L = 2 ln t,  σ = s √(E ψ²)/E ψ',
    m_a ← m_a + s ψ(u)/(n E ψ'),  u = (y − m_a)/s,  ψ(u) = (ν + 1)u/(ν + u²),
    with n pulls of the arm, each arm three times first

    The median of the first `room` rewards of an arm is its location until then. The scale s and
    ν of 1/2, 1, 2 and 4 are learned as in `LinStudentUCB`, from all arms together and from the
    rewards kept, looked at again now and then while there are at most `room`·K.

    Parameters
    ----------
    bonus : float
        Multiplies the width.
    room : int
        How many first rewards of each arm are kept.

    Examples
    --------
    >>> policy, rng = StudentUCB(), np.random.default_rng(0)
    >>> state = policy.init(paths=1, arms=2, dim=2)
    >>> arms = np.eye(2)[None]
    >>> for _ in range(1000):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, chosen[:, None] + rng.standard_cauchy((1, 1)))
    >>> int(state.counts[0].argmax())
    1

    Source: our own, from the parts of `LinStudentUCB`. Proved elsewhere: for independent pulls of
    a symmetric law with a single peak the location is asymptotically normal with deviation σ/√n.
    Only measured here: everything about regret, and the settings. Arms whose noise differs in
    scale share one σ, too wide for some and too narrow for others.
    Differences: no algorithm was published under this name.
    """

    bonus: NonNegative = 0.55
    room: Annotated[int, Range(at_least=3, at_most=1e15)] = 16

    def _init(self, paths: int, arms: int, dim: int) -> StudentLocations:
        return StudentLocations.start(paths, arms, dim, room=self.room)

    def _choose(self, state: StudentLocations, arms: Array, rng: np.random.Generator) -> Index:
        n = np.maximum(state.counts, 1)
        rate = 2 * np.log(np.maximum(state.decisions, 1))[:, None] / n
        sigma = student.deviation(state.law, state.decisions)[:, None]
        index = state.locations + self.bonus * sigma * (np.sqrt(rate) + rate / 10)
        return pick_largest(np.where(state.counts < 3, np.inf, index), rng)

    def _learn(self, state: StudentLocations, arms: Array, chosen: Index, rewards: Array) -> None:
        state.update(chosen, tame(rewards[:, 0]))
