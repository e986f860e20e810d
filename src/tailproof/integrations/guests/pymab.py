"""Guests from pymab: compiled bandits, with or without action features."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tailproof.extras import import_extra
from tailproof.integrations.guests.base import Guest, Made, View, named
from tailproof.policies.base import Array

__all__ = ["PyMAB", "pymab"]


@dataclass(frozen=True)
class PyMAB(Guest):
    """A policy of the library `pymab`, as the function `pymab` makes it."""

    policy: Made

    def __post_init__(self) -> None:
        super().__post_init__()
        import_extra("pymab", "pymab")

    @property
    def keeps_arms(self) -> bool:
        """True: the guest chooses among all arms that it knows."""
        return True

    @property
    def view(self) -> View:
        """The vectors of the arms for contextual policies, otherwise their numbers."""
        kind: Any = self.policy.kind
        base = import_extra("pymab.policies", "pymab").ContextualPolicy
        return "vectors" if issubclass(kind, base) else "arms"

    def _make(self, arms: int) -> Any:
        return arms, {}

    def _made(self, guest: Any, seen: Array) -> Any:
        """Return the policy, created once the number of features is known."""
        arms, created = guest
        if not created:
            make = partial(self.policy, n_arms=arms)
            vectors = self.view == "vectors"
            created["policy"] = make(n_features=seen.shape[1]) if vectors else make()
        return created["policy"]

    def _ask(self, guest: Any, arms: int, seen: Array, seed: int) -> int:
        rng = np.random.default_rng(seed)
        return int(self._made(guest, seen).select_action(rng=rng, **self._context(seen)))

    def _tell(
        self, guest: Any, arms: int, seen: Array, chosen: int, reward: float, propensity: float
    ) -> None:
        self._made(guest, seen).update(action=chosen, reward=reward, **self._context(seen))

    def _context(self, seen: Array) -> dict[str, Array]:
        return {"context": np.ascontiguousarray(seen)} if self.view == "vectors" else {}


def pymab(policy: Any, **settings: Any) -> PyMAB:
    """Return a guest that runs a pymab policy, given as a class or name; K and d are filled in.

    >>> from pymab.policies import UCBPolicy
    >>> from tailproof import Filtered, Median, environments, noise, simulate
    >>> policy = Filtered(pymab(UCBPolicy), repeats=15, estimator=Median())
    >>> bandit = environments.k_armed(noise.Cauchy(), locations=(0, 1, 2))
    >>> result = simulate({"pymab": policy}, bandit, horizon=2000, paths=2)
    >>> bool(result.median("pymab")[-1] < 700)  # random play has 2000
    True

    Source: pymab 2.0. Differences: rewards beyond ±10³⁰ are clipped.
    """
    return PyMAB(named(policy, settings, import_extra("pymab.policies", "pymab")))
