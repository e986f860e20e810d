"""Simulations cut into cells that run anywhere, and put together again."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, final

from threadpoolctl import threadpool_limits

from tailproof.checks import require, whole
from tailproof.policies.base import Policy
from tailproof.results import Curves, Verdicts, provenance
from tailproof.simulation.environments import LinearBandit

__all__ = ["CHUNK", "Work", "WorkCell"]

CHUNK = 500
"""Paths simulated together; each chunk has random streams of its own."""
_MOST_PATHS = 10**7

F = TypeVar("F", bound=Curves | Verdicts)
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class WorkCell(ABC, Generic[F]):
    """One policy on one chunk of paths: a piece of work that runs anywhere, with the same bits."""

    name: str
    policy: Policy[Any]
    environment: LinearBandit
    paths: int
    seed: int
    chunk: int

    @property
    @abstractmethod
    def decisions(self) -> int:
        """How many decisions it takes at most."""

    @final
    def run(self) -> F:
        """Play the policy, with one thread for linear algebra, as sums of several may differ."""
        with threadpool_limits(limits=1, user_api="blas"):
            return self._play()

    @abstractmethod
    def _play(self) -> F:
        """Play the policy."""


@dataclass(frozen=True, kw_only=True)
class Work(ABC, Generic[F, R]):
    """Policies against an environment, on many paths."""

    policies: Mapping[str, Policy[Any]]
    environment: LinearBandit
    paths: int
    seed: int = 0

    def __post_init__(self) -> None:
        rule = "a mapping from names to policies"
        require(isinstance(self.policies, Mapping), "policies", rule, self.policies)
        require(len(self.policies) > 0, "policies", "at least one policy", self.policies)
        for name, policy in self.policies.items():
            require(isinstance(name, str), "a name in policies", "a text", name)
            require(isinstance(policy, Policy), f"policies[{name!r}]", "a policy", policy)
            whole("pulls", policy.pulls)
        ok = isinstance(self.environment, LinearBandit)
        require(ok, "environment", "a linear bandit", self.environment)
        whole("paths", self.paths, at_most=_MOST_PATHS)
        whole("seed", self.seed, at_least=0)

    def cells(self) -> Iterator[WorkCell[F]]:
        """Cut the work by policy and chunk of paths."""
        cell = self._cell()
        for name, policy in self.policies.items():
            for chunk, start in enumerate(range(0, self.paths, CHUNK)):
                yield cell(
                    name=name,
                    policy=policy,
                    environment=self.environment,
                    paths=min(CHUNK, int(self.paths) - start),
                    seed=int(self.seed),
                    chunk=chunk,
                )

    def join(self, found: Sequence[F]) -> R:
        """Put together what the cells found, in the order of the cells."""
        each = len(found) // len(self.policies)
        return self._join(
            {name: found[i * each : (i + 1) * each] for i, name in enumerate(self.policies)}
        )

    def settings(self) -> dict[str, Any]:
        """Return where the results come from, as plain text and numbers."""
        return {
            "seed": int(self.seed),
            "paths": int(self.paths),
            "chunk": CHUNK,
            "environment": repr(self.environment),
            "policies": {name: repr(policy) for name, policy in self.policies.items()},
            "versions": provenance(),
        }

    @abstractmethod
    def _cell(self) -> Callable[..., WorkCell[F]]:
        """Return what makes a cell of the fields that all cells have."""

    @abstractmethod
    def _join(self, parts: Mapping[str, Sequence[F]]) -> R:
        """Put together the chunks of each policy."""
