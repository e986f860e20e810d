"""The loop: policies against an environment, all paths at once."""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

from tailproof.batches import stock
from tailproof.checks import require, whole
from tailproof.environments import LinearBandit, UnitBall
from tailproof.estimators import Array, Estimator, Median, Shape, Source
from tailproof.filters import Filtered
from tailproof.policies.base import Policy
from tailproof.result import Curves, Result, provenance

__all__ = ["CHUNK", "absorbed", "simulate", "stream"]

CHUNK = 500
"""Paths simulated together; each chunk has random streams of its own."""


def simulate(
    policies: Mapping[str, Policy[Any]],
    environment: LinearBandit,
    *,
    horizon: int,
    paths: int,
    seed: int = 0,
    record: int | Sequence[int] = 200,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Result:
    """Play each policy for a number of pulls on many independent paths.

    Regret(T) = Σ_t (max_x xᵀθ − x_tᵀθ), one term for each pull. A last decision that does not
    fit into the horizon is charged for the pulls it made and teaches nothing.

    Parameters
    ----------
    policies : mapping from names to policies
        Every policy meets the same arms and its random stream depends on its name alone, so
        comparisons are paired, and adding a policy changes no other curve.
    environment : LinearBandit
    horizon : int
        T, in pulls.
    paths : int
    seed : int
    record : int or sequence of int
        How many checkpoints to record, evenly spaced, or the pulls after which to record; the
        horizon is always among them.
    workers : int
        Processes to use; results do not depend on their number.
    progress : callable, optional
        Called with the pieces of work done and their total.

    Examples
    --------
    >>> from tailproof import Filtered, Median, OFUL, environments, noise
    >>> result = simulate(
    ...     {"OFUL": OFUL(), "filtered": Filtered(OFUL(), pulls=15, estimator=Median())},
    ...     environments.neutral(noise.Cauchy(), arms=5, dim=3),
    ...     horizon=3000, paths=20, seed=1,
    ... )
    >>> bool(result.median("filtered")[-1] < result.median("OFUL")[-1])
    True
    """
    require(len(policies) > 0, "policies", "at least one policy", policies)
    for name, policy in policies.items():
        require(isinstance(policy, Policy), f"policies[{name!r}]", "a policy", policy)
    require(isinstance(environment, LinearBandit), "environment", "a linear bandit", environment)
    paths, horizon = whole("paths", paths), whole("horizon", horizon)
    seed, workers = whole("seed", seed, at_least=0), whole("workers", workers)
    marks = _checkpoints(horizon, record)
    sizes = [min(CHUNK, paths - start) for start in range(0, paths, CHUNK)]
    cells = [(name, chunk) for name in policies for chunk in range(len(sizes))]
    for policy in policies.values():  # a recipe that does not fit fails before the work begins
        whole("pulls", policy.pulls)
        memory = policy.init(1, environment.contexts.arms, environment.contexts.dim)
        if isinstance(environment.contexts, UnitBall):
            policy.propose(memory, np.random.default_rng(0))
    settings = {
        "seed": seed,
        "horizon": horizon,
        "paths": paths,
        "chunk": CHUNK,
        "environment": repr(environment),
        "policies": {name: repr(policy) for name, policy in policies.items()},
        "versions": provenance(),
    }

    runs = joblib.Parallel(n_jobs=workers, return_as="generator")(
        joblib.delayed(_run)(name, policies[name], environment, marks, sizes[chunk], seed, chunk)
        for name, chunk in cells
    )
    found: dict[str, list[Curves]] = {name: [] for name in policies}
    for done, ((name, _), curves) in enumerate(zip(cells, runs, strict=True), start=1):
        found[name].append(curves)
        if progress is not None:
            progress(done, len(cells))
    joined = {name: _join(parts) for name, parts in found.items()}
    return Result(pulls=marks, curves=joined, settings=settings)


def _run(
    name: str,
    policy: Policy[Any],
    environment: LinearBandit,
    marks: NDArray[np.int64],
    paths: int,
    seed: int,
    chunk: int,
) -> Curves:
    """Play one policy on one chunk of paths."""
    world = environment.start(paths, stream(seed, "environment", chunk))
    own, noise_rng = stream(seed, f"policy {name}", chunk), stream(seed, "noise", chunk)
    policy, noise, price = absorbed(policy, environment.noise)
    memory = policy.init(paths, environment.contexts.arms, environment.contexts.dim)
    size = np.linalg.norm(world.theta, axis=1)
    size[size == 0] = np.nan

    def miss() -> Array | float:
        estimate = policy.estimate(memory)
        if estimate is None:
            return np.nan
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(np.linalg.norm(estimate - world.theta, axis=1) / size)

    regret, error = np.empty((2, paths, len(marks)))
    rows, total = np.arange(paths), np.zeros(paths)
    noises = _drawn_ahead(noise, noise_rng, (paths, policy.pulls), paths * policy.pulls * price)
    horizon, cost = int(marks[-1]), policy.pulls * price
    continuous = isinstance(environment.contexts, UnitBall)
    pulled = recorded = 0
    while pulled < horizon:
        if continuous:
            world.offer(policy.propose(memory, own))
        chosen = rows * 0 if continuous else policy.choose(memory, world.arms, own)
        location = world.locations[rows, chosen]
        gap = world.best - location
        end = min(pulled + cost, horizon)
        while marks[recorded] < end:  # checkpoints inside this decision
            regret[:, recorded] = total + gap * (marks[recorded] - pulled)
            error[:, recorded] = miss()
            recorded += 1
        total += gap * (end - pulled)
        if pulled + cost <= horizon:
            policy.learn(memory, world.arms, chosen, location[:, None] + next(noises))
        if marks[recorded] == end:
            regret[:, recorded] = total
            error[:, recorded] = miss()
            recorded += 1
        pulled = end
        world.advance()
    has_estimate = policy.estimate(memory) is not None
    return Curves(regret=regret, decisions=marks // cost, error=error if has_estimate else None)


def _drawn_ahead(
    noise: Source, rng: np.random.Generator, shape: Shape, floats: int
) -> Iterator[Array]:
    """Draw the noise of several decisions at a time, of `floats` numbers each."""
    while True:
        yield from noise.sample(rng, (stock(floats), *shape))


@dataclass(frozen=True)
class _Reduced:
    """The noise that is left when an estimator has reduced every few samples to one."""

    noise: Source
    estimator: Estimator
    each: int

    def sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return self.estimator.draw(self.noise, rng, (*shape, self.each))

    def sample_median(self, k: int, rng: np.random.Generator, shape: Shape) -> Array:
        return Median()(self.sample(rng, (*shape, k)))


def absorbed(policy: Policy[Any], noise: Source) -> tuple[Policy[Any], Source, int]:
    """Move filters from the policy into the noise; also return the raw pulls behind each pull.

    A policy behind a filter that follows shifts is, equal in law, the policy alone under the
    noise of the filter's output, and that noise may be drawn directly.
    """
    price = 1
    while isinstance(policy, Filtered) and policy.estimator.equivariant:
        noise = _Reduced(noise, policy.estimator, policy.each)
        price *= policy.each
        policy = policy.policy
    return policy, noise, price


def _checkpoints(horizon: int, record: int | Sequence[int]) -> NDArray[np.int64]:
    if not isinstance(record, Sequence | np.ndarray):
        count = min(whole("record", record), horizon)
        return np.unique(np.linspace(horizon / count, horizon, count).round().astype(np.int64))
    marks = np.unique([whole("record", mark, at_most=horizon) for mark in record] + [horizon])
    return marks.astype(np.int64)


def _join(parts: Sequence[Curves]) -> Curves:
    """Put chunks of paths together."""
    errors = [part.error for part in parts if part.error is not None]
    return Curves(
        regret=np.concatenate([part.regret for part in parts]),
        decisions=parts[0].decisions,
        error=np.concatenate(errors) if errors else None,
    )


def stream(seed: int, purpose: str, chunk: int) -> np.random.Generator:
    """Return the random stream of a purpose, named by what it feeds."""
    key = (zlib.crc32(purpose.encode()), chunk)
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=key)))
