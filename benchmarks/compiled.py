"""Compiled code against arrays: ns a decision, on one core, on all cores and on a GPU.

Run with ``make bench-compiled``; with ``--cuda`` the GPU is measured, too. Times are processor time
of this thread where one core is measured, so that other programs matter little.
"""

from timing import one_core, show, start_table

one_core()

import argparse
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tailproof import (
    OFUL,
    UCB1,
    LinStudentUCB,
    LinTS,
    Policy,
    RevenueUCB,
    ThompsonSampling,
    Uniform as Chance,
    environments,
    simulate,
)
from tailproof.compiled import Game
from tailproof.compiled.targets import Target
from tailproof.environments import Bandit
from tailproof.environments.shops import Shop
from tailproof.noise import Cauchy, LogNormal, Normal

_ARMS = environments.k_armed(Cauchy(), locations=np.linspace(0, 1, 10))
_FIXED = environments.neutral(Cauchy(), fresh=False)
_FRESH = environments.neutral(Cauchy())
_SHOP = Shop(
    buyers=tuple(np.linspace(0.05, 0.065, 10).tolist()),
    baskets=(LogNormal(1.5, "left", 20.0),) * 10,
)


_PIECE = 1 << 18  # paths at a time, so that a GPU keeps room for their results


class Case(NamedTuple):
    """A policy in a bandit, and the bars: shares of NumPy's time, and ns on a GPU."""

    policy: Policy[Any]
    bandit: Bandit
    few: float | None = None
    many: float | None = None
    gpu: float | None = None


CASES = {
    "UCB1": Case(UCB1(), _ARMS, 1 / 15, 1 / 2, 0.06),
    "ThompsonSampling": Case(ThompsonSampling(), _ARMS),
    "OFUL, fixed": Case(OFUL(), _FIXED, 1 / 6, 1 / 1.5, 0.8),
    "OFUL, fresh": Case(OFUL(), _FRESH, 1 / 3, 1, 4),
    "LinTS, fixed": Case(LinTS(), _FIXED),
    "LinStudentUCB, fixed": Case(LinStudentUCB(), _FIXED, 1 / 5, 1 / 3, 20),
    "RevenueUCB, shop": Case(RevenueUCB(), _SHOP, 1 / 8, 1 / 4, 5),
}
_QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)
WORLDS: dict[str, tuple[Bandit, int, dict[str, Policy[Any]]]] = {
    f"five arms, {law!r}": (
        environments.k_armed(law, locations=_QUARTERS),
        5000,
        {
            "LinStudentUCB": LinStudentUCB(),
            "UCB1": UCB1(),
            "ThompsonSampling": ThompsonSampling(),
        },
    )
    for law in (Cauchy(), Normal())
}
WORLDS |= {
    f"20 fixed arms, d = 10, {law!r}": (
        environments.neutral(law, fresh=False),
        2000,
        {
            "LinStudentUCB": LinStudentUCB(),
            "OFUL, bonus 0.3": OFUL(bonus=0.3),
            "LinTS, 0.1": LinTS(bonus=0.1),
        },
    )
    for law in (Cauchy(0.1),)
}
WORLDS["shop, 4 arms, 2 to 3 % buy"] = (
    Shop(buyers=(0.02, 0.022, 0.025, 0.03), baskets=(LogNormal(1.0, "left", 20.0),) * 4),
    20_000,
    {"RevenueUCB": RevenueUCB()},
)
"""Where rare paths are counted: a bandit, the horizon, and tools."""


def game(name: str, horizon: int) -> Game:
    case = CASES[name]
    return Game(case.policy, case.bandit, name, horizon=horizon, marks=(horizon,))


def best(run: Callable[[], object], clock: Callable[[], float], rounds: int = 3) -> float:
    """Return the best time of a few."""
    times = []
    for _ in range(rounds):
        start = clock()
        run()
        times.append(clock() - start)
    return min(times)


def on_arrays(name: str, horizon: int, paths: int) -> object:
    case = CASES[name]
    return simulate({name: case.policy}, case.bandit, horizon=horizon, paths=paths, checkpoints=1)


