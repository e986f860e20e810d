"""The loop: policies against an environment, all paths at once."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import require, whole
from tailproof.noise import Varying
from tailproof.policies.base import Index, Policy, proposing, unwarned
from tailproof.results import Curves, Result
from tailproof.simulation.arm_sets import UnitBall
from tailproof.simulation.environments import LinearBandit
from tailproof.simulation.streams import drawn_together, stream
from tailproof.simulation.sweeps import sweep
from tailproof.simulation.work import Work, WorkCell
from tailproof.stats.estimators import Estimator, Median, Shape, Source
from tailproof.typing import Array
from tailproof.wrappers.filtered import Filtered

__all__ = ["MOST_PULLS", "Cell", "Plan", "simulate", "unfiltered"]

MOST_PULLS = 10**15
"""On one path; float64 counts them exactly."""
_MOST_CHECKPOINTS = 10**6


def simulate(
    policies: Mapping[str, Policy[Any]],
    environment: LinearBandit,
    *,
    horizon: int,
    paths: int,
    seed: int = 0,
    checkpoints: int | Sequence[int] = 200,
    workers: int = 1,
    engine: str = "processes",
    out: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Result:
    """Play each policy for a number of pulls on many independent paths.

    Regret(T) = Σ_t (max_x xᵀθ − x_tᵀθ), one term for each pull. A last decision that does not
    fit into the horizon is charged for the pulls it made and teaches nothing.

    The same seed and settings give the same result, to the last bit, under the same versions and
    the same kernels for the processor, all of which `Result.settings` names; whatever the number
    of workers, the engine, the threads, or the sizes of caches.

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
    checkpoints : int or sequence of int
        How many checkpoints, evenly spaced, or the pulls after which to record; the
        horizon is always among them.
    workers, engine, out, progress :
        As for `sweep`, except that one worker, without a folder, is the usual.

    Examples
    --------
    >>> from tailproof import Filtered, Median, OFUL, environments, noise
    >>> result = simulate(
    ...     {"OFUL": OFUL(), "filtered": Filtered(OFUL(), repeats=15, estimator=Median())},
    ...     environments.neutral(noise.Cauchy(), arms=5, dim=3),
    ...     horizon=3000, paths=20, seed=1,
    ... )
    >>> bool(result.median("filtered")[-1] < result.median("OFUL")[-1])
    True
    """
    plan = Plan(
        policies=policies,
        environment=environment,
        horizon=horizon,
        paths=paths,
        seed=seed,
        checkpoints=checkpoints,
    )
    run = sweep({"": plan}, out=out, engine=engine, workers=workers, progress=progress)
    return run[""]


@dataclass(frozen=True, kw_only=True)
class Cell(WorkCell[Curves]):
    """One policy on one chunk of paths, with the pulls after which to record."""

    checkpoints: tuple[int, ...]

    @property
    def decisions(self) -> int:
        """How many decisions it takes."""
        return -(-self.checkpoints[-1] // self.policy.pulls)

    def _play(self) -> Curves:
        paths, checkpoints, contexts = self.paths, self.checkpoints, self.environment.contexts
        world = self.environment.start(paths, stream(self.seed, "environment", self.chunk))
        own = stream(self.seed, f"policy {self.name}", self.chunk)
        noise_rng, offset = stream(self.seed, "noise", self.chunk), self.environment.offset
        policy, noise, repeats = unfiltered(self.policy, self.environment.noise)
        state = policy.init(paths, contexts.arms, contexts.dim)
        size = np.linalg.norm(world.theta, axis=1)
        size[size == 0] = np.nan

        def miss() -> Array | float:
            estimate = policy.estimate(state)
            if estimate is None:
                return np.nan
            return np.asarray(np.linalg.norm(estimate - world.theta, axis=1) / size)

        regret, error = np.empty((2, paths, len(checkpoints)))
        rows, total = np.arange(paths), np.zeros(paths)
        draw = _drawing(noise, noise_rng, (paths, policy.pulls), paths * policy.pulls * repeats)
        horizon, cost = checkpoints[-1], policy.pulls * repeats
        continuous = isinstance(contexts, UnitBall)
        pulled = recorded = 0
        arms: Array | None = None
        learn: Callable[..., None] = policy.learn
        trusted = policy._update
        with unwarned():
            while pulled < horizon:
                if continuous:
                    world.offer(proposing(policy).propose(state, own))
                if world.arms is not arms:
                    arms = policy._checked_arms(state, world.arms)
                chosen = rows * 0 if continuous else policy._choose(state, arms, own)
                location = world.locations[rows, chosen]
                gap = world.best - location
                end = min(pulled + cost, horizon)
                while checkpoints[recorded] < end:  # checkpoints inside this decision
                    regret[:, recorded] = total + gap * (checkpoints[recorded] - pulled)
                    error[:, recorded] = miss()
                    recorded += 1
                total += gap if cost == 1 else gap * (end - pulled)
                if pulled + cost <= horizon:
                    mean = location + offset if offset else location
                    learn(state, arms, chosen, mean[:, None] + draw(chosen, pulled))
                    learn = trusted  # the first lesson was checked, and the others are like it
                if checkpoints[recorded] == end:
                    regret[:, recorded] = total
                    error[:, recorded] = miss()
                    recorded += 1
                pulled = end
                world.advance()
        return Curves(
            regret=regret,
            decisions=np.array(checkpoints) // cost,
            error=None if policy.estimate(state) is None else error,
        )


@dataclass(frozen=True, kw_only=True)
class Plan(Work[Curves, Result]):
    """What `simulate` would do, cut into cells; its parameters are those of `simulate`.

    >>> from tailproof import Uniform, environments, noise
    >>> bandit = environments.neutral(noise.Cauchy(), arms=5, dim=3)
    >>> plan = Plan(policies={"uniform": Uniform()}, environment=bandit, horizon=50, paths=600)
    >>> [cell.paths for cell in plan.cells()]
    [500, 100]
    >>> plan.join([cell.run() for cell in plan.cells()]).curves["uniform"].regret.shape
    (600, 50)
    """

    horizon: int
    checkpoints: int | Sequence[int] = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        _checkpoints(whole("horizon", self.horizon, at_most=MOST_PULLS), self.checkpoints)
        contexts = self.environment.contexts
        for policy in self.policies.values():  # a recipe that does not fit fails before the work
            state = policy.init(1, contexts.arms, contexts.dim)
            if isinstance(contexts, UnitBall):
                proposing(policy).propose(state, np.random.default_rng(0))

    def _cell(self) -> Callable[..., Cell]:
        checkpoints = tuple(_checkpoints(self.horizon, self.checkpoints).tolist())
        return partial(Cell, checkpoints=checkpoints)

    def _join(self, parts: Mapping[str, Sequence[Curves]]) -> Result:
        return Result(
            pulls=_checkpoints(self.horizon, self.checkpoints),
            curves={name: _join(own) for name, own in parts.items()},
            settings={"horizon": int(self.horizon), **self.settings()},
        )


def _drawing(
    noise: Source | Varying, rng: np.random.Generator, shape: Shape, floats: int
) -> Callable[[Index, int], Array]:
    """Return what draws the noise of a decision, of this shape, after a number of pulls.

    Where one law serves all, that of several decisions is drawn at a time, of `floats` numbers
    each.
    """

    def proper(drawn: Array) -> Array:
        require(not math.isnan(drawn.min()), "noise", "free of NaN", noise)
        return drawn

    if isinstance(noise, Varying):
        return lambda chosen, pulled: proper(noise.sample(rng, chosen, pulled, shape[1]))

    def ahead() -> Iterator[Array]:
        while True:
            yield from proper(noise.sample(rng, (drawn_together(floats), *shape)))

    coming = ahead()
    return lambda chosen, pulled: next(coming)


@dataclass(frozen=True)
class _Reduced:
    """The noise that is left when an estimator has reduced every few samples to one."""

    noise: Source
    estimator: Estimator
    repeats: int

    def sample(self, rng: np.random.Generator, shape: Shape) -> Array:
        return self.estimator.draw(self.noise, rng, (*shape, self.repeats))

    def sample_median(self, k: int, rng: np.random.Generator, shape: Shape) -> Array:
        return Median()(self.sample(rng, (*shape, k)))


def unfiltered(
    policy: Policy[Any], noise: Source | Varying
) -> tuple[Policy[Any], Source | Varying, int]:
    """Move filters from the policy into the noise; also return the raw pulls behind each pull.

    A policy behind a filter that follows shifts is, equal in law, the policy alone under the
    noise of the filter's output, and that noise may be drawn directly. Noise that varies with the
    arm or the pull is left as it is.
    """
    repeats = 1
    if isinstance(noise, Varying):
        return policy, noise, repeats
    while isinstance(policy, Filtered) and policy.estimator.equivariant:
        noise = _Reduced(noise, policy.estimator, policy.repeats)
        repeats *= policy.repeats
        policy = policy.policy
    return policy, noise, repeats


def _checkpoints(horizon: int, checkpoints: int | Sequence[int]) -> NDArray[np.int64]:
    if not isinstance(checkpoints, Sequence | np.ndarray):
        count = min(whole("checkpoints", checkpoints, at_most=_MOST_CHECKPOINTS), horizon)
        return np.unique(np.linspace(horizon / count, horizon, count).round().astype(np.int64))
    pulls = [whole("checkpoints", mark, at_most=horizon) for mark in checkpoints]
    return np.unique([*pulls, horizon]).astype(np.int64)


def _join(parts: Sequence[Curves]) -> Curves:
    """Put chunks of paths together."""
    errors = [part.error for part in parts if part.error is not None]
    return Curves(
        regret=np.concatenate([part.regret for part in parts]),
        decisions=parts[0].decisions,
        error=np.concatenate(errors) if errors else None,
    )
