"""Sweeps: the same bits on every engine, and nothing lost or trusted after a stop."""

import os
import pickle
import random
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tailproof import (
    OFUL,
    Filtered,
    FixedArm,
    FromRegret,
    Identification,
    IdentificationPlan,
    Plan,
    Policy,
    Result,
    Uniform,
    identify,
    simulate,
)
from tailproof.bestarm import LinGapE
from tailproof.environments.linear import (
    GivenArms,
    LinearBandit,
    k_armed,
    near_tie,
    neutral,
)
from tailproof.noise import Cauchy, Normal, StudentT
from tailproof.results.files import locked
from tailproof.simulation import cells, sweeps
from tailproof.simulation.cells import BasePlan, Cell
from tailproof.simulation.sweeps import sweep

BANDIT = neutral(Cauchy(), arms=4, dim=3)
SHARED = Plan(policies={"OFUL": OFUL()}, environment=BANDIT, horizon=40, paths=10, checkpoints=4)
PLANS = {
    "alone": SHARED,
    "beside": replace(SHARED, policies={"OFUL": OFUL(), "filtered": Filtered(OFUL(), repeats=5)}),
    "other noise": replace(SHARED, environment=neutral(StudentT(3), arms=4, dim=3)),
}
CELLS = 3 * 4
"""In chunks of three paths, with the cells of the first plan shared."""


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "CHUNK", 3)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Cell[Any]]:
    """The cells run in this process."""
    cells: list[Cell[Any]] = []
    run: Any = Cell.run

    def note(cell: Cell[Any]) -> Any:
        cells.append(cell)
        return run(cell)

    monkeypatch.setattr(Cell, "run", note)
    return cells


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of an undisturbed sweep."""
    folder = tmp_path_factory.mktemp("expected")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "CHUNK", 3)
        sweep(PLANS, out=folder, engine="serial")
    return files(folder)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}


def assert_same(one: Result, two: Result) -> None:
    assert one.settings == two.settings
    np.testing.assert_array_equal(one.pulls, two.pulls)
    assert list(one.curves) == list(two.curves)
    for name, curves in one.curves.items():
        for field in ("regret", "decisions", "error"):
            np.testing.assert_array_equal(getattr(curves, field), getattr(two.curves[name], field))


def test_a_plan_gives_what_simulate_gives(tmp_path: Path) -> None:
    plans = {**PLANS, "no estimate": replace(SHARED, policies={"uniform": Uniform()})}
    first = sweep(plans, out=tmp_path, engine="serial")
    second = sweep(plans, out=tmp_path, engine="serial")
    assert list(first) == list(second) == list(plans)
    for name, plan in plans.items():
        alone = simulate(
            plan.policies, plan.environment, horizon=40, paths=10, checkpoints=4, workers=1
        )
        assert_same(first[name], alone)
        assert_same(second[name], alone)


def test_each_cell_runs_once_ever(tmp_path: Path, ran: list[Cell[Any]]) -> None:
    steps: list[tuple[int, int]] = []

    def run(plans: dict[str, Plan]) -> None:
        ran.clear()
        steps.clear()
        sweep(plans, out=tmp_path / "new" / "cells", engine="serial", progress=note)

    def note(done: int, total: int) -> None:
        steps.append((done, total))

    run(PLANS)
    assert len(ran) == len(set(map(repr, ran))) == CELLS
    assert steps == [(done, CELLS) for done in range(CELLS + 1)]
    run(PLANS)
    assert not ran
    assert steps == [(CELLS, CELLS)]
    run({**PLANS, "longer": replace(SHARED, paths=12)})  # the last chunk grows from one path to 3
    assert [(cell.chunk, cell.paths) for cell in ran] == [(3, 3)]


def test_the_longest_cells_run_first(tmp_path: Path, ran: list[Cell[Any]]) -> None:
    sweep(
        {"short": SHARED, "long": replace(SHARED, horizon=80), **PLANS},
        out=tmp_path,
        engine="serial",
    )
    sizes = [cell.decisions * cell.paths for cell in ran]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) > 3


ENGINES = [
    ("processes", 1),
    ("processes", 2),
    ("processes", 0),
    ("dask", 2),
    pytest.param("ray", 2, marks=pytest.mark.slow),  # it takes long to start
]


@pytest.mark.parametrize(("engine", "workers"), ENGINES)
def test_every_engine_gives_the_same_bits(
    engine: str, workers: int, tmp_path: Path, expected: dict[str, bytes], ran: list[Cell[Any]]
) -> None:
    assert len(expected) == CELLS
    steps: list[int] = []
    sweep(
        PLANS,
        out=tmp_path,
        engine=engine,
        workers=workers,
        progress=lambda done, total: steps.append(done),
    )
    assert files(tmp_path) == expected
    assert steps == list(range(CELLS + 1))
    assert workers < 2 or not ran  # not quietly in this process


def test_a_dask_client_is_used_and_left_open(
    tmp_path: Path, expected: dict[str, bytes], ran: list[Cell[Any]]
) -> None:
    from distributed import Client

    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as own:
        sweep(PLANS, out=tmp_path, engine="dask")
        assert own.status == "running"
    assert len(ran) == CELLS  # its workers are threads of this process
    assert files(tmp_path) == expected


def test_everything_dask_opens_stays_on_this_machine(tmp_path: Path) -> None:
    import psutil  # type: ignore[import-untyped]

    seen: set[str] = set()

    def look(done: int, total: int) -> None:
        for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
            found = process.net_connections(kind="tcp")
            seen.update(at.laddr.ip for at in found if at.status == psutil.CONN_LISTEN)

    sweep({"a": SHARED}, out=tmp_path, engine="dask", workers=1, progress=look)
    assert seen
    assert seen <= {"127.0.0.1", "::1"}


def test_a_folder_serves_one_sweep_at_a_time(
    tmp_path: Path, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def intrude(done: int, total: int) -> None:
        with pytest.raises(ValueError, match="another run is using the folder"):
            sweep(PLANS, out=tmp_path, engine="serial")

    sweep(PLANS, out=tmp_path, engine="serial", progress=intrude)
    assert files(tmp_path) == expected
    monkeypatch.setattr("tailproof.results.files.fcntl", None)  # a system without locks
    with locked(tmp_path):
        sweep(PLANS, out=tmp_path, engine="serial")


def test_a_lock_of_the_killed_blocks_nobody(tmp_path: Path) -> None:
    script = "import sys; from pathlib import Path; from tailproof.results.files import locked\n"
    script += "with locked(Path(sys.argv[1])): print(flush=True); sys.stdin.read()"
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(ValueError, match="another run is using the folder"):
            sweep({"a": SHARED}, out=tmp_path, engine="serial")
        holder.kill()
    sweep({"a": SHARED}, out=tmp_path, engine="serial")


BEST = IdentificationPlan(
    policies={"LinGapE": LinGapE(norm_bound=2), "FromRegret": FromRegret(OFUL(), decisions=9)},
    environment=near_tie(Normal(), angle=1.0),
    paths=7,
    max_pulls=400,
)


@pytest.mark.parametrize(("engine", "workers"), [("serial", 1), ("processes", 2)])
def test_best_arms_are_cells_too(engine: str, workers: int, tmp_path: Path) -> None:
    alone = identify(BEST.policies, BEST.environment, paths=7, max_pulls=400)
    again = identify(
        BEST.policies,
        BEST.environment,
        paths=7,
        max_pulls=400,
        engine=engine,
        workers=workers,
        out=tmp_path,
    )
    assert len(files(tmp_path)) == 2 * 3
    steps: list[tuple[int, int]] = []
    mixed: dict[str, BasePlan[Any, Any]] = {"names": BEST, "regret": SHARED}
    both = sweep(
        mixed,
        out=tmp_path,
        engine="serial",
        progress=lambda *step: steps.append(step),
    )
    assert steps == [(done, 10) for done in range(6, 11)]
    assert isinstance(both["regret"], Result)
    for found in (again, both["names"]):
        assert isinstance(found, Identification)
        assert found.settings == alone.settings
        for name, verdicts in alone.verdicts.items():
            for part, array in vars(verdicts).items():
                np.testing.assert_array_equal(getattr(found.verdicts[name], part), array)


FED_BY: dict[str, tuple[dict[str, Policy[Any]], LinearBandit]] = {
    "noise": (
        {"it": OFUL()},
        LinearBandit(
            contexts=GivenArms(((1.0, 0.0), (0.6, 0.7), (0.0, 0.8))),
            theta=(0.3, 1.0),
            noise=Cauchy(),
        ),
    ),
    "policy": ({"it": Uniform()}, k_armed(Cauchy(), locations=(0.0, 0.1, 1.0))),
    "environment": ({"it": FixedArm(arm=0)}, BANDIT),
}


@pytest.mark.parametrize("stream", FED_BY)
def test_no_chunk_repeats_another(stream: str) -> None:
    """Paths that differ in one stream alone: 12 in 4 chunks, and no chunk the same as another."""
    policies, bandit = FED_BY[stream]
    regret = simulate(policies, bandit, horizon=300, paths=12).curves["it"].regret
    parts = {chunk.tobytes() for chunk in np.split(regret, 4)}
    assert len(parts) == 4


def test_no_chunk_of_best_arms_repeats_another() -> None:
    pulls = (
        identify(
            {"it": LinGapE(norm_bound=2)}, near_tie(Normal(), angle=0.8), paths=30, max_pulls=9000
        )
        .verdicts["it"]
        .pulls
    )
    assert len({chunk.tobytes() for chunk in np.split(pulls, 10)}) == 10


@pytest.mark.slow
def test_a_ray_cluster_is_used_and_left_running(tmp_path: Path, expected: dict[str, bytes]) -> None:
    import ray

    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        sweep(PLANS, out=tmp_path, engine="ray")
        assert ray.is_initialized()
    finally:
        ray.shutdown()
    assert files(tmp_path) == expected


@pytest.mark.parametrize("engine", ["serial", "processes"])
def test_a_stop_keeps_what_is_finished(
    engine: str, tmp_path: Path, expected: dict[str, bytes]
) -> None:
    def stop(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(PLANS, out=tmp_path, engine=engine, workers=2, progress=stop)
    kept = files(tmp_path)
    assert len(kept) == 2
    assert kept.items() <= expected.items()
    sweep(PLANS, out=tmp_path, engine=engine, workers=2)
    assert files(tmp_path) == expected


def test_a_failing_cell_keeps_what_is_finished(tmp_path: Path, ran: list[Cell[Any]]) -> None:
    bad = replace(SHARED, policies={"broken": Broken()}, horizon=30)  # shorter, so run last
    with pytest.raises(RuntimeError, match="broken on purpose"):
        sweep({**PLANS, "bad": bad}, out=tmp_path, engine="processes", workers=2)
    kept = len(files(tmp_path))
    assert kept > 0
    sweep(PLANS, out=tmp_path, engine="serial")
    assert len(ran) == CELLS - kept


@dataclass(frozen=True, kw_only=True)
class Broken(Uniform):
    def _choose(self, *given: Any) -> Any:
        raise RuntimeError("broken on purpose")


def test_a_full_disk_costs_no_result_and_leaves_no_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: dict[str, bytes]
) -> None:
    def full(descriptor: int) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.warns(RuntimeWarning, match="could not be kept: the disk is full"):
            results = sweep(PLANS, out=tmp_path, engine="serial")
    assert not files(tmp_path)
    (tmp_path / f"{next(iter(expected))}.77.part").write_bytes(b"of a run that was killed")
    again = sweep(PLANS, out=tmp_path, engine="serial")
    assert files(tmp_path) == expected
    for name, result in again.items():
        assert_same(results[name], result)


def test_damaged_files_are_run_again(
    tmp_path: Path, ran: list[Cell[Any]], expected: dict[str, bytes]
) -> None:
    sweep(PLANS, out=tmp_path, engine="serial")
    name, whole = next(iter(expected.items()))
    other = list(expected)[-1]
    flips = [0, 10, 20, 82, 90, 150, 160, 300, len(whole) // 2, len(whole) - 1]
    harms = {
        "empty": b"",
        "foreign": b"not a cell\n",
        "zeros": bytes(len(whole)),
        "renamed": expected[other],
        "longer": whole + b"\n",
        "without first line": whole[17:],
        "without key": whole[82:],
        **{f"cut at {at}": whole[:at] for at in (1, 16, 17, 82, 83, 147, 148, len(whole) - 1)},
        **{f"flip {at}": whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in flips},
    }
    for harm, data in harms.items():
        (tmp_path / name).write_bytes(data)
        ran.clear()
        sweep(PLANS, out=tmp_path, engine="serial")
        assert len(ran) == 1, harm
        assert files(tmp_path) == expected, harm


def test_foreign_files_stay(tmp_path: Path) -> None:
    strangers = {"notes.txt": b"mine", "film.part": b"mine", "a.cell": b"mine"}
    for name, data in strangers.items():
        (tmp_path / name).write_bytes(data)
    sweep({"a": SHARED}, out=tmp_path, engine="serial")
    assert strangers.items() <= files(tmp_path).items()


def given(vectors: Any) -> Plan:
    bandit = LinearBandit(contexts=GivenArms(vectors), theta=(1.0, 0.0), noise=Cauchy())
    return replace(SHARED, environment=bandit, paths=1)


MANY = np.random.default_rng(0).normal(size=(600, 2))
NUDGED = np.where(np.arange(600)[:, None] == 300, np.nextafter(MANY, 2), MANY)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (SHARED, replace(SHARED, seed=1)),
        (SHARED, replace(SHARED, checkpoints=5)),
        (SHARED, replace(SHARED, policies={"o": OFUL()})),
        (SHARED, replace(SHARED, policies={"OFUL": OFUL(delta=0.010000000000000002)})),
        (SHARED, replace(SHARED, environment=k_armed(Cauchy(), locations=(0.0, 1.0)))),
        (given(MANY), given(NUDGED)),
        (replace(SHARED, paths=1), replace(SHARED, paths=2)),
    ],
)
def test_other_settings_are_other_cells(
    one: Plan, two: Plan, tmp_path: Path, ran: list[Cell[Any]]
) -> None:
    sweep({"one": one}, out=tmp_path, engine="serial")
    before = len(ran)
    sweep({"two": two}, out=tmp_path, engine="serial")
    assert len(ran) == before + len(list(two.cells()))


@dataclass(frozen=True, kw_only=True, eq=False)
class Weighted(Uniform):
    """A policy with an array among its settings."""

    weights: Any


def test_arrays_of_settings_count_to_the_last_digit() -> None:
    one, two = (replace(SHARED, policies={"it": Weighted(weights=x)}) for x in (MANY, NUDGED))
    assert (
        not sweeps._cells_by_key("", one, keep=True).keys()
        & sweeps._cells_by_key("", two, keep=True).keys()
    )


def test_a_further_chunk_is_no_further_seed() -> None:
    (_, second, *_), (first, *_) = (replace(SHARED, seed=seed).cells() for seed in (0, 1))
    assert (second.chunk, first.chunk) == (1, 0)
    assert second.stream("noise").random() != first.stream("noise").random()


def test_chunks_are_put_together_for_each_policy() -> None:
    """Four chunks of each: arm 0 loses 1 at each pull and arm 1 nothing."""
    arms: dict[str, Policy[Any]] = {"bad": FixedArm(arm=0), "good": FixedArm(arm=1)}
    result = simulate(arms, k_armed(Cauchy(), locations=(0.0, 1.0)), horizon=2, paths=10)
    assert result.curves["bad"].regret[:, -1].tolist() == [2] * 10
    assert result.curves["good"].regret[:, -1].tolist() == [0] * 10


def test_other_versions_are_other_cells(
    tmp_path: Path, ran: list[Cell[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep({"a": SHARED}, out=tmp_path, engine="serial")
    monkeypatch.setattr("tailproof.simulation.sweeps.provenance", lambda code: {"numpy": "99"})
    sweep({"a": SHARED}, out=tmp_path, engine="serial")
    assert len(ran) == 2 * len(list(SHARED.cells()))


@dataclass(frozen=True, kw_only=True)
class Opaque(Uniform):
    rule: Any = test_other_versions_are_other_cells


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"plans": {}}, "plans must be a mapping with at least one plan, got {}"),
        ({"plans": {"a": 3}}, r"plans\['a'\] must be a plan, got 3"),
        (
            {"engine": "threads"},
            "engine must be one of serial, processes, dask, ray, compiled, cuda",
        ),
        ({"workers": -1}, "workers must be a whole number of at least 0 and at most 256, got -1"),
        ({"out": Path(__file__)}, "out must be a folder, got '.*test_sweep.py'"),
        (
            {"plans": {"a": replace(SHARED, policies={"a": Opaque()})}},
            r"out cannot be used with Opaque\(.* its repr shows an address in place of a setting",
        ),
    ],
)
def test_refusals(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        sweep(**{"plans": PLANS, "out": tmp_path, "engine": "serial", **settings})
    assert not files(tmp_path)


@pytest.mark.parametrize(("engine", "package"), [("dask", "distributed"), ("ray", "ray")])
def test_a_missing_package_is_named(
    engine: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    message = (
        rf"engine '{engine}' needs the package {package}: pip install '{engine}.*\.\[{engine}\]'"
    )
    with pytest.raises(ValueError, match=message):
        sweep(PLANS, out=tmp_path, engine=engine)


def test_joblib_is_loaded_when_processes_are_asked_for() -> None:
    script = """
