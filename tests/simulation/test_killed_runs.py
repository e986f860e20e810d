"""Two hundred kills: nothing finished is lost or run again, and every folder can be resumed."""

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from joblib.externals.loky import get_reusable_executor

from tailproof import OFUL, Filtered, FromRegret, IdentificationPlan, Plan, environments, noise
from tailproof.research.paper.reproduction import reproduce
from tailproof.simulation.cells import BasePlan
from tailproof.simulation.sweeps import sweep

PLANS: dict[str, BasePlan[Any, Any]] = {
    f"seed {seed}": Plan(
        policies={"OFUL": OFUL(), "filtered": Filtered(OFUL(), repeats=3)},
        environment=environments.neutral(noise.Cauchy(), arms=10, dim=5),
        horizon=100,
        paths=3,
        seed=seed,
    )
    for seed in range(8)
} | {
    "names": IdentificationPlan(
        policies={f"{i}": FromRegret(OFUL(), decisions=20 + i) for i in range(8)},
        environment=environments.near_tie(noise.Normal()),
        paths=3,
        max_pulls=100,
    )
}
STUDIES = ("overview", "1", "7", "best-arm")


def play_sweep(out: Path, engine: str) -> None:
    sweep(PLANS, out=out / "cells", engine=engine, workers=2)


def play_reproduce(out: Path, engine: str) -> None:
    reproduce(STUDIES, out, size="smoke", engine=engine, workers=2)


def play(
    job: Callable[[Path, str], None], out: Path, engine: str, event: int, delay: float
) -> None:
    """Do a job as a group of processes that kills itself, at an event on its files or a time."""
    os.setsid()
    timer = threading.Timer(delay, os.killpg, (0, signal.SIGKILL))
    timer.start()
    seen = 0

    def kill(name: str, given: tuple[Any, ...]) -> None:
        nonlocal seen
        if name in ("open", "os.rename", "os.remove", "os.mkdir") and str(out) in str(given[0]):
            seen += 1
            if seen == event:
                os.killpg(0, signal.SIGKILL)

    sys.addaudithook(kill)
    job(out, engine)
    timer.cancel()
    get_reusable_executor().shutdown(kill_workers=True)


def state(out: Path) -> dict[str, bytes]:
    """All that a run leaves, but for the times that it took."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.name != "run.json"
    }


def stamps(out: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in out.glob("cells/*.cell")}


KILLS: dict[tuple[Callable[[Path, str], None], str], int] = {
    (play_sweep, "serial"): 90,
    (play_sweep, "processes"): 20,
    (play_reproduce, "serial"): 75,
    (play_reproduce, "processes"): 15,
}


@pytest.mark.slow
@pytest.mark.parametrize(("job", "engine"), KILLS)
def test_a_killed_run_loses_nothing(
    job: Callable[[Path, str], None], engine: str, tmp_path: Path
) -> None:
    """Kills at seeded moments: half at an event on a file, half at a time; a few for each folder.

    The moments are shares of a whole run's events and time, so that all of it is met.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(["pytest", "tailproof.research.paper.reproduction"])
    rng = random.Random(f"{job.__name__} {engine}")

    def run(out: Path, event: int = -1, delay: float = 600) -> int:
        process = context.Process(target=play, args=(job, out, engine, event, delay))
        process.start()
        process.join()
        return process.exitcode or 0

    whole = tmp_path / "whole"
    assert run(whole) == 0
    begin = time.perf_counter()
    assert run(tmp_path / "timed") == 0
    seconds = time.perf_counter() - begin
    expected = state(whole)
    assert state(tmp_path / "timed") == expected
    events = 2 * len(expected)

    kills = folders = 0
    while kills < KILLS[job, engine]:
        out, before = tmp_path / f"cut {folders}", dict[str, int]()
        folders += 1
        for _ in range(5):
            if rng.random() < 0.5:
                code = run(out, event=rng.randrange(1, events))
            else:
                code = run(out, delay=rng.uniform(0, seconds))
            assert code in (0, -signal.SIGKILL)
            kills += code != 0
            after = stamps(out)
            assert before.items() <= after.items()
            before = after
        assert run(out) == 0
        assert before.items() <= stamps(out).items()
        assert state(out) == expected