def one(names: list[str], decisions: int) -> None:
    """Compare one core with NumPy at 10 and at 500 paths."""
    table = start_table(
        "ns a decision, one core", "what", "paths", "NumPy", "compiled", "ratio", "target",
        "compile",
    )  # fmt: skip
    for name in names:
        start = time.perf_counter()
        game(name, 2).play(0, 1)
        compiling = time.perf_counter() - start
        for paths, bar in ((10, CASES[name].few), (500, CASES[name].many)):
            horizon = max(decisions // paths, 100)
            ours = best(partial(game(name, horizon).play, 0, paths), time.thread_time)
            theirs = best(partial(on_arrays, name, horizon, paths), time.thread_time, 2)
            each = 1e9 / horizon / paths
            bar_text = f"≥ {1 / bar:.3g}×" if bar else ""
            row = [f"{theirs * each:.0f}", f"{ours * each:.0f}", f"{theirs / ours:.1f}×", bar_text]
            table.add_row(name, str(paths), *row, f"{compiling:.1f} s")
    show(table)


def cores(names: list[str], decisions: int) -> None:
    """Compare all cores with one."""
    count = len(os.sched_getaffinity(0))
    title = f"{count} cores"
    table = start_table(title, "what", "paths", "ns a decision", "of the cores", "target")
    for name in names:
        case, paths = CASES[name], 256 * count
        horizon = max(decisions // paths, 100)
        run = partial(
            simulate, {name: case.policy}, case.bandit, horizon=horizon, paths=paths,
            checkpoints=1, engine="compiled",
        )  # fmt: skip
        run(workers=1)
        alone = best(partial(run, workers=1), time.perf_counter)
        together = best(partial(run, workers=count), time.perf_counter)
        share = alone / together / count
        ns = together * 1e9 / horizon / paths
        table.add_row(name, str(paths), f"{ns:.2f}", f"{share:.0%}", "≥ 85%")
    show(table)


def gpu(names: list[str], sizes: list[int], horizon: int) -> None:
    """Measure a GPU, and compare the regret with that on cores."""
    table = start_table(
        "GPU", "what", "paths", "ns a decision", "target", "seconds", "compile", "regret", "cores"
    )
    for name in names:
        start = time.perf_counter()
        game(name, horizon).play(0, 64, "gpu")
        compiling = time.perf_counter() - start
        check = game(name, horizon).play(0, 2000)[0][:, -1]
        for paths in sizes:
            playing = game(name, horizon)
            found = playing.play(0, paths, "gpu")[0][:, -1]
            took = best(partial(playing.play, 0, paths, "gpu"), time.perf_counter, 2)
            bar = CASES[name].gpu
            row = [f"{took / horizon / paths * 1e9:.4f}", f"≤ {bar}" if bar else ""]
            row += [f"{took:.2f}", f"{compiling:.1f}"]
            row += [f"{x.mean():.2f} ± {x.std() / len(x) ** 0.5:.2f}" for x in (found, check)]
            table.add_row(name, f"{paths:.0e}", *row)
            print(name, paths, *row, file=sys.stderr, flush=True)
        same = np.isclose(found[:2000], check, rtol=1e-9).mean()
        print(f"{name}: {same:.1%} of 2000 paths are those of the cores", file=sys.stderr)
    show(table)


def lost(paths: int, target: Target) -> None:
    """Count the paths that earn in their second half hardly more than chance does.

    A path is stuck where its second half has over a tenth of the regret of random arms, and lost
    where it has over half of it.
    """
    table = start_table(
        f"stuck and lost of {paths} paths", "what", "tool", "stuck", "lost", "regret", "seconds"
    )
    for world, (bandit, horizon, tools) in WORLDS.items():
        marks = (horizon // 2, horizon)
        chance = Game(Chance(), bandit, "chance", horizon=horizon, marks=marks).play(0, 2000)[0]
        random = (chance[:, 1] - chance[:, 0]).mean()
        for name, policy in tools.items():
            start = time.perf_counter()
            playing = Game(policy, bandit, name, horizon=horizon, marks=marks)
            pieces = range(0, paths, _PIECE)
            found = [playing.play(at, min(_PIECE, paths - at), target)[0] for at in pieces]
            regret = np.concatenate(found)
            second = regret[:, 1] - regret[:, 0]
            counts = [int((second > share * random).sum()) for share in (0.1, 0.5)]
            took = f"{time.perf_counter() - start:.1f}"
            table.add_row(world, name, *map(str, counts), f"{regret[:, 1].mean():.2f}", took)
            print(world, name, horizon, *counts, f"{regret[:, 1].mean():.3f}", took, flush=True)
    show(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=CASES)
    parser.add_argument("--decisions", type=int, default=500_000)
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--paths", type=int, action="append")
    parser.add_argument("--horizon", type=int, default=1000)
    parser.add_argument("--skip-cores", action="store_true")
    parser.add_argument("--lost", type=int, help="count the paths lost of so many")
    given = parser.parse_args()
    if given.lost:
        lost(given.lost, "gpu" if given.cuda else "cores")
        return
    names = given.only or list(CASES)
    if not given.skip_cores:
        one(names, given.decisions)
        cores(names, 4 * given.decisions)
    if given.cuda:
        gpu(names, given.paths or [1000, 100_000, 1_000_000], given.horizon)


if __name__ == "__main__":
    main()
