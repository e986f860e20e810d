"""A regression that learns the law of its noise, for all paths at once."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tailproof.policies import student
from tailproof.policies.base import Array, Index
from tailproof.policies.ridge import Design, rank_one

__all__ = ["StudentRegression"]


@dataclass(eq=False)
class StudentRegression(Design):
    """The design, the estimate, the law of the noise, and the first pulls.

    Attributes
    ----------
    theta : array of shape (paths, d)
    law : array of shape (paths, 4, shapes)
        What `student` knows of the noise.
    extra, shrunk : arrays of shape (paths,) and (paths, d, d)
        μ = shrinkage·σ² as of the last pull that was kept, and (V + μI)⁻¹.
    contexts, rewards : arrays of shape (paths, room, d) and (paths, room)
        The first pulls, rewards within ±1e100.
    """

    theta: Array
    law: Array
    extra: Array
    shrunk: Array
    contexts: Array
    rewards: Array

    @classmethod
    def start(cls, paths: int, arms: int, dim: int, penalty: float, **more: Any) -> Self:
        """Return the memory before any observation, with λ = `penalty` and room for `room`."""
        room = more.pop("room")
        more |= {"theta": np.zeros((paths, dim)), "law": student.start(paths)}
        more |= {"extra": np.zeros(paths), "shrunk": np.zeros((paths, dim, dim))}
        more |= {"contexts": np.zeros((paths, room, dim)), "rewards": np.zeros((paths, room))}
        return super().start(paths, arms, dim, penalty, **more)

    def refit(self, penalty: float, shrinkage: float, x: Array, y: Array, rows: Index) -> None:
        """Keep a pull of the given paths, and move θ towards the root of Σ xψ = λθ."""
        last = self.decisions[rows]
        self.contexts[rows, last], self.rewards[rows, last] = x[rows], y[rows]
        pulls = slice(int(last.max()) + 1)
        used = np.arange(pulls.stop) <= last[:, None]
        x, y = self.contexts[rows, pulls], self.rewards[rows, pulls]
        theta, inverse = self.theta[rows], self.inverse[rows]
        for _ in range(2):
            law, moves = student.refit(y - np.matvec(x, theta), used)
            theta = theta + np.matvec(inverse, np.vecmat(moves, x) - penalty * theta)
        self.law[rows], self.theta[rows] = law, theta
        share = (last + 1) / self.rewards.shape[1]
        self.extra[rows] = shrinkage * share * student.deviation(law, last + 1) ** 2
        more = (penalty + self.extra[rows])[:, None, None] * np.eye(self.dim)
        self.shrunk[rows] = np.linalg.inv(x.mT @ x + more)

    def advance(self, x: Array, y: Array, rows: Index) -> None:
        """Move θ by one pull of the given paths, which is in V already."""
        x = x[rows]
        gain = np.matvec(self.inverse[rows], x)
        # before the pull its location was known to ± ‖x‖ in the norm of V⁻¹, on top of the noise
        stretch = 1 / np.sqrt(np.maximum(1 - np.vecdot(x, gain), 1e-12))
        residual = (y[rows] - np.vecdot(x, self.theta[rows])) / stretch
        self.law[rows], move = student.advance(self.law[rows], self.decisions[rows], residual)
        self.theta[rows] += (stretch * move)[:, None] * gain
        less = rank_one(self.shrunk[rows], x)[0]
        self.shrunk[rows] -= np.einsum("pi,pj->pij", less, less)
