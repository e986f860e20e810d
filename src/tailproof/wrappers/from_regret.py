"""Best arm from a regret policy: recommend the arm that it plays most."""

from dataclasses import dataclass, field

import numpy as np

from tailproof.checks import Count
from tailproof.policies.base import Array, Index
from tailproof.policies.state.base import ArmCounts
from tailproof.wrappers.base import Wrapped, Wrapper

__all__ = ["FromRegret"]


@dataclass(eq=False)
class Played(Wrapped):
    """The state of the regret policy, and how often it played each arm, of shape (paths, K)."""

    plays: ArmCounts


@dataclass(frozen=True)
class FromRegret(Wrapper[Played]):
    """Any regret policy for a number of decisions, then the arm it played most.

    An arm with gap Δ played N ≥ T/K of T times costs NΔ ≤ R_T, the regret: so that arm has
    Δ ≤ K R_T/T, and it is the best as soon as the regret is below the smallest gap times T/K.

    Parameters
    ----------
    policy : Policy
        The regret policy.
    decisions : int
        T, its decisions before the answer.

    Examples
    --------
    >>> from tailproof import OFUL
    >>> policy, rng = FromRegret(OFUL(), decisions=20), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> while not policy.stopped(state).all():
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [[float(chosen[0])]])
    >>> policy.recommend(state).tolist(), state.plays.tolist()
    ([1], [[4, 16]])

    Source: the remark on best-arm identification of Zhong et al. 2021.
    Differences: the arm played most, not one drawn in proportion to its plays, so that
    the answer is not random. The number of decisions is given, not derived from δ.

    Kind: around a policy.
    Needs: how long to play.
    Learns without a mean: as its policy.
    """

    decisions: Count = field(kw_only=True)

    def recommend(self, state: Played) -> Index:
        """Return the arm played most, and −1 before all decisions are made."""
        over = state.decisions >= self.decisions
        return np.where(over, state.plays.argmax(axis=1), -1)

    def _init(self, paths: int, arms: int, dim: int) -> Played:
        return Played.around(self.policy.init(paths, arms, dim))

    def _learn_weighted(
        self, state: Played, arms: Array, chosen: Index, rewards: Array, propensity: Array | None
    ) -> None:
        super()._learn_weighted(state, arms, chosen, rewards, propensity)
        playing = state.decisions < self.decisions  # later plays change no answer
        state.plays[np.arange(state.paths), chosen] += playing