import sys
from tailproof import UCB1, environments, noise, simulate
assert not {"joblib", "threadpoolctl", "distributed", "ray"} & set(sys.modules)
bandit = environments.k_armed(noise.Cauchy(), locations=(0.0, 1.0))
simulate({"a": UCB1()}, bandit, horizon=9, paths=2)
assert "joblib" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_cell_knows_nothing_of_its_plan() -> None:
    """What does not change the result of a cell does not change its key either."""
    cell, *_ = SHARED.cells()
    assert pickle.loads(pickle.dumps(cell)) == cell
    keys = [
        set(sweeps._cells_by_key("", plan, keep=True))
        for plan in (SHARED, PLANS["beside"], replace(SHARED, paths=30), PLANS["other noise"])
    ]
    assert keys[0] < keys[1]
    assert len(keys[0] & keys[2]) == 3  # all but the last, smaller chunk
    assert not keys[0] & keys[3]
    alone = replace(BEST, policies={"LinGapE": LinGapE(norm_bound=2, delta=0.3)})
    same = replace(alone, policies={"LinGapE": LinGapE(norm_bound=2)}, delta=0.3)
    assert (
        sweeps._cells_by_key("", alone, keep=True).keys()
        == sweeps._cells_by_key("", same, keep=True).keys()
    )


