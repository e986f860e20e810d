"""Many simulations at once: engines, progress, and resuming after a stop."""

import io
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from hashlib import sha256
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import joblib
import numpy as np

from tailproof.checks import require, whole
from tailproof.results import Curves, Result, provenance
from tailproof.simulation.plan import Cell, Plan

__all__ = ["check_engine", "sweep"]

Work = tuple[str, Cell]
"""A cell and the key that stands for it."""


def sweep(
    plans: Mapping[str, Plan],
    *,
    out: str | Path,
    engine: str = "processes",
    workers: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Result]:
    """Run the cells of many plans, keep each as it finishes, and return a result for each plan.

    Parameters
    ----------
    plans : mapping from names to plans
        A cell that several plans share is run once.
    out : str or Path
        The folder of finished cells, for one sweep at a time. A sweep that was stopped, or
        killed, goes on from there, and a finished one runs nothing; damaged files are run again.
        A cell is known by its settings and the versions it ran with, so a policy of your own
        that changed its code, but neither its name nor its settings, needs a new folder.
    engine : "serial", "processes", "dask" or "ray"
        Results are the same bit for bit. "dask" and "ray" use the client or cluster you are
        connected to, or start a local one and stop it again; a script that lets dask start one
        needs the line ``if __name__ == "__main__":``.
    workers : int
        Processes to start; 0 means one for each core. A dask client keeps those it has.
    progress : callable, optional
        Called with the cells done and their total, at the start and after each cell.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from tailproof import OFUL, Plan, environments, noise
    >>> plans = {
    ...     f"df = {df}": Plan(
    ...         policies={"OFUL": OFUL()},
    ...         environment=environments.neutral(noise.StudentT(df), arms=5, dim=3),
    ...         horizon=100,
    ...         paths=10,
    ...     )
    ...     for df in (3, 1)
    ... }
    >>> with TemporaryDirectory() as folder:
    ...     results = sweep(plans, out=folder, engine="serial")
    ...     again = sweep(plans, out=folder, engine="serial", progress=print)
    2 2
    >>> bool(results["df = 3"].mean("OFUL")[-1] == again["df = 3"].mean("OFUL")[-1])
    True
    """
    require(len(plans) > 0, "plans", "at least one plan", plans)
    for name, plan in plans.items():
        require(isinstance(plan, Plan), f"plans[{name!r}]", "a plan", plan)
    check_engine(engine, workers)
    folder = Path(out)
    require(folder.is_dir() or not folder.exists(), "out", "a folder", str(out))
    folder.mkdir(parents=True, exist_ok=True)
    for leftover in folder.glob("*.cell.*.part"):
        leftover.unlink()

    versions = repr(provenance())
    keyed = {
        name: {_key(cell, versions): cell for cell in plan.cells()} for name, plan in plans.items()
    }
    cells = {key: cell for own in keyed.values() for key, cell in own.items()}
    kept = ((key, _read(folder, key)) for key in cells)
    found = {key: curves for key, curves in kept if curves is not None}
    work = [(key, cell) for key, cell in cells.items() if key not in found]
    work.sort(key=lambda item: _cost(item[1]), reverse=True)  # the longest first, for balance

    report = progress or (lambda done, total: None)
    report(len(found), len(cells))
    if work:
        with _ENGINES[engine](workers), _runs(work, engine) as runs:
            for key, curves in runs:
                _write(folder, key, curves)
                found[key] = curves
                report(len(found), len(cells))
    return {name: plan.join([found[key] for key in keyed[name]]) for name, plan in plans.items()}


def _key(cell: Cell, versions: str) -> str:
    """Name a cell by all that its curves depend on."""
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):  # arrays to the last digit
        text = repr(cell)
    rule = "of policies and environments whose repr shows their settings"
    require(" at 0x" not in text, "plans", rule, (cell.policy, cell.environment))
    return sha256(f"{text}\n{versions}".encode()).hexdigest()


def _cost(cell: Cell) -> int:
    """Guess how long a cell takes, beside others."""
    contexts = cell.environment.contexts
    return cell.decisions * cell.paths * contexts.arms * contexts.dim


