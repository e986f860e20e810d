"""A skeleton of a policy: copy this file, name the copy for your algorithm, and replace ε-greedy.

Nothing else has to be edited: the library, the command line, the site and the contract checks read
the classes that are named in ``__all__``. A file whose name begins with an underscore stays unseen.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tailproof.checks import Range
from tailproof.policies.base import Array, Index, KArmed, State, pick_largest
from tailproof.policies.state.base import ArmCounts, ArmValues
from tailproof.policies.state.counts import clip

__all__ = ["EpsilonGreedy"]


@dataclass(eq=False)
class Averages(State):
    """The number of pulls of each arm and their mean, both of shape (paths, K)."""

    counts: ArmCounts
    means: ArmValues


@dataclass(frozen=True, kw_only=True)
class EpsilonGreedy(KArmed[Averages]):
    """Pull the best arm so far, or with a small probability any arm.

    a_t = argmax_a X̄_a with probability 1 − exploration, else uniform

    Parameters
    ----------
    exploration : float
        The probability of a random arm.

    Examples
    --------
    >>> policy, rng = EpsilonGreedy(), np.random.default_rng(0)
    >>> state, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> for _ in range(100):
    ...     chosen = policy.choose(state, arms, rng)
    ...     policy.learn(state, arms, chosen, [[float(chosen[0])]])
    >>> int(state.counts[0].argmax())
    1

    Source: Sutton and Barto 2018, section 2.2.
    Differences: ties are broken at random; a reward beyond ±1e100 counts as ±1e100.

    Kind: K arms.
    Needs: rewards with a mean.
    Regret: linear, as exploration never ends.
    Learns without a mean: no.
    """

    exploration: Annotated[float, Range(at_least=0, at_most=1)] = 0.1

    def _init(self, paths: int, arms: int, dim: int) -> Averages:
        return Averages.start(paths, arms, dim)

    def _choose(self, state: Averages, arms: Array, rng: np.random.Generator) -> Index:
        explore = rng.random(state.paths) < self.exploration
        anywhere = rng.integers(arms.shape[1], size=state.paths)
        return np.where(explore, anywhere, pick_largest(state.means, rng))

    def _learn(self, state: Averages, arms: Array, chosen: Index, rewards: Array) -> None:
        at = np.arange(state.paths), chosen
        state.counts[at] += 1
        state.means[at] += (clip(rewards[:, 0]) - state.means[at]) / state.counts[at]
