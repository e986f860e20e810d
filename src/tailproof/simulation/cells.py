"""What a simulation consists of: a plan, cut into cells of one policy on one chunk of paths."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from tailproof.checks import count, require, whole
from tailproof.environments.linear import Bandit
from tailproof.environments.streams import stream
from tailproof.policies.base import Policy
from tailproof.results.base import PolicyResult
from tailproof.results.provenance import Code, provenance

__all__ = ["CHUNK", "BasePlan", "Cell"]

CHUNK = 500
"""Paths simulated together; each chunk has its own random streams."""
_MOST_PATHS = 10**7
"""The most paths: their regret at 200 checkpoints takes 16 GB."""
_COMPILED_CELLS = 256
"""Into how many cells a policy is cut for cores: enough that 16 cores end together."""
_GPU_PATHS = 1 << 18
"""Paths at a time: a large GPU holds 2⁸ threads on each of some 2⁹ schedulers."""

F = TypeVar("F", bound=PolicyResult)
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class BasePlan(ABC, Generic[F, R]):
    """Policies to be played against an environment on many paths."""

    policies: Mapping[str, Policy[Any]]
    environment: Bandit
    paths: int
    seed: int = 0

    def __post_init__(self) -> None:
        ok = isinstance(self.policies, Mapping) and len(self.policies) > 0
        rule = "a mapping from names to policies, such as {'UCB1': UCB1()}"
        require(ok, "policies", rule, self.policies)
        for name, policy in self.policies.items():
            require(isinstance(name, str), "a name in policies", "a string", name)
            called = getattr(policy, "__name__", None)  # a class in place of its object
            rule = f"a policy, such as {called}()" if called else "a policy"
            require(isinstance(policy, Policy), f"policies[{name!r}]", rule, policy)
            whole("pulls", policy.pulls)
        bandit = self.environment
        rule = "a bandit to play, such as environments.k_armed(noise, locations=(0, 1))"
        require(isinstance(bandit, Bandit), "environment", rule, bandit)
        object.__setattr__(self, "paths", count("paths", self.paths, at_most=_MOST_PATHS))
        object.__setattr__(self, "seed", whole("seed", self.seed, at_least=0))

    @property
    @abstractmethod
    def budget(self) -> int:
        """The most raw pulls on each path."""

    def check_memory(self) -> None:
        """Refuse a result that does not fit into memory."""
        return

    def marks(self) -> tuple[int, ...]:
        """Return the pulls after which results are taken."""
        return (self.budget,)

    def timing(self) -> tuple[Any, ...]:
        """Return when results are taken and rewards are known."""
        return (self.marks(),)

    def cells(self, code: Code = "numpy") -> Iterator["Cell[F]"]:
        """Cut the plan by policy and chunk of paths."""
        size = CHUNK if code == "numpy" else self._compiled_chunk(code)
        for name in self.policies:
            whole = None if code == "numpy" else self._cell(name, 0, self.paths).compiled(code)
            for chunk, start in enumerate(range(0, self.paths, size)):
                paths = min(size, self.paths - start)
                if whole is None:
                    yield self._cell(name, chunk, paths)
                else:
                    yield replace(whole, chunk=chunk, paths=paths, first=start)

    def _compiled_chunk(self, code: Code) -> int:
        """Return how many paths to compute in one call of compiled code.

        The paths are the same in chunks of any size: few for cores, so that all of them have work
        until the end, and many for a GPU.
        """
        few = max(1, -(-self.paths // _COMPILED_CELLS))
        return _GPU_PATHS if code == "cuda" else few

    def join(self, parts: Sequence[F], code: Code = "numpy") -> R:
        """Put together the results of the cells, in the order of the cells."""
        size = len(parts) // len(self.policies)
        chunks = {name: parts[i * size :][:size] for i, name in enumerate(self.policies)}
        joined = {name: pieces[0].joined(pieces) for name, pieces in chunks.items()}
        return self._result(joined, self.settings(code))

    @abstractmethod
    def _cell(self, name: str, chunk: int, paths: int) -> "Cell[F]": ...

    @abstractmethod
    def _result(self, by_policy: Mapping[str, F], settings: Mapping[str, Any]) -> R: ...

    def settings(self, code: Code = "numpy") -> dict[str, Any]:
        """Return the settings that results depend on, as plain text and numbers.

        Results of different code have the same law; results of the same code have the same bits.
        """
        return {
            "seed": self.seed,
            "paths": self.paths,
            "chunk": CHUNK,
            "code": code,
            "environment": repr(self.environment),
            "policies": {name: repr(policy) for name, policy in self.policies.items()},
            "versions": provenance(code),
        }


@dataclass(frozen=True, kw_only=True)
class Cell(ABC, Generic[F]):
    """One policy in an environment on one chunk of paths; the same bits wherever it runs.

    A cell holds nothing that its result does not depend on, so it does not know its plan.
    """

    kind: ClassVar[type[PolicyResult]]
    """The type of its result."""
    name: str
    policy: Policy[Any]
    environment: Bandit
    seed: int
    chunk: int
    paths: int
    budget: int
    """The most raw pulls on each path."""

    @property
    def decisions(self) -> int:
        """The most decisions that the policy can learn from."""
        return self.budget // self.policy.pulls

    def stream(self, purpose: str) -> np.random.Generator:
        """Return the random stream of a purpose for this chunk of paths."""
        return stream(self.seed, purpose, self.chunk)

    def compiled(self, code: Code) -> Any:
        """Return the cell that plays the same by compiled code, or raise.

        It has another field, `first`: the number of its first path.
        """
        raise ValueError(
            f"{type(self.policy).__name__} finds the best arm, and no such policy has a compiled "
            "form; use the engine serial, processes, dask or ray"
        )

    def run(self) -> F:
        """Play the policy, on one thread: linear algebra on several may round differently."""
        from threadpoolctl import threadpool_limits

        with threadpool_limits(limits=1, user_api="blas"):
            return self.play()

    @abstractmethod
    def play(self) -> F:
        """Play the policy on these paths."""
