"""What a million paths say: how many of them a tool loses, and the picture of the README.

Run with ``--cuda`` on a machine with a GPU, or without on all cores. A row of the table of lost
paths stops after ``--seconds``, and says how many paths it played. ``--overview FILE`` writes the
curves of the picture, ``--draw FILE`` draws them into docs/images.
"""

import argparse
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import compiled as bars  # keeps linear algebra on one core
import numpy as np

from tailproof import (
    OFUL,
    UCB1,
    AutoFiltered,
    LinStudentUCB,
    OrderStatisticUCB,
    Policy,
    RevenueUCB,
    SymmetricOFUL,
    Uniform as Chance,
    simulate,
)
from tailproof.compiled import Game
from tailproof.compiled.targets import Target
from tailproof.environments import neutral
from tailproof.research.gauntlet.problems import problems
from tailproof.results import Result
from tailproof.results.provenance import provenance
from tailproof.results.regret import Curves
from tailproof.simulation.plan import Plan
from tailproof.typing import Array

_K_ARMED: dict[str, Policy[Any]] = {
    "LinStudentUCB": LinStudentUCB(),
    "AutoFiltered(UCB1)": AutoFiltered(UCB1(bonus=0.7)),
    "SymmetricOFUL, practical": SymmetricOFUL(radius="practical", bonus=0.3),
    "OrderStatisticUCB": OrderStatisticUCB(),
}
_LINEAR: dict[str, Policy[Any]] = {
    "LinStudentUCB": LinStudentUCB(),
    "AutoFiltered(OFUL)": AutoFiltered(OFUL(bonus=0.4)),
    "SymmetricOFUL, practical": SymmetricOFUL(radius="practical", bonus=0.3),
}
_MONEY: dict[str, Policy[Any]] = {"RevenueUCB": RevenueUCB()}


class World(NamedTuple):
    """Problems of the gauntlet, the longest horizon, and the tools that play them."""

    names: tuple[str, ...]
    horizon: int
    tools: dict[str, Policy[Any]]


WORLDS = (
    World(("dear-twice", "never-sells", "week-shop"), 40_000, _MONEY),
    World(
        ("k5-t1", "k5-normal", "k5-modes-best", "k5-modes-all", "k5-clusters", "k5-shapes"),
        5000,
        _K_ARMED,
    ),
    World(("fixed-t1", "fixed-normal"), 2000, _LINEAR),
)
_BARS = ("LinStudentUCB, fixed", "RevenueUCB, shop", "UCB1", "OFUL, fixed", "OFUL, fresh")
_FIRST, _PIECE = 1 << 15, 1 << 17  # paths at a time: the first say how long the others take


