"""The loop for naming the best arm: all paths at once, until each has its answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tailproof.bestarm import FixedConfidence, NearBestArm
from tailproof.checks import number, require, whole
from tailproof.noise import Varying
from tailproof.policies.base import Policy, recommending
from tailproof.results import Identification, Verdicts
from tailproof.simulation.arm_sets import UnitBall
from tailproof.simulation.environments import LinearBandit
from tailproof.simulation.plan import MOST_PULLS, unfiltered
from tailproof.simulation.streams import stream
from tailproof.simulation.sweeps import sweep
from tailproof.simulation.work import Work, WorkCell
from tailproof.wrappers.base import innermost

__all__ = ["IdentificationCell", "IdentificationPlan", "identify"]


def identify(
    policies: Mapping[str, Policy[Any]],
    environment: LinearBandit,
    *,
    paths: int,
    max_pulls: int,
    delta: float | None = None,
    seed: int = 0,
    workers: int = 1,
    engine: str = "processes",
    out: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Identification:
    """Let each policy name the best arm on many independent paths.

    A path that has its answer drops out of the work. A path whose budget has no room for another
    decision is left undecided: it names arm −1, whatever it might have guessed.

    Parameters
    ----------
    policies : mapping from names to policies that name a best arm
        See `tailproof.bestarm`. Each random stream depends on the policy's name alone, so adding
        a policy changes no other's answers.
    environment : LinearBandit
        With arms that stay the same, and one best among them.
    paths : int
    max_pulls : int
        The budget of each path, in raw pulls.
    delta : float, optional
        δ for every recipe, in place of its own. A filter is calibrated for the δ of the recipe
        inside, see `bestarm.behind_filter`, so filtered recipes keep theirs and refuse this one.
    seed : int
    workers, engine, out, progress :
        As for `sweep`, except that one worker, without a folder, is the usual.

    Examples
    --------
    >>> from tailproof import bestarm, environments, noise
    >>> law = noise.Cauchy()
    >>> policy = bestarm.behind_filter(
    ...     bestarm.LinGapE(norm_bound=2, ridge=0.1), law, block=41, max_pulls=10**5
    ... )
    >>> found = identify(
    ...     {"LinGapE": policy}, environments.near_tie(law, angle=1.0), paths=20, max_pulls=10**5
    ... )
    >>> found.errors("LinGapE"), found.undecided("LinGapE")
    (0, 0)
    """
    plan = IdentificationPlan(
        policies=policies,
        environment=environment,
        paths=paths,
        max_pulls=max_pulls,
        delta=delta,
        seed=seed,
    )
    run = sweep({"": plan}, out=out, engine=engine, workers=workers, progress=progress)
    return run[""]


@dataclass(frozen=True, kw_only=True)
class IdentificationCell(WorkCell[Verdicts]):
    """One policy on one chunk of paths, with the budget of each."""

    max_pulls: int

    @property
    def decisions(self) -> int:
        """How many decisions it takes at most."""
        return self.max_pulls // self.policy.pulls

    def _play(self) -> Verdicts:
        world = self.environment.start(self.paths, stream(self.seed, "environment", self.chunk))
        own, noise_rng = (
            stream(self.seed, f"{kind} {self.name}", self.chunk) for kind in ("policy", "noise")
        )
        margin, paths = _margin(self.policy), self.paths
        gaps = world.best[:, None] - world.locations
        tied = bool(((gaps <= margin).sum(axis=1) > 1).any())
        rule = "one with a single best arm"
        require(margin > 0 or not tied, "environment", rule, self.environment)
        policy, noise, repeats = unfiltered(self.policy, self.environment.noise)
        cost = policy.pulls * repeats
        recommended, decisions = np.full(paths, -1), np.full(paths, self.decisions)
        state = policy.init(paths, world.arms.shape[1], world.arms.shape[2])
        racing, arms, locations = np.arange(paths), world.arms, world.locations
        for decision in range(1, self.decisions + 1):
            chosen = policy.choose(state, arms, own)
            location = locations[np.arange(len(racing)), chosen]
            if isinstance(noise, Varying):
                eta = noise.sample(noise_rng, chosen, (decision - 1) * cost, policy.pulls)
            else:
                eta = noise.sample(noise_rng, (len(racing), policy.pulls))
            rewards = (location + self.environment.offset)[:, None] + eta
            policy.learn(state, arms, chosen, rewards)
            stopped = recommending(policy).stopped(state)
            if stopped.any():
                done = racing[stopped]
                recommended[done], decisions[done] = (
                    recommending(policy).recommend(state)[stopped],
                    decision,
                )
                state, racing = state.take(~stopped), racing[~stopped]
                arms, locations = world.arms[racing], world.locations[racing]
                if not len(racing):
                    break
        correct = (recommended >= 0) & (gaps[np.arange(paths), recommended] <= margin)
        return Verdicts(
            recommended=recommended, correct=correct, pulls=decisions * cost, decisions=decisions
        )


@dataclass(frozen=True, kw_only=True)
class IdentificationPlan(Work[Verdicts, Identification]):
    """What `identify` would do, cut into cells; its parameters are those of `identify`.

    >>> from tailproof import bestarm, environments, noise
    >>> plan = IdentificationPlan(
    ...     policies={"LinGapE": bestarm.LinGapE(norm_bound=2)},
    ...     environment=environments.near_tie(noise.Normal(), angle=1.0), paths=600, max_pulls=9000,
    ... )
    >>> [cell.paths for cell in plan.cells()]
    [500, 100]
    """

    max_pulls: int
    delta: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        contexts = self.environment.contexts
        fixed = not contexts.fresh and not isinstance(contexts, UnitBall)
        require(fixed, "environment", "one whose arms stay the same", self.environment)
        recipes = {name: _ready(name, policy, self.delta) for name, policy in self.policies.items()}
        for recipe in recipes.values():  # a recipe that does not fit fails before the work begins
            recommending(recipe).recommend(recipe.init(1, contexts.arms, contexts.dim))
            whole("max_pulls", self.max_pulls, at_least=recipe.pulls, at_most=MOST_PULLS)
        object.__setattr__(self, "policies", recipes)

    def _cell(self) -> Callable[..., IdentificationCell]:
        return partial(IdentificationCell, max_pulls=int(self.max_pulls))

    def _join(self, parts: Mapping[str, Sequence[Verdicts]]) -> Identification:
        return Identification(
            verdicts={
                name: Verdicts(
                    **{
                        part.name: np.concatenate([getattr(found, part.name) for found in own])
                        for part in fields(Verdicts)
                    }
                )
                for name, own in parts.items()
            },
            settings={
                "max_pulls": int(self.max_pulls),
                "delta": self.delta,
                **self.settings(),
            },
        )


def _ready(name: str, policy: Policy[Any], delta: float | None) -> Policy[Any]:
    """Return the policy, with the δ that is asked for."""
    if delta is None:
        return policy
    number("delta", delta, above=0, below=1)
    if not isinstance(policy, FixedConfidence):
        rule = "a best-arm recipe without a filter when delta is given"
        raise ValueError(f"policies[{name!r}] must be {rule}, got {policy!r}")
    return policy.at(delta)


def _margin(policy: Policy[Any]) -> float:
    """Return the ε with which the recipe inside is content."""
    recipe = innermost(policy)
    return recipe.gap_tolerance if isinstance(recipe, NearBestArm) else 0.0
