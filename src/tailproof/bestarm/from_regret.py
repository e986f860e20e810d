"""From regret: let a regret policy play, and believe in what it plays most."""

from dataclasses import dataclass, field, fields, make_dataclass
from functools import cache
from typing import Any

import numpy as np

from tailproof.checks import require, whole
from tailproof.policies.base import Array, Index, Memory, Policy

__all__ = ["FromRegret"]


@cache
def _with_plays(kind: type[Memory]) -> type[Any]:
    """Return the memory of a policy, with room for how often each arm was played."""
    return make_dataclass(f"Played{kind.__name__}", [("plays", Index)], bases=(kind,), eq=False)


@dataclass(frozen=True)
class FromRegret(Policy[Any]):
    """Any regret policy for a number of decisions, then the arm it played most.

    An arm with gap Δ played N ≥ T/K of T times costs NΔ ≤ R_T, the regret: so the arm named has
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
    >>> memory, arms = policy.init(paths=1, arms=2, dim=2), np.eye(2)[None]
    >>> while not policy.stopped(memory).all():
    ...     chosen = policy.choose(memory, arms, rng)
    ...     policy.learn(memory, arms, chosen, [[float(chosen[0])]])
    >>> policy.recommend(memory).tolist(), memory.plays.tolist()
    ([1], [[4, 16]])

    Source: the remark on best-arm identification of Zhong et al. 2021.
    Differences: the arm played most, and not one drawn by its share of the play, so that the
    answer is no matter of chance. How long to play is given and not derived from δ.
    """

    policy: Policy[Any]
    decisions: int = field(kw_only=True)

    def __post_init__(self) -> None:
        require(isinstance(self.policy, Policy), "policy", "a policy", self.policy)
        whole("decisions", self.decisions)

    @property
    def pulls(self) -> int:
        """The rewards that the regret policy wants for one decision."""
        return self.policy.pulls

    def estimate(self, memory: Any) -> Array | None:
        """Return the estimate of the regret policy."""
        return self.policy.estimate(memory)

    def recommend(self, memory: Any) -> Index:
        """Return the arm played most, and −1 before all decisions are made."""
        over = memory.decisions >= self.decisions
        return np.where(over, memory.plays.argmax(axis=1), -1)

    def _init(self, paths: int, arms: int, dim: int) -> Any:
        inner = self.policy._init(paths, arms, dim)
        kind: Any = type(inner)
        known = {part.name: getattr(inner, part.name) for part in fields(inner) if part.init}
        plays = np.zeros((paths, arms), dtype=np.int64)
        return _with_plays(kind)(**known, plays=plays)

    def _choose(self, memory: Any, arms: Array, rng: np.random.Generator) -> Index:
        return self.policy._choose(memory, arms, rng)

    def _learn(self, memory: Any, arms: Array, chosen: Index, rewards: Array) -> None:
        self.policy._learn(memory, arms, chosen, rewards)
        open_ = memory.decisions < self.decisions  # later plays change no answer
        memory.plays[np.arange(memory.paths), chosen] += open_
