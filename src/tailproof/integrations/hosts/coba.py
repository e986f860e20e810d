"""Our policies in coba's experiments."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tailproof.extras import import_extra
from tailproof.integrations.hosts.player import Player
from tailproof.policies.base import Policy

__all__ = ["CobaLearner"]

_Learner: Any = import_extra("coba.primitives", "coba").Learner


class CobaLearner(_Learner):  # type: ignore[misc]
    """One of our policies as a `coba` learner.

    With a context x, the vector of arm k is e_k ⊗ x. Without a context, actions that are vectors
    are the arms; other actions are known by their index.

    >>> from tailproof import OFUL
    >>> CobaLearner(OFUL()).predict(None, [(2.0, 0.0), (0.6, 0.8)])
    {'action_prob': ((2.0, 0.0), 1.0)}

    Source: the extension point of coba 8.1. Differences: none.
    """

    def __init__(self, policy: Policy[Any], seed: int = 0) -> None:
        self._player = Player(policy, seed=seed)

    @property
    def params(self) -> Mapping[str, Any]:
        """The policy as text."""
        return {"family": "tailproof", "policy": repr(self._player.policy)}

    def predict(self, context: Any, actions: Sequence[Any]) -> Any:
        """Return an action, with its probability if the policy reports it."""
        arm = self._player.ask(_arms(context, actions))
        p = self._player.propensity
        action = actions[arm]
        return {"action": action} if p is None else {"action_prob": (action, p)}

    def learn(self, context: Any, action: Any, reward: float, probability: Any) -> None:
        """Learn the reward of the last action."""
        self._player.tell(reward)


def _arms(context: Any, actions: Sequence[Any]) -> Any:
    if context is not None:
        x = np.atleast_1d(np.asarray(context, dtype=np.float64))
        return np.kron(np.eye(len(actions)), x)
    vectors = not isinstance(actions[0], str) and np.ndim(actions[0]) == 1
    return np.asarray(actions, dtype=np.float64) if vectors else len(actions)