def _run(key: str, cell: Cell) -> tuple[str, Curves]:
    return key, cell.run()


@contextmanager
def _runs(work: Sequence[Work], engine: str) -> Iterator[Iterator[tuple[str, Curves]]]:
    """Run cells on the engine that was started, each given as it finishes."""
    jobs = [joblib.delayed(_run)(key, cell) for key, cell in work]
    if engine == "ray":  # its joblib backend gives whole lists: rounds of one cell per worker
        size = joblib.effective_n_jobs()
        rounds = (jobs[start : start + size] for start in range(0, len(jobs), size))
        with joblib.Parallel(batch_size=1) as parallel:
            yield chain.from_iterable(map(parallel, rounds))
        return
    runs = joblib.Parallel(batch_size=1, return_as="generator_unordered")(jobs)
    try:
        yield runs
    finally:
        with warnings.catch_warnings():  # joblib warns of cells cut off, as they should be here
            warnings.simplefilter("ignore", UserWarning)
            runs.close()


@contextmanager
def _dask(workers: int) -> Iterator[None]:
    import distributed

    try:
        found = nullcontext(distributed.get_client())
    except ValueError:  # there is none
        found = distributed.Client(
            n_workers=workers or joblib.cpu_count(), threads_per_worker=1, dashboard_address=":0"
        )
    with found as client, joblib.parallel_config("dask", client=client):
        yield


@contextmanager
def _ray(workers: int) -> Iterator[None]:
    import ray
    from ray.util.joblib import register_ray

    start = not ray.is_initialized()
    if start:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a sweep tells nobody
        ray.init(
            address="local",
            num_cpus=workers or joblib.cpu_count(),
            include_dashboard=False,
            log_to_driver=False,
            logging_level="ERROR",
        )
    try:
        register_ray()
        with joblib.parallel_config("ray", n_jobs=workers or -1):
            yield
    finally:
        if start:
            ray.shutdown()


_ENGINES: dict[str, Callable[[int], AbstractContextManager[object]]] = {
    "serial": lambda workers: joblib.parallel_config("sequential", n_jobs=1),
    "processes": lambda workers: joblib.parallel_config(
        "loky", n_jobs=workers or -1, inner_max_num_threads=1
    ),
    "dask": _dask,
    "ray": _ray,
}


_PACKAGES = {"dask": "distributed", "ray": "ray"}


def check_engine(engine: str, workers: int) -> None:
    """Refuse an engine that is unknown or not installed, and a number of workers below zero."""
    require(engine in _ENGINES, "engine", f"one of {', '.join(_ENGINES)}", engine)
    whole("workers", workers, at_least=0)
    package = _PACKAGES.get(engine)
    if package is not None and find_spec(package) is None:
        raise ValueError(
            f"engine {engine!r} needs the package {package}: pip install 'tailproof[{engine}]'"
        )


def _sealed(key: str, body: bytes) -> bytes:
    """Put the key and a checksum of everything before the arrays."""
    head = f"tailproof cell 1\n{key}\n".encode()
    return head + sha256(head + body).hexdigest().encode() + b"\n" + body


def _write(folder: Path, key: str, curves: Curves) -> None:
    """Write a cell's file, whole or not at all."""
    body = io.BytesIO()
    for array in (curves.regret, curves.decisions, curves.error):
        if array is not None:
            np.save(body, array, allow_pickle=False)
    part = folder / f"{key}.cell.{os.getpid()}.part"
    with part.open("wb") as file:
        file.write(_sealed(key, body.getvalue()))
        file.flush()
        os.fsync(file.fileno())
    part.replace(folder / f"{key}.cell")


def _read(folder: Path, key: str) -> Curves | None:
    """Read what `_write` wrote for this key; anything else is nothing."""
    try:
        data = (folder / f"{key}.cell").read_bytes()
    except FileNotFoundError:
        return None
    body = data[len(_sealed(key, b"")) :]
    if data != _sealed(key, body):
        return None
    file = io.BytesIO(body)
    regret, decisions = (np.load(file, allow_pickle=False) for _ in range(2))
    error = np.load(file, allow_pickle=False) if file.tell() < len(body) else None
    return Curves(regret=regret, decisions=decisions, error=error)
