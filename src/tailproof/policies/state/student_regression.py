"""A regression that learns the law of its noise, for all paths at once."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tailproof.policies.state import student
from tailproof.policies.state.base import Array, Index
from tailproof.policies.state.regression import Design, absorb

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
        μ = shrinkage·σ² as of the last pull that was kept, and a root S of (V + μI)⁻¹ = SSᵀ.
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
        """Return the state before any observation, with λ = `penalty` and room for `room`."""
        room = more.pop("room")
        more |= {"theta": np.zeros((paths, dim)), "law": student.start(paths)}
        more |= {"extra": np.zeros(paths), "shrunk": np.zeros((paths, dim, dim))}
        more |= {"contexts": np.zeros((paths, room, dim)), "rewards": np.zeros((paths, room))}
        return super().start(paths, arms, dim, penalty, **more)

    def regress(self, x: Array, y: Array, penalty: float, shrinkage: float) -> None:
        """Learn from one pull in each path, which is in V already."""
        room, n = self.rewards.shape[1], self.decisions + 1
        (kept,) = np.nonzero(n <= room)
        self.contexts[kept, n[kept] - 1], self.rewards[kept, n[kept] - 1] = x[kept], y[kept]
        due = (n <= room) & ((n % np.maximum(n // 8, 1) == 0) | (n == room))
        if not due.all():
            self._advance(x, y, slice(None) if not due.any() else np.flatnonzero(~due))
        if due.any():
            self._refit(penalty, shrinkage, np.flatnonzero(due))

    def _refit(self, penalty: float, shrinkage: float, rows: Index) -> None:
        """Look at all pulls of the given paths again: move θ towards the root of Σ xψ = λθ."""
        n = self.decisions[rows] + 1
        pulls = slice(int(n.max()))
        used = np.arange(pulls.stop) < n[:, None]
        x, y = self.contexts[rows, pulls], self.rewards[rows, pulls]
        theta, root = self.theta[rows], self.root[rows]
        # a first reward may have led astray: zero is the better start where it explains more
        astray = student.middle(y, used) < student.middle(y - np.matvec(x, theta), used)
        theta = np.where(astray[:, None], 0.0, theta)
        for _ in range(2):
            law, moves = student.refit(y - np.matvec(x, theta), used)
            descent = np.vecmat(moves, x) - penalty * theta
            theta = theta + np.matvec(root, np.vecmat(descent, root))
        self.law[rows], self.theta[rows] = law, theta
        share = n / self.rewards.shape[1]
        self.extra[rows] = shrinkage * share * student.deviation(law, n) ** 2
        strength, basis = np.linalg.eigh(x.mT @ x)
        strength = np.maximum(strength, 0) + (penalty + self.extra[rows])[:, None]
        self.shrunk[rows] = basis / np.sqrt(strength)[:, None, :]

    def _advance(self, x: Array, y: Array, rows: Index | slice) -> None:
        """Look once at the pulls of the given paths."""
        x = x[rows]
        gain = np.matvec(self.root[rows], np.vecmat(x, self.root[rows]))
        # before the pull its location was known to ± ‖x‖ in the norm of V⁻¹, on top of the noise
        stretch = 1 / np.sqrt(np.maximum(1 - np.vecdot(x, gain), 1e-12))
        residual = (y[rows] - np.vecdot(x, self.theta[rows])) / stretch
        self.law[rows], move = student.advance(self.law[rows], self.decisions[rows], residual)
        self.theta[rows] += (stretch * move)[:, None] * gain
        shrunk = self.shrunk[rows]
        absorb(shrunk, x, np.empty((len(x), 0)))
        self.shrunk[rows] = shrunk
