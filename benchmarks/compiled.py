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
    AutoFiltered,
    LinStudentUCB,
    LinTS,
    OrderStatisticUCB,
    Policy,
    RevenueUCB,
    SymmetricOFUL,
    ThompsonSampling,
    environments,
    simulate,
)
from tailproof.compiled import Game
from tailproof.environments import Bandit
from tailproof.environments.shops import Shop
from tailproof.noise import Cauchy, LogNormal

_ARMS = environments.k_armed(Cauchy(), locations=np.linspace(0, 1, 10))
_FIXED = environments.neutral(Cauchy(), fresh=False)
_FRESH = environments.neutral(Cauchy())
_SHOP = Shop(
    buyers=tuple(np.linspace(0.05, 0.065, 10).tolist()),
    baskets=(LogNormal(1.5, "left", 20.0),) * 10,
)


_SECONDS = 8.0  # of one core
_CHECKED = 500  # paths of a GPU against those of the cores
_LONGEST = 12.0  # seconds of a GPU for one size


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
    "OrderStatisticUCB": Case(OrderStatisticUCB(), _ARMS),
    "SymmetricOFUL, fixed": Case(SymmetricOFUL(radius="practical", bonus=0.3), _FIXED),
    "AutoFiltered(OFUL), fixed": Case(AutoFiltered(OFUL(bonus=0.4)), _FIXED),
    "LinStudentUCB, fixed": Case(LinStudentUCB(), _FIXED, 1 / 5, 1 / 3, 20),
    "RevenueUCB, shop": Case(RevenueUCB(), _SHOP, 1 / 8, 1 / 4, 5),
}


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
            horizon = max(decisions // paths, 200)
            ours = best(partial(game(name, horizon).play, 0, paths), time.thread_time)
            theirs = best(partial(on_arrays, name, horizon, paths), time.thread_time, 2)
            each = 1e9 / horizon / paths
            bar_text = f"≥ {1 / bar:.3g}×" if bar else ""
            row = [f"{theirs * each:.0f}", f"{ours * each:.0f}", f"{theirs / ours:.1f}×", bar_text]
            table.add_row(name, str(paths), *row, f"{compiling:.1f} s")
            print(name, paths, *row, f"{compiling:.1f} s", file=sys.stderr, flush=True)
    show(table)


def cores(names: list[str]) -> None:
    """Compare all cores with one, in runs that take one core several seconds."""
    count = len(os.sched_getaffinity(0))
    title = f"{count} cores"
    table = start_table(title, "what", "paths", "ns a decision", "of the cores", "target")
    for name in names:
        case, paths = CASES[name], 256 * count
        trial = partial(game(name, 200).play, 0, 32)
        trial()
        each = best(trial, time.perf_counter, 2) / 32 / 200
        horizon = max(int(_SECONDS / each / paths), 50)
        run = partial(
            simulate, {name: case.policy}, case.bandit, horizon=horizon, paths=paths,
            checkpoints=1, engine="compiled",
        )  # fmt: skip
        alone = best(partial(run, workers=1), time.perf_counter, 2)
        together = best(partial(run, workers=count), time.perf_counter)
        share = alone / together / count
        ns = together * 1e9 / horizon / paths
        table.add_row(name, str(paths), f"{ns:.2f}", f"{share:.0%}", "≥ 85%")
        print(name, horizon, f"{ns:.2f} ns, {share:.0%}", file=sys.stderr, flush=True)
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
        check = game(name, horizon).play(0, _CHECKED)[0][:, -1]
        took = 0.0
        for paths in sizes:
            if took * paths > _LONGEST:
                continue
            playing = game(name, horizon)
            found = playing.play(0, paths, "gpu")[0][:, -1]
            took = best(partial(playing.play, 0, paths, "gpu"), time.perf_counter, 2) / paths
            bar = CASES[name].gpu
            row = [f"{took / horizon * 1e9:.4f}", f"≤ {bar}" if bar else ""]
            row += [f"{took * paths:.2f}", f"{compiling:.1f}"]
            row += [f"{x.mean():.2f} ± {x.std() / len(x) ** 0.5:.2f}" for x in (found, check)]
            table.add_row(name, f"{paths:.0e}", *row)
            print(name, paths, *row, file=sys.stderr, flush=True)
        same = np.isclose(found[:_CHECKED], check, rtol=1e-9).mean()
        print(f"{name}: {same:.1%} of {_CHECKED} paths are those of the cores", file=sys.stderr)
    show(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=CASES)
    parser.add_argument("--part", action="append", choices=("one", "cores", "gpu"))
    parser.add_argument("--decisions", type=int, default=500_000)
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--paths", type=int, action="append")
    parser.add_argument("--horizon", type=int, default=1000)
    given = parser.parse_args()
    names = given.only or list(CASES)
    parts = given.part or (["one", "cores", "gpu"] if given.cuda else ["one", "cores"])
    if "one" in parts:
        one(names, given.decisions)
    if "cores" in parts:
        cores(names)
    if "gpu" in parts:
        gpu(names, given.paths or [1000, 100_000, 1_000_000], given.horizon)


if __name__ == "__main__":
    main()
