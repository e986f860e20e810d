"""What best-arm policies share: δ and a final answer."""

from abc import ABC
from dataclasses import dataclass, replace
from typing import Annotated, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import Fraction
from tailproof.policies.base import Array, Index, Policy, Recommends, State, picked
from tailproof.policies.state.base import Arms, Rule
from tailproof.policies.state.counts import Tally
from tailproof.policies.state.regression import Ridge, blank

__all__ = [
    "PENALTY",
    "Active",
    "Answer",
    "BestArm",
    "Race",
    "TallyRace",
    "in_unit",
    "lead",
    "rivals",
]

PENALTY = 1e-4
"""The ridge penalty over the square of the longest arm, so that A is always invertible.

The sources use least squares. The penalty only affects which arm is pulled; decisions
use `Race.least_squares`, which removes it.
"""


Active = Annotated[NDArray[np.bool_], Rule(("arms",), blank=1)]
"""The arms still in the race, of shape (paths, K)."""


@dataclass(eq=False)
class Answer(State):
    """The recommended arm in each path, −1 before the answer; an answer never changes."""

    fixed_arms = True
    fewest_arms = 2
    answer: Arms

    def settle(self, paths: NDArray[np.bool_], arm: Index) -> None:
        """Recommend an arm in each of the given paths that has none yet."""
        self.answer = np.where((self.answer < 0) & paths, arm, self.answer)


@dataclass(eq=False)
class Race(Answer, Ridge):
    """A regression, and the answer once it is known.

    Attributes
    ----------
    unit : array of shape (paths,)
        The length by which arms are divided, see `in_unit`.
    """

    unit: Annotated[Array, Rule(finite=True, blank=1)]

    @property
    def estimate(self) -> Array:
        """θ̂ in the units of the arms."""
        return self.theta / self.unit[:, None]

    def least_squares(self, paths: Index, y: Array) -> tuple[Array, Array]:
        """Return yᵀθ̂ and ‖y‖ in the norm of A⁻¹, A = Σ x xᵀ without the penalty, in some paths.

        With V = λI + A of eigenvalues v and b = Vθ, θ̂ = A⁻¹b has the coordinates θ v/(v − λ).
        In a direction that was never pulled, v = λ, the norm is infinite.

        Parameters
        ----------
        y : array of shape (paths, M, d)
        """
        basis, sizes, _ = np.linalg.svd(self.root[paths])
        v = 1 / sizes**2
        a = v - PENALTY
        pulled = a > 1e-11 * PENALTY  # rounding errors of λ − λ are smaller
        weight = np.where(pulled, 1 / np.where(pulled, a, 1.0), 0.0)
        turned = y @ basis
        theta = weight * v * np.vecmat(self.theta[paths], basis)
        squares = turned**2
        unknown = np.matvec(squares, (~pulled).astype(np.float64))
        norm = np.sqrt(np.matvec(squares, weight))
        norm[unknown > 1e-18 * squares.sum(axis=2)] = np.inf  # a smaller square is a rounding error
        return np.matvec(turned, theta), norm

    def restart(self, paths: Index) -> None:
        """Forget the observations of some paths."""
        self.block[paths] = blank(1, self.dim, PENALTY, responses=1)
        self.log_det[paths] = 0.0


@dataclass(eq=False)
class TallyRace(Answer, Tally):
    """The sums of K arms, and the answer once it is known."""


A = TypeVar("A", bound=Answer)


@dataclass(frozen=True, kw_only=True)
class BestArm(Policy[A], Recommends, ABC):
    """A policy that finds the best arm, wrong with probability at most δ.

    Policies that assume noise of a known scale have a field `noise_scale`. Policies that accept an
    arm whose location is within ε of the best have a field `gap_tolerance`.

    Parameters
    ----------
    delta : float
        δ, the largest probability of a wrong answer.
    """

    delta: Fraction = 0.05

    def at(self, delta: float) -> Self:
        """Return the same recipe for another δ."""
        return replace(self, delta=delta)

    def recommend(self, state: A) -> Index:
        """Return the recommended arm in each path, −1 before the answer."""
        return state.answer.copy()


def in_unit(arms: Array) -> tuple[Array, Array]:
    """Return the arms divided by the length of the longest in each path, and these lengths.

    >>> x, unit = in_unit(np.array([[[3.0, 4.0], [0.0, 1.0]]]))
    >>> x.tolist(), unit.tolist()
    ([[[0.6, 0.8], [0.0, 0.2]]], [5.0])
    """
    longest = np.linalg.norm(arms, axis=2).max(axis=1)
    unit: Array = np.where(longest > 0, longest, 1.0)
    return arms / unit[:, None, None], unit


def lead(values: Array) -> Index:
    """Return the position of the largest value in each path; NaN loses against any other."""
    best: Index = np.where(np.isnan(values), -np.inf, values).argmax(axis=1)
    return best


def rivals(arms: Array, leader: Index) -> Array:
    """Return x_a − x_leader for every arm, of shape (paths, K, d)."""
    return arms - picked(arms, leader)[:, None, :]