SCRIPT = """
import os, signal, sys, threading
from pathlib import Path
from tailproof import OFUL, Curves, Filtered, Plan, environments, noise
from tailproof.simulation.sweeps import sweep

plans = {
    f"seed {seed}": Plan(
        policies={"OFUL": OFUL(), "filtered": Filtered(OFUL(), repeats=3)},
        environment=environments.neutral(noise.Cauchy(), arms=10, dim=5),
        horizon=200,
        paths=3,
        seed=seed,
    )
    for seed in range(20)
}
out, engine, point, delay = sys.argv[1:]

def kill_soon(done, total):
    if done >= int(point):
        threading.Timer(float(delay), os.killpg, (0, signal.SIGKILL)).start()

sweep(plans, out=Path(out), engine=engine, workers=2, progress=kill_soon)
"""


@pytest.mark.slow
def test_a_killed_sweep_goes_on_and_ends_with_the_same_bytes(tmp_path: Path) -> None:
    """Three kills at random moments, each of a sweep that resumes the one before."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"

    def play(out: Path, engine: str, point: int, delay: float = 0) -> int:
        command = [sys.executable, "-c", SCRIPT, str(out), engine, str(point), str(delay)]
        return subprocess.run(command, start_new_session=True, check=False).returncode

    assert play(whole, "serial", point=99) == 0
    expected = files(whole)
    assert len(expected) == 40

    rng = random.Random(1)
    finished: dict[Path, int] = {}
    for i in range(3):
        point = 12 * i + rng.randrange(5)
        engine = ("serial", "processes")[i % 2]
        assert play(cut, engine, point, rng.uniform(0, 0.05)) == -signal.SIGKILL
        for path in cut.glob("*.cell"):
            assert path.read_bytes() == expected[path.name]
            finished.setdefault(path, path.stat().st_mtime_ns)
        assert point <= len(finished) < len(expected)

    assert play(cut, "serial", point=99) == 0
    assert files(cut) == expected
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