def play(game: Game, paths: int, target: Target, first: int = 0) -> Array:
    """Return the regrets of some paths, on all cores or on a GPU."""
    if target == "gpu":
        return game.play(first, paths, target)[0]
    size = max(1, min(256, paths // 16))
    game.play(0, 1)  # compiles
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        starts = range(0, paths, size)
        jobs = [pool.submit(game.play, first + at, min(size, paths - at)) for at in starts]
        return np.concatenate([job.result()[0] for job in jobs])


def pieces(game: Game, most: int, seconds: float, target: Target) -> Iterator[Array]:
    """Play until there are enough paths or the time is over."""
    begin, at = time.perf_counter(), 0
    first = _FIRST if target == "gpu" else 512
    size = min(first, most)
    while size > 0:
        start = time.perf_counter()
        yield play(game, size, target, at)
        at += size
        now = time.perf_counter()
        left = (seconds - (now - begin)) / (now - start) * size
        size = min(_PIECE, most - at, int(left) // first * first)


def lost(paths: int, seconds: float, target: Target, only: list[str]) -> None:
    """Count the paths that earn in their second half hardly more than chance does.

    A path is stuck where its second half has over a tenth of the regret of random arms, and lost
    where it has over half of it.
    """
    print("world, tool, horizon, paths, stuck, lost, regret of chance (%), seconds")
    for world in WORLDS:
        names = [name for name in world.names if not only or name in only]
        for problem in problems(names) if names else ():
            horizon = min(problem.horizon, world.horizon)
            marks = (horizon // 2, horizon)
            chance = simulate(
                {"chance": Chance()}, problem.bandit, horizon=horizon, paths=400,
                checkpoints=marks, engine="serial",
            ).mean("chance")  # fmt: skip
            random = chance[1] - chance[0]
            for name, policy in world.tools.items():
                start = time.perf_counter()
                game = _game(problem, policy, name, marks)
                try:
                    parts = list(pieces(game, paths, seconds, target))
                except Exception as error:  # the other rows are worth having
                    print(problem.name, name, "failed:", repr(error)[:300], flush=True)
                    continue
                regret = np.concatenate(parts)
                second = regret[:, 1] - regret[:, 0]
                counts = [int((second > share * random).sum()) for share in (0.1, 0.5)]
                share = 100 * regret[:, 1].mean() / chance[1]
                took = time.perf_counter() - start
                row = (problem.name, name, horizon, len(regret), *counts, f"{share:.2f}")
                print(*row, f"{took:.1f}", sep=", ", flush=True)


def _game(problem: Any, policy: Policy[Any], name: str, marks: tuple[int, ...]) -> Game:
    late = problem.delay * marks[-1] // problem.horizon
    return Game(policy, problem.bandit, name, horizon=marks[-1], marks=marks, delay=late)


# The picture

_KEPT = 1000  # of each checkpoint: means of equally many neighbours in the order of size


def _plans(paths: int) -> dict[float, Plan]:
    """Return the study of the README with so many paths."""
    from tailproof.research.paper.claims import student_plan
    from tailproof.research.paper.experiments import overview

    settings = {**overview.SETTINGS["paper"], "paths": paths, "checkpoints": 50}
    return {
        df: student_plan(overview.POLICIES, df, neutral, seed=0, **settings)
        for df in overview.NOISES
    }


def write_overview(file: Path, paths: int, target: Target) -> None:
    """Play the study of the README and write its curves."""
    curves: dict[str, Any] = {"paths": paths}
    for df, plan in _plans(paths).items():
        for name, policy in plan.policies.items():
            start = time.perf_counter()
            game = Game(policy, plan.environment, name, horizon=plan.horizon, marks=plan.marks())
            regret = np.sort(play(game, paths, target), axis=0)
            groups = regret.reshape(_KEPT, -1, regret.shape[1]).mean(axis=1)
            curves[f"{df}|{name}"] = groups.astype(np.float32)
            end, error = regret[:, -1].mean(), regret[:, -1].std() / paths**0.5
            took = time.perf_counter() - start
            row = (f"df = {df}", name, paths, f"{end:.2f} ± {error:.2f}", f"{took:.1f} s")
            print(*row, sep=", ", flush=True)
    np.savez_compressed(file, **curves)


def draw_overview(file: Path) -> None:
    """Draw the picture of the README from the curves."""
    from tailproof.research.paper.experiments import overview

    results = {}
    with np.load(file) as curves:
        paths = int(curves["paths"])
        for df, plan in _plans(paths).items():
            marks = np.array(plan.marks())
            by_policy = {
                name: Curves(
                    regret=curves[f"{df}|{name}"].astype(np.float64),
                    decisions=marks // policy.pulls,
                )
                for name, policy in plan.policies.items()
            }
            settings = {"paths": paths, "versions": provenance()}
            results[f"df = {df}"] = Result(pulls=marks, curves=by_policy, settings=settings)
    picture = overview.draw(results)["overview"]
    folder = Path(__file__).parent.parent / "docs" / "images"
    picture.figure.savefig(folder / "overview.png", dpi=200)
    print(picture.alt)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--paths", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--bars", action="store_true", help="measure the bars of a GPU first")
    parser.add_argument("--overview", type=Path)
    parser.add_argument("--draw", type=Path)
    given = parser.parse_args()
    target: Target = "gpu" if given.cuda else "cores"
    if given.draw:
        draw_overview(given.draw)
    elif given.overview:
        write_overview(given.overview, given.paths, target)
    else:
        if given.bars:
            bars.gpu(list(_BARS), [100_000, 1_000_000], 1000)
        lost(given.paths, given.seconds, target, given.only)


if __name__ == "__main__":
    main()
