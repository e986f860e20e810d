"""Rewards and arms in other units, for a policy that assumes certain units."""

from dataclasses import dataclass, field
from typing import Annotated

from tailproof.checks import Positive, Range
from tailproof.policies.base import Array
from tailproof.wrappers.base import Wrapped, Wrapper

__all__ = ["Scaled"]


@dataclass(frozen=True)
class Scaled(Wrapper[Wrapped]):
    """Any policy A, with rewards centred at zero, and rewards and arms in units that suit A.

    A learns (r − centre)/unit, and sees stretch·x in place of x

    Under a ridge penalty of 1 the prior of every location xᵀθ, ‖x‖ = 1, has the standard
    deviation stretch·unit.

    Parameters
    ----------
    policy : Policy
        The algorithm A.
    centre : float
        The centre of the rewards, such as their median.
    unit : float
        What A sees as 1, such as the scale of the noise.
    stretch : float
        The factor by which arms are multiplied, such as the size of the locations over `unit`.

    Examples
    --------
    >>> import numpy as np
    >>> from tailproof import UCB1
    >>> policy = Scaled(UCB1(), centre=100, unit=5)
    >>> state = policy.init(paths=1, arms=2, dim=2)
    >>> policy.learn(state, np.eye(2)[None], [0], [[110.0]])
    >>> state.inner.sums.tolist()
    [[2.0, 0.0]]

    Source: elementary. Differences: none.

    Kind: around a policy.
    Needs: a centre and a unit.
    Pulls: as its policy.
    Regret: as its policy.
    Learns without a mean: as its policy.
    """

    centre: Annotated[float, Range()] = field(kw_only=True, default=0.0)
    unit: Positive = field(kw_only=True, default=1.0)
    stretch: Positive = field(kw_only=True, default=1.0)

    @property
    def invariances(self) -> frozenset[str]:
        """Those of A; with a centre a change of unit is also an offset, which A must not mind."""
        inside = self.policy.invariances
        return inside if self.centre == 0 or "offset" in inside else inside - {"units"}

    def estimate(self, state: Wrapped) -> Array | None:
        """Return the estimate of θ in the units of the rewards, around the centre."""
        inside = super().estimate(state)
        return None if inside is None else inside * self.unit * self.stretch

    @property
    def _longest(self) -> float:
        return super()._longest / self.stretch

    def _arms(self, state: Wrapped, arms: Array) -> Array:
        return self.stretch * arms

    def _rewards(self, state: Wrapped, rewards: Array) -> Array:
        return (rewards - self.centre) / self.unit
