"""Finding the best arm: every policy plays until it recommends one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tailproof.bestarm import BestArm
from tailproof.checks import count, number, require, whole
from tailproof.environments.arm_sets import UnitBall
from tailproof.environments.linear import Bandit, LinearBandit
from tailproof.policies.base import Policy, recommending, unwarned
from tailproof.results import Identification, Verdicts
from tailproof.simulation.cells import BasePlan, Cell
from tailproof.simulation.loop import Rollout
from tailproof.simulation.memory import first_state
from tailproof.simulation.plan import MOST_PULLS
from tailproof.simulation.sweeps import sweep
from tailproof.wrappers.base import innermost

__all__ = ["IdentificationPlan", "identify"]


def identify(
    policies: Mapping[str, Policy[Any]],
    environment: Bandit,
    *,
    paths: int,
    max_pulls: int,
    delta: float | None = None,
    seed: int = 0,
    workers: int = 1,
    engine: str = "processes",
    out: str | Path | None = None,
    progress: Callable[[int, int], None] | bool | None = None,
) -> Identification:
    """Let each policy find the best arm on many independent paths.

    A path stops when it has an answer. A path whose budget has no room for another decision
    stays undecided: its answer is −1.

    Parameters
    ----------
    policies : mapping from names to policies that find the best arm
        See `tailproof.bestarm`. Each random stream depends on the policy's name alone, so adding
        a policy changes no other's answers.
    environment : LinearBandit
        With fixed arms, one of them the best.
    paths : int
    max_pulls : int
        The budget of each path, in raw pulls.
    delta : float, optional
        δ for every recipe, in place of its own. Not for filtered recipes: a filter is calibrated
        for the δ of the recipe inside, see `bestarm.behind_filter`.
    seed : int
    workers, engine, out, progress :
        As for `sweep`, but by default one worker, and nothing is kept.

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
    return sweep({"": plan}, out=out, engine=engine, workers=workers, progress=progress)[""]


@dataclass(frozen=True, kw_only=True)
class IdentificationPlan(BasePlan[Verdicts, Identification]):
    """A run of `identify`, cut into cells, with the parameters of `identify`.

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
        linear = isinstance(self.environment, LinearBandit)
        require(fixed and linear, "environment", "linear, with fixed arms", self.environment)
        moves = isinstance(self.environment, LinearBandit) and self.environment.motion is not None
        require(not moves, "environment", "one without motion", self.environment)
        ready = {name: _ready(name, policy, self.delta) for name, policy in self.policies.items()}
        object.__setattr__(self, "policies", ready)
        pulls = count("max_pulls", self.max_pulls, at_most=MOST_PULLS)
        for name, policy in ready.items():  # fails early if one does not fit
            state = first_state(name, policy, contexts, self.paths)
            recommending(policy).recommend(state)
            whole("max_pulls", pulls, at_least=policy.pulls, at_most=MOST_PULLS)
        object.__setattr__(self, "max_pulls", pulls)

    @property
    def budget(self) -> int:
        """The most raw pulls on each path."""
        return self.max_pulls

    def _cell(self, name: str, chunk: int, paths: int) -> "IdentificationCell":
        return IdentificationCell(
            name=name,
            policy=self.policies[name],
            environment=self.environment,
            seed=self.seed,
            chunk=chunk,
            paths=paths,
            budget=self.max_pulls,
        )

    def _result(
        self, by_policy: Mapping[str, Verdicts], settings: Mapping[str, Any]
    ) -> Identification:
        about = {"max_pulls": self.max_pulls, "delta": self.delta, **settings}
        return Identification(verdicts=by_policy, settings=about)


@dataclass(frozen=True, kw_only=True)
class IdentificationCell(Cell[Verdicts]):
    """A policy to be played on each path until it recommends an arm."""

    kind = Verdicts

    def play(self) -> Verdicts:
        """Play the policy, and stop each path at its answer."""
        rollout = Rollout(self, f"noise {self.name}", ahead=False)
        world, policy = rollout.world, recommending(rollout.policy)
        margin = getattr(innermost(self.policy), "gap_tolerance", 0.0)
        near = world.best[:, None] - world.locations <= margin
        single = margin > 0 or bool((near.sum(axis=1) == 1).all())
        require(single, "environment", "one with a single best arm", self.environment)
        answer, decisions = np.full(self.paths, -1), np.full(self.paths, self.decisions)
        racing = np.arange(self.paths)
        with unwarned():
            for decision in range(1, self.decisions + 1):
                rollout.learn(*rollout.choose())
                named = policy.recommend(rollout.state)
                stopped = named >= 0
                if stopped.any():
                    done, racing = racing[stopped], racing[~stopped]
                    answer[done], decisions[done] = named[stopped], decision
                    if not len(racing):
                        break
                    rollout.keep(~stopped)
        correct = (answer >= 0) & near[np.arange(self.paths), answer]
        return Verdicts(answer, correct, decisions * self.policy.pulls, decisions)


def _ready(name: str, policy: Policy[Any], delta: float | None) -> Policy[Any]:
    """Return the policy, with the given δ if there is one."""
    if delta is None:
        return policy
    number("delta", delta, above=0, below=1)
    if not isinstance(policy, BestArm):
        raise ValueError(
            f"delta cannot replace that of policies[{name!r}], which is {policy!r}: "
            "leave out delta, and set it on the best-arm recipe itself"
        )
    return policy.at(delta)
