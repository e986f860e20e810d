"""Guests from bayesianbandits: agents with a Bayesian learner for each arm."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tailproof.extras import import_extra
from tailproof.integrations.guests.base import Guest, Made, View, named
from tailproof.policies.base import Array

__all__ = ["BayesianBandits", "bayesianbandits"]


@dataclass(frozen=True)
class BayesianBandits(Guest):
    """An agent of the library `bayesianbandits`, as the function `bayesianbandits` makes it."""

    policy: Made
    learner: Made
    contextual: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        import_extra("bayesianbandits", "bayesianbandits")

    @property
    def keeps_arms(self) -> bool:
        """True: the guest chooses among all arms that it knows."""
        return True

    @property
    def view(self) -> View:
        """A context if it is contextual, otherwise the arm's number."""
        return "context" if self.contextual else "arms"

    def _make(self, arms: int) -> Any:
        library = import_extra("bayesianbandits", "bayesianbandits")
        kind = library.ContextualAgent if self.contextual else library.Agent
        numbered = [library.Arm(k, learner=self.learner()) for k in range(arms)]
        return kind(numbered, self.policy())

    def _reseed(self, guest: Any, seed: int) -> None:
        guest.rng = seed

    def _ask(self, guest: Any, arms: int, seen: Array, seed: int) -> int:
        return int(guest.pull(*self._context(seen))[0])

    def _tell(
        self, guest: Any, arms: int, seen: Array, chosen: int, reward: float, propensity: float
    ) -> None:
        guest.select_for_update(chosen).update(*self._context(seen), np.array([reward]))

    def _context(self, seen: Array) -> list[Array]:
        return [seen[None]] if self.contextual else []


def bayesianbandits(policy: Any, learner: Any, contextual: bool = False) -> BayesianBandits:
    """Return a policy that runs an agent of bayesianbandits, one learner for each arm.

    Both arguments are objects of that library, names, or ``made`` from a name and settings.

    >>> from bayesianbandits import NormalInverseGammaRegressor, ThompsonSampling
    >>> from tailproof import AutoFiltered, environments, noise, simulate
    >>> agent = bayesianbandits(ThompsonSampling(), NormalInverseGammaRegressor())
    >>> bandit = environments.k_armed(noise.Cauchy(), locations=(0, 1, 2))
    >>> result = simulate({"agent": AutoFiltered(agent)}, bandit, horizon=2000, paths=2)
    >>> bool(result.median("agent")[-1] < 700)  # random play has 2000
    True

    Source: bayesianbandits 1.5. Differences: we seed it; rewards beyond ±10³⁰ are clipped.
    """
    library = import_extra("bayesianbandits", "bayesianbandits")
    return BayesianBandits(named(policy, {}, library), named(learner, {}, library), contextual)
