"""Play policies in the problems of the gauntlet."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tailproof.checks import require, whole
from tailproof.policies import (
    OFUL,
    UCB1,
    LinStudentUCB,
    OrderStatisticUCB,
    Policy,
    SymmetricOFUL,
    Uniform,
)
from tailproof.research.gauntlet.problems import Problem, problems as chosen_by
from tailproof.research.gauntlet.score import CHANCE, Score
from tailproof.results import Result
from tailproof.results.provenance import provenance
from tailproof.simulation.engines import code_of
from tailproof.simulation.plan import Plan
from tailproof.simulation.sweeps import sweep
from tailproof.typing import Array
from tailproof.wrappers.auto import AutoFiltered

__all__ = ["RECOMMENDED", "SEEDS", "SIZES", "Size", "recommended", "run"]

RECOMMENDED: Mapping[str, Policy[Any]] = {
    "LinStudentUCB": LinStudentUCB(),
    "AutoFiltered(OFUL)": AutoFiltered(OFUL(bonus=0.4)),
    "SymmetricOFUL, practical": SymmetricOFUL(radius="practical", bonus=0.3),
    "AutoFiltered(UCB1)": AutoFiltered(UCB1(bonus=0.7)),
    "OrderStatisticUCB": OrderStatisticUCB(),
}
"""The tools that `docs/choosing.md` recommends, with the settings that it recommends."""
SEEDS = {"tuning": 13, "report": 20_211}
"""The seed of each set of problems; problems of your own use the seed of the report."""


class Size(NamedTuple):
    """The paths of each problem, and the longest horizon."""

    paths: int
    horizon: float


SIZES = {"smoke": Size(3, 60), "quick": Size(8, 2000), "full": Size(100, np.inf)}
"""Quick takes minutes on two cores, and full has the horizons of the problems.

Shorter horizons make more paths stuck, since tools have less time to learn.
"""


def run(
    policies: Mapping[str, Policy[Any]],
    *,
    problems: str | Sequence[str | Problem] = "report",
    size: str = "quick",
    paths: int | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
    engine: str = "processes",
    workers: int = 0,
    progress: Callable[[int, int], None] | bool | None = None,
) -> Score:
    """Play policies in the problems of the gauntlet.

    Parameters
    ----------
    policies : mapping from names to policies
        Policies that know arms by number, `view == "arms"`, play where arms are unit vectors or
        have only the features of a visitor; policies that need vectors play everywhere but in the
        latter case.
    problems : str or sequence
        Sets, names, or problems of your own. Tune on "tuning" and sets that end in "-tuning" only.
    size : "smoke", "quick" or "full"
        See `SIZES`. Problems that move are always played to their end, but for the smoke size.
    paths, seed : int, optional
        By default those of the size and of the set of problems, see `SIZES` and `SEEDS`.
    out, engine, workers, progress :
        As for `sweep`: a stopped run resumes from its folder.

    Examples
    --------
    >>> from tailproof import LinStudentUCB, UCB1
    >>> score = run(
    ...     {"linear": LinStudentUCB(), "UCB1": UCB1()},
    ...     problems=["fixed-quiet-normal", "k3-offset-10"], size="smoke", workers=1,
    ... )
    >>> score.row("fixed-quiet-normal", "UCB1") is None
    True
    >>> 0 < score.row("k3-offset-10", "UCB1").over_chance < 2
    True
    """
    _check(policies, size)
    chosen = chosen_by(problems)
    seed = _seed(problems) if seed is None else whole("seed", seed, at_least=0)
    paths = SIZES[size].paths if paths is None else whole("paths", paths, at_least=1)
    plans = {p.name: _plan(p, p.bandit, _players(policies, p), size, paths, seed) for p in chosen}
    told = {f"{p.name}, oracle": p for p in chosen if p.oracle is not None}
    oracles = {
        name: _plan(p, p.oracle, p.oracle_forms(), size, paths, seed) for name, p in told.items()
    }
    results = sweep(plans | oracles, out=out, engine=engine, workers=workers, progress=progress)
    return Score(
        regret={problem.name: _regret(results[problem.name], problem) for problem in chosen},
        oracle={name.removesuffix(", oracle"): _best(results[name]) for name in oracles},
        settings={"size": size, "paths": paths, "seed": seed}
        | _described(policies, chosen, plans, engine),
    )


def recommended(problems: str | Sequence[str | Problem]) -> dict[str, Policy[Any]]:
    """Return the recommended tools for the blocks of these problems."""
    from tailproof.research.gauntlet import money, moving

    tools = {"": RECOMMENDED, "money": money.RECOMMENDED, "moving": moving.RECOMMENDED}
    blocks = dict.fromkeys(problem.block for problem in chosen_by(problems))
    return {name: policy for block in blocks for name, policy in tools[block].items()}


def _check(policies: Mapping[str, Policy[Any]], size: str) -> None:
    require(size in SIZES, "size", f"one of {', '.join(SIZES)}", size)
    ok = isinstance(policies, Mapping) and len(policies) > 0
    require(ok, "policies", "a mapping with at least one policy", policies)
    if CHANCE in policies:
        raise ValueError(f"policies: the name {CHANCE!r} is reserved; rename that policy")


def _described(
    policies: Mapping[str, Policy[Any]],
    problems: Sequence[Problem],
    plans: Mapping[str, Plan],
    engine: str,
) -> dict[str, Any]:
    """Return the problems and policies, as plain text and numbers."""
    return {
        "horizons": {problem.name: plans[problem.name].horizon for problem in problems},
        "tools": {name: repr(policy) for name, policy in policies.items()},
        "problems": {problem.name: repr(problem) for problem in problems},
        "blocks": {problem.name: problem.block for problem in problems},
        "versions": provenance(code_of(engine)),
    }


def _seed(problems: str | Sequence[str | Problem]) -> int:
    """Return the seed of a set of problems."""
    tuning = isinstance(problems, str) and problems.endswith("tuning")
    return SEEDS["tuning" if tuning else "report"]


def _players(policies: Mapping[str, Policy[Any]], problem: Problem) -> dict[str, Policy[Any]]:
    """Return the policies that can play a problem, and random arms."""
    fitting = {name: policy for name, policy in policies.items() if _fits(policy, problem)}
    return fitting | {CHANCE: Uniform()}


def _fits(policy: Policy[Any], problem: Problem) -> bool:
    if problem.same_vectors:
        return policy.view != "vectors"
    return problem.k_armed or policy.view == "vectors"


def _plan(
    problem: Problem,
    bandit: Any,
    policies: Mapping[str, Policy[Any]],
    size: str,
    paths: int,
    seed: int,
) -> Plan:
    most = np.inf if problem.whole and size != "smoke" else SIZES[size].horizon
    horizon = int(min(problem.horizon, most))
    return Plan(
        policies=policies,
        environment=bandit,
        horizon=horizon,
        paths=paths,
        seed=seed,
        checkpoints=(horizon // 2, horizon),
        delay=problem.delay * horizon // problem.horizon,
    )


def _regret(result: Result, problem: Problem) -> dict[str, Array]:
    """Return the regrets in the unit of the problem."""
    return {name: curves.regret / problem.unit for name, curves in result.curves.items()}


def _best(result: Result) -> float:
    return min(float(result.mean(name)[-1]) for name in result.curves)
