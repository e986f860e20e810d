"""A memory of limited length, for any policy in a world that moves."""

from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from tailproof.checks import Range
from tailproof.policies.base import Array, Index
from tailproof.wrappers.base import Wrapped, Wrapper

__all__ = ["Renewed"]


@dataclass(eq=False)
class Renewable(Wrapped):
    """The state that chooses, and the younger one that will take its place."""

    young: Any


@dataclass(frozen=True)
class Renewed(Wrapper[Renewable]):
    """Any policy A that remembers the last W/2 to W decisions.

    Two copies of A learn every decision, and the older one chooses. After each W/2 decisions the
    younger takes the place of the older, and a new state begins.

    Use it where the world moves all the time, or where an arm that nobody pulls may become the
    best: every W/2 decisions A explores as if it knew the last W/2 decisions alone. It
    pays for this exploring also where nothing moves; `Vigilant` costs less there, and needs no W.

    Parameters
    ----------
    policy : Policy
        The algorithm A.
    memory : int
        W, in decisions.

    Examples
    --------
    >>> from tailproof import UCB1, Vigilant, environments, noise, simulate
    >>> moving = environments.k_armed(
    ...     noise.Normal(), locations=(0, 2), motion=environments.motions.Swap(at=(1000,))
    ... )
    >>> result = simulate(
    ...     {"UCB1": UCB1(), "renewed": Renewed(UCB1(), memory=500)}, moving, horizon=2000, paths=20
    ... )
    >>> bool(result.mean("renewed")[-1] < 0.5 * result.mean("UCB1")[-1])
    True

    Source: restarting a policy is in Auer, Jaksch and Ortner 2009, and a window in Garivier and
    Moulines 2011. Differences: a second copy learns meanwhile, so that A always knows at least the
    last W/2 decisions.

    Kind: around a policy.
    Needs: a memory W.
    Pulls: as its policy.
    Learns without a mean: as its policy.
    """

    memory: Annotated[int, Range(at_least=2, at_most=1e15)] = field(kw_only=True)

    def _init(self, paths: int, arms: int, dim: int) -> Renewable:
        old, young = (self.policy.init(paths, arms, dim) for _ in range(2))
        return Renewable.around(old, young=young)

    def _owns(self, state: Any) -> bool:
        return super()._owns(state) and self.policy._owns(state.young)

    def _learn_weighted(
        self,
        state: Renewable,
        arms: Array,
        chosen: Index,
        rewards: Array,
        propensity: Array | None,
    ) -> None:
        super()._learn_weighted(state, arms, chosen, rewards, propensity)
        self.policy.learn_unchecked(state.young, arms, chosen, rewards, propensity)
        age = state.decisions + 1
        rows = np.flatnonzero(age % -(-self.memory // 2) == 0)
        if len(rows):
            state.inner.put(rows, state.young.take(rows))
            state.young.put(rows, self.policy.init(len(rows), state.arms, state.dim))
