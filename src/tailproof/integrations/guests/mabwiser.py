"""Guests from Fidelity's MABWiser: bandits with or without a context."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tailproof.extras import import_extra
from tailproof.integrations.guests.base import Guest, View, named
from tailproof.policies.base import Array

__all__ = ["MABWiser", "mabwiser"]

_LINEAR = ("LinGreedy", "LinTS", "LinUCB")


@dataclass(frozen=True)
class MABWiser(Guest):
    """A bandit of the library `mabwiser.mab`, as the function `mabwiser` makes it."""

    learning_policy: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        import_extra("mabwiser.mab", "mabwiser")

    @property
    def keeps_arms(self) -> bool:
        """True: the guest chooses among all arms that it knows."""
        return True

    @property
    def view(self) -> View:
        """A context for linear policies, otherwise the arm's number."""
        return "context" if type(self.learning_policy).__name__ in _LINEAR else "arms"

    def _make(self, arms: int) -> Any:
        kind = import_extra("mabwiser.mab", "mabwiser").MAB
        return kind(list(range(arms)), self.learning_policy)

    def _reseed(self, guest: Any, seed: int) -> None:
        rng = np.random.default_rng(seed)
        guest._rng.rng = guest._imp.rng.rng = rng
        for model in getattr(guest._imp, "arm_to_model", {}).values():  # each has a copy
            model.rng.rng = rng

    def _ask(self, guest: Any, arms: int, seen: Array, seed: int) -> int:
        new = not guest._is_initial_fit
        cold = range(arms) if new else guest.cold_arms if self.view == "arms" else ()
        if cold:  # it has no notion of an untried arm
            return int(np.random.default_rng(seed).choice(cold))
        return int(guest.predict(seen[None]) if self.view == "context" else guest.predict())

    def _tell(
        self, guest: Any, arms: int, seen: Array, chosen: int, reward: float, propensity: float
    ) -> None:
        context = [seen[None]] if self.view == "context" else []
        guest.partial_fit([chosen], [reward], *context)


def mabwiser(learning_policy: Any, **settings: Any) -> MABWiser:
    """Return a policy that runs MABWiser with a learning policy, given itself or by its name.

    ``LinUCB``, ``LinTS`` and ``LinGreedy`` see a context, the others the number of the arm.

    >>> from mabwiser.mab import LearningPolicy
    >>> from tailproof import AutoFiltered, environments, noise, simulate
    >>> policy = AutoFiltered(mabwiser(LearningPolicy.UCB1(1.25)))
    >>> bandit = environments.k_armed(noise.Cauchy(), locations=(0, 1, 2))
    >>> result = simulate({"MABWiser": policy}, bandit, horizon=2000, paths=2)
    >>> bool(result.median("MABWiser")[-1] < 700)  # random play has 2000
    True

    Source: mabwiser 2.7. Differences: arms that were never pulled come first, in random order;
    rewards beyond ±10³⁰ are clipped.
    """
    library = import_extra("mabwiser.mab", "mabwiser")
    return MABWiser(named(learning_policy, settings, library.LearningPolicy)())
