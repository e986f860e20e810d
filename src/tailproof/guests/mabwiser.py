"""MABWiser: context-free and contextual bandits of Fidelity."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tailproof.extras import import_extra
from tailproof.guests.base import Guest, View, named
from tailproof.policies.base import Array

__all__ = ["MABWiser", "mabwiser"]

_LINEAR = ("LinGreedy", "LinTS", "LinUCB")


@dataclass(frozen=True)
class MABWiser(Guest):
    """A `mabwiser.mab.MAB`; see `mabwiser`."""

    learning_policy: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        import_extra("mabwiser.mab", "mabwiser")

    @property
    def keeps_arms(self) -> bool:
        """Yes: it predicts among all arms it knows."""
        return True

    @property
    def view(self) -> View:
        """A context for linear policies, otherwise the number."""
        return "context" if type(self.learning_policy).__name__ in _LINEAR else "arms"

    def _make(self, arms: int) -> Any:
        kind = import_extra("mabwiser.mab", "mabwiser").MAB
        return kind(list(range(arms)), self.learning_policy)

    def _reseed(self, guest: Any, seed: int) -> None:
        rng = np.random.default_rng(seed)
        guest._rng.rng = guest._imp.rng.rng = rng
        for model in getattr(guest._imp, "arm_to_model", {}).values():  # copies of their own
            model.rng.rng = rng

    def _ask(self, guest: Any, arms: int, seen: Array, seed: int) -> int:
        new = not guest._is_initial_fit
        cold = range(arms) if new else guest.cold_arms if self.view == "arms" else ()
        if cold:  # it has no word for "not tried"
            return int(np.random.default_rng(seed).choice(cold))
        return int(guest.predict(seen[None]) if self.view == "context" else guest.predict())

    def _tell(
        self, guest: Any, arms: int, seen: Array, chosen: int, reward: float, propensity: float
    ) -> None:
        context = [seen[None]] if self.view == "context" else []
        guest.partial_fit([chosen], [reward], *context)


def mabwiser(learning_policy: Any, **settings: Any) -> MABWiser:
    """Return MABWiser's bandit as a policy: a learning policy, or its name and settings.

    ``LinUCB``, ``LinTS`` and ``LinGreedy`` see a context, the others the number of the arm.

    >>> from mabwiser.mab import LearningPolicy
    >>> from tailproof import AutoFiltered, environments, noise, simulate
    >>> policy = AutoFiltered(mabwiser(LearningPolicy.UCB1(1.25)))
    >>> bandit = environments.k_armed(noise.Cauchy(), locations=(0, 1, 2))
    >>> result = simulate({"MABWiser": policy}, bandit, horizon=2000, paths=2)
    >>> bool(result.median("MABWiser")[-1] < 700)  # 2000 at random
    True

    Source: mabwiser 2.7. Differences: an arm that was never pulled is pulled first, at random;
    rewards beyond ±10³⁰ are cut.
    """
    library = import_extra("mabwiser.mab", "mabwiser")
    return MABWiser(named(learning_policy, settings, library.LearningPolicy)())
