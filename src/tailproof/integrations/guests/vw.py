"""Guests from Vowpal Wabbit: contextual bandits with action features."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tailproof.checks import require
from tailproof.extras import import_extra
from tailproof.integrations.guests.base import Guest, View
from tailproof.policies.base import Array

__all__ = ["VW", "vw"]


@dataclass(frozen=True)
class VW(Guest):
    """A `vowpalwabbit.Workspace` with ``--cb_explore_adf``, as the function `vw` makes it."""

    largest: ClassVar[float] = 1e9  # it squares them in single precision
    longest_seen: ClassVar[float] = 1e9
    weighs: ClassVar[bool] = True
    arguments: str
    looks_at: View = "vectors"

    def __post_init__(self) -> None:
        super().__post_init__()
        import_extra("vowpalwabbit", "vw")
        ok = isinstance(self.arguments, str) and "--cb_explore_adf" in self.arguments.split()
        require(ok, "arguments", "a string that contains --cb_explore_adf", self.arguments)

    @property
    def view(self) -> View:
        """The view it was created with."""
        return self.looks_at

    def _make(self, arms: int) -> Any:
        return import_extra("vowpalwabbit", "vw").Workspace(f"{self.arguments} --quiet")

    def _shares(self, guest: Any, arms: int, seen: Array) -> Array:
        scores = np.asarray(guest.predict(self._lines(arms, seen)), dtype=np.float64)
        return np.asarray(scores / scores.sum())

    def _ask(self, guest: Any, arms: int, seen: Array, seed: int) -> int:
        share = self._shares(guest, arms, seen)
        return int(np.random.default_rng(seed).choice(arms, p=share))

    def _tell(
        self, guest: Any, arms: int, seen: Array, chosen: int, reward: float, propensity: float
    ) -> None:
        lines = self._lines(arms, seen)
        line = chosen + len(lines) - arms
        lines[line] = f"0:{-reward!r}:{propensity!r} {lines[line]}"
        guest.learn(lines)

    def _lines(self, arms: int, seen: Array) -> list[str]:
        if self.view == "vectors":
            return [f"|a {_features(row)}" for row in seen]
        shared = [f"shared |s {_features(seen)}"] if self.view == "context" else []
        return [*shared, *(f"|a arm{k}" for k in range(arms))]


def _features(row: Array) -> str:
    return " ".join(f"x{i}:{value!r}" for i, value in enumerate(row.tolist()))


def vw(arguments: str, view: View = "vectors") -> VW:
    """Return a policy that runs Vowpal Wabbit with these arguments.

    ``view`` says how it sees arms: "vectors", the vector of each arm in the namespace ``a``;
    "context", one vector for all arms in the namespace ``s``, with the number of each arm in ``a``
    (``-q sa`` gives each arm its own weights); or "arms", only the number of each arm.

    >>> from tailproof import Filtered, Median, environments, noise, simulate
    >>> policy = Filtered(vw("--cb_explore_adf --squarecb"), repeats=15, estimator=Median())
    >>> bandit = environments.neutral(noise.Cauchy(), arms=5, dim=3)
    >>> result = simulate({"VW": policy}, bandit, horizon=2000, paths=2)
    >>> result.median("VW").shape
    (200,)

    Source: vowpalwabbit 9.11. Differences: the cost is −reward, clipped at ±10⁹; we draw the arm
    from the probabilities it returns.
    """
    return VW(arguments, view)
