"""Guests from contextualbandits: linear bandits with one context, built from source."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tailproof.checks import require
from tailproof.extras import import_extra
from tailproof.integrations.guests.base import Guest, Made, View, named
from tailproof.policies.base import Array

__all__ = ["ContextualBandits", "contextualbandits"]


@dataclass(frozen=True)
class ContextualBandits(Guest):
    """A policy of `contextualbandits.online`, as the function `contextualbandits` makes it."""

    policy: Made

    def __post_init__(self) -> None:
        super().__post_init__()
        online = import_extra("contextualbandits.online", "contextualbandits")
        linear = (online.LinUCB, online.LinTS)
        require(self.policy.kind in linear, "policy", "LinUCB or LinTS", self.policy.kind)

    @property
    def keeps_arms(self) -> bool:
        """True: the guest chooses among all arms that it knows."""
        return True

    @property
    def view(self) -> View:
        """One context for all arms."""
        return "context"

    def _make(self, arms: int) -> Any:
        return self.policy(nchoices=arms)

    def _reseed(self, guest: Any, seed: int) -> None:
        guest.random_state = np.random.default_rng(seed)
        for model in guest._oracles.algos if guest.is_fitted else ():
            model.random_state = guest.random_state

    def _ask(self, guest: Any, arms: int, seen: Array, seed: int) -> int:
        return int(guest.predict(seen[None])[0])

    def _tell(
        self, guest: Any, arms: int, seen: Array, chosen: int, reward: float, propensity: float
    ) -> None:
        guest.partial_fit(seen[None], np.array([chosen]), np.array([reward]))


def contextualbandits(policy: Any, **settings: Any) -> ContextualBandits:
    """Return a policy that runs ``LinUCB`` or ``LinTS`` of contextualbandits with settings.

    >>> from contextualbandits.online import LinUCB
    >>> from tailproof import AutoFiltered, environments, noise, simulate
    >>> from tailproof.environments.arm_sets import SharedContext
    >>> contexts = SharedContext(law="sphere", arms=3, features=2)
    >>> bandit = environments.LinearBandit(
    ...     contexts=contexts, theta="sphere", noise=noise.StudentT(1, 0.2)
    ... )
    >>> policy = AutoFiltered(contextualbandits(LinUCB))
    >>> result = simulate({"LinUCB": policy}, bandit, horizon=3000, paths=2)
    >>> result.median("LinUCB").shape
    (200,)

    Source: contextualbandits 0.3. Differences: double precision unless ``use_float`` says
    otherwise; we seed it; rewards beyond ±10³⁰ are clipped. Its other policies are for rewards of
    0 or 1. Use ``LinTS`` with ``sample_from="ci"``: by default, in 0.3.30, its samples spread
    wider the more it has learned.
    """
    online = import_extra("contextualbandits.online", "contextualbandits")
    return ContextualBandits(named(policy, {"use_float": False} | settings, online))
