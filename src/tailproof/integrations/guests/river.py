"""Guests from River: its bandit policies, with or without a context."""

import inspect
from dataclasses import dataclass
from typing import Any

from tailproof.checks import require
from tailproof.extras import import_extra
from tailproof.integrations.guests.base import Guest, Made, View, named
from tailproof.policies.base import Array

__all__ = ["River", "river"]


@dataclass(frozen=True)
class River(Guest):
    """A policy of the library `river.bandit`, as the function `river` makes it."""

    policy: Made

    def __post_init__(self) -> None:
        super().__post_init__()
        bandit, kind = import_extra("river.bandit", "river"), self.policy.kind
        ok = inspect.isclass(kind) and issubclass(kind, bandit.base.Policy)
        require(ok, "policy", "a policy of river.bandit", kind)
        if issubclass(kind, bandit.Exp3):  # type: ignore[arg-type]
            raise ValueError("River's Exp3 remembers its last pull and cannot be a guest")

    @property
    def view(self) -> View:
        """A context for contextual policies, otherwise the arm's number."""
        base = import_extra("river.bandit", "river").base
        kind: Any = self.policy.kind
        return "context" if issubclass(kind, base.ContextualPolicy) else "arms"

    def _make(self, arms: int) -> Any:
        return self.policy()

    def _reseed(self, guest: Any, seed: int) -> None:
        guest._rng.seed(seed)

    def _ask(self, guest: Any, arms: int, seen: Array, seed: int) -> int:
        if hasattr(guest.reward_obj, "sample"):  # distributions have generators of their own
            for arm in range(arms):
                guest._rewards[arm]._rng.seed(f"{seed}/{arm}")
        return int(guest.pull(range(arms), *self._context(seen)))

    def _tell(
        self, guest: Any, arms: int, seen: Array, chosen: int, reward: float, propensity: float
    ) -> None:
        guest.update(chosen, *self._context(seen), reward)

    def _context(self, seen: Array) -> list[dict[int, float]]:
        return [dict(enumerate(seen.tolist()))] if self.view == "context" else []


def river(policy: Any, **settings: Any) -> River:
    """Return a policy that runs a bandit of River: an object, or a class or name and settings.

    >>> from river import bandit
    >>> from tailproof import Filtered, Median, environments, noise, simulate
    >>> policy = Filtered(river(bandit.UCB(delta=1)), repeats=15, estimator=Median())
    >>> problem = environments.k_armed(noise.Cauchy(), locations=(0, 1, 2))
    >>> result = simulate({"River": policy}, problem, horizon=2000, paths=2)
    >>> bool(result.median("River")[-1] < 700)  # random play has 2000
    True

    Source: river 0.26. Differences: we seed it; rewards beyond ±10³⁰ are clipped. Exp3 is refused,
    as it remembers its last pull.
    """
    return River(named(policy, settings, import_extra("river.bandit", "river")))
