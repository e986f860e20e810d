"""Guests from coba: its learners, with or without a context or action features."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tailproof.extras import import_extra
from tailproof.integrations.guests.base import Guest, Made, View, named
from tailproof.policies.base import Array

__all__ = ["Coba", "coba"]


@dataclass(frozen=True)
class Coba(Guest):
    """A learner of the library `coba`, as the function `coba` makes it."""

    weighs: ClassVar[bool] = True
    learner: Made
    looks_at: View = "vectors"

    def __post_init__(self) -> None:
        super().__post_init__()
        import_extra("coba", "coba")

    @property
    def keeps_arms(self) -> bool:
        """True with a context, where an action is a one-hot vector with a place for every arm."""
        return self.view == "context"

    @property
    def view(self) -> View:
        """The view it was created with."""
        return self.looks_at

    def _make(self, arms: int) -> Any:
        return self.learner()

    def _shares(self, guest: Any, arms: int, seen: Array) -> Any:
        context, actions = self._question(arms, seen)
        predictor = getattr(guest, "_pred", None)  # `score` would call it for each action
        if predictor is None:
            return [guest.score(context, actions, action) for action in actions]
        share = predictor._pmfcall(context, actions)
        return share[0] if isinstance(share, tuple) else share

    def _ask(self, guest: Any, arms: int, seen: Array, seed: int) -> int:
        share = np.asarray(self._shares(guest, arms, seen), dtype=np.float64)
        return int(np.random.default_rng(seed).choice(arms, p=share / share.sum()))

    def _tell(
        self, guest: Any, arms: int, seen: Array, chosen: int, reward: float, propensity: float
    ) -> None:
        context, actions = self._question(arms, seen)
        guest.learn(context, actions[chosen], reward, propensity)

    def _question(self, arms: int, seen: Array) -> tuple[Any, list[Any]]:
        """Return context and actions: numbers, one-hot vectors with a context, or vectors."""
        if self.view == "vectors":
            return None, [tuple(row) for row in seen.tolist()]
        if self.view == "context":
            return tuple(seen.tolist()), [tuple(row) for row in np.eye(arms).tolist()]
        return None, list(range(arms))


def coba(learner: Any, view: View = "vectors", **settings: Any) -> Coba:
    """Return a policy that runs a coba learner, given as a class or name and its settings.

    ``view`` says how the learner sees arms: "vectors", the vector of each arm; "context", one
    vector for all arms, with one-hot actions; or "arms", the number of each arm.

    >>> from coba.learners import BanditUCBLearner
    >>> from tailproof import Filtered, Median, environments, noise, simulate
    >>> learner = coba(BanditUCBLearner, view="arms")
    >>> bandit = environments.k_armed(noise.Cauchy(), locations=(0, 1, 2))
    >>> policy = Filtered(learner, repeats=15, estimator=Median())
    >>> result = simulate({"coba": policy}, bandit, horizon=2000, paths=2)
    >>> bool(result.median("coba")[-1] < 700)  # random play has 2000
    True

    Source: coba 8.1. Differences: we draw the arm from the probabilities it returns; rewards beyond
    ±10³⁰ are clipped. Learners whose `learn` needs extra output of `predict` (Corral) do not work.
    """
    return Coba(named(learner, settings, import_extra("coba.learners", "coba")), view)
