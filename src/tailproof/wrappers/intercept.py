"""The intercept: rewards around an unknown constant."""

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from tailproof.checks import Range
from tailproof.policies.base import Array
from tailproof.wrappers.base import Wrapped, Wrapper

__all__ = ["Intercept", "direction", "with_constant"]


@dataclass(frozen=True)
class Intercept(Wrapper[Wrapped]):
    """A linear policy A that also learns a constant: rewards are b + xᵀθ + noise.

    A is given (x, constant) in place of x, and so learns (θ, b/constant)

    Under a ridge penalty λ the prior of b has the standard deviation constant/√λ, in the unit of
    the noise: a large constant hardly shrinks any b that is not much larger. It costs as much as
    one more dimension; for K unit vectors the constant is one of their combinations already. On
    the unit ball the direction of A's proposal is pulled, without its last coordinate.

    Parameters
    ----------
    policy : Policy
        The algorithm A.
    constant : float
        The last coordinate of every arm, for arms of length about one.

    Examples
    --------
    >>> from tailproof import OFUL
    >>> policy, rng = Intercept(OFUL()), np.random.default_rng(0)
    >>> state = policy.init(paths=1, arms=3, dim=2)
    >>> for _ in range(300):
    ...     arms = rng.uniform(-1, 1, (1, 3, 2))
    ...     chosen = policy.choose(state, arms, rng)
    ...     reward = 50 + arms[0, chosen] @ [1, -2] + rng.standard_normal()
    ...     policy.learn(state, arms, chosen, reward[:, None])
    >>> policy.estimate(state).round().tolist()
    [[1.0, -2.0]]

    Source: elementary regression. Differences: none.

    Kind: around a policy.
    Needs: nothing.
    Pulls: as its policy.
    Regret: as its policy.
    Learns without a mean: as its policy.
    """

    constant: Annotated[float, Range(above=0, at_most=1e6)] = field(kw_only=True, default=1000.0)

    def propose(self, state: Wrapped, rng: np.random.Generator) -> Array:
        """Return the direction of the proposal of A, without its last coordinate."""
        return direction(super().propose(state, rng))

    def estimate(self, state: Wrapped) -> Array | None:
        """Return the estimate of θ, without the constant."""
        inside = super().estimate(state)
        return None if inside is None else inside[:, :-1]

    def _init(self, paths: int, arms: int, dim: int) -> Wrapped:
        return Wrapped.around(self.policy.init(paths, arms, dim + 1), dim=dim)

    def _arms(self, state: Wrapped, arms: Array) -> Array:
        return with_constant(arms, self.constant)


def with_constant(arms: Array, constant: float) -> Array:
    """Return the arms with one more coordinate.

    >>> with_constant(np.array([[0.5], [2.0]]), 1.0).tolist()
    [[0.5, 1.0], [2.0, 1.0]]
    """
    return np.concatenate([arms, np.full((*arms.shape[:-1], 1), constant)], axis=-1)


def direction(proposal: Array) -> Array:
    """Return the unit vectors along proposals without their last coordinate.

    >>> direction(np.array([[3.0, -4.0, 7.0]])).tolist()
    [[0.6, -0.8]]
    """
    x = proposal[:, :-1]
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))
