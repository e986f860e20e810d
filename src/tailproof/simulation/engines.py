"""Where cells run: in this process, in others, on dask or on ray; or by compiled code."""

import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from itertools import chain
from typing import Any

from tailproof.checks import require, whole
from tailproof.extras import install_command
from tailproof.results.base import PolicyResult
from tailproof.results.provenance import Code
from tailproof.simulation.cells import Cell

__all__ = ["check_engine", "code_of", "running"]

_CODES: dict[str, Code] = {
    **dict.fromkeys(("serial", "processes", "dask", "ray"), "numpy"),
    "compiled": "compiled",
    "cuda": "cuda",
}
_PACKAGES = {"dask": "distributed", "ray": "ray", "compiled": "numba", "cuda": "numba.cuda"}
_MOST_WORKERS = 256
"""Where there are fewer cores: more processes would only take memory."""


def check_engine(engine: str, workers: int) -> None:
    """Refuse an engine that is unknown or not installed, and far more workers than cores."""
    require(engine in _CODES, "engine", f"one of {', '.join(_CODES)}", engine)
    whole("workers", workers, at_least=0, at_most=max(_MOST_WORKERS, os.cpu_count() or 1))
    package = _PACKAGES.get(engine)
    if package is not None and not _installed(package):
        raise ValueError(
            f"engine {engine!r} needs the package {package}: {install_command(engine)}"
        )


def code_of(engine: str) -> Code:
    """Return the function that computes the results of an engine."""
    return _CODES[engine]


def _installed(package: str) -> bool:
    """Return whether a package can be imported; only the package that holds it is imported."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # of a package that it is part of
        return False


@contextmanager
def running(
    work: Sequence[tuple[str, Cell[Any]]], engine: str, workers: int
) -> Iterator[Iterable[tuple[str, PolicyResult]]]:
    """Run cells, each with a key; yields an iterator over keys and results as they finish."""
    if not work or engine in ("serial", "cuda") or (engine == "processes" and workers == 1):
        yield (_run(_Folders(), key, cell) for key, cell in work)
        return
    if engine == "compiled":
        yield _in_threads(work, workers or os.cpu_count() or 1)
        return
    import joblib

    folders = _Folders(sys.path)
    jobs = [joblib.delayed(_run)(folders, key, cell) for key, cell in work]
    with _backend(engine, min(workers, len(work))):
        if engine == "ray":  # its joblib backend gives whole lists: rounds of one job per worker
            size = joblib.effective_n_jobs()
            rounds = (jobs[at : at + size] for at in range(0, len(jobs), size))
            with joblib.Parallel(batch_size=1) as parallel:
                yield chain.from_iterable(map(parallel, rounds))
            return
        runs = joblib.Parallel(batch_size=1, return_as="generator_unordered")(jobs)
        try:
            yield runs
        finally:
            with warnings.catch_warnings():  # joblib warns of cancelled jobs, which are intended
                warnings.simplefilter("ignore", UserWarning)
                runs.close()


def _in_threads(
    work: Sequence[tuple[str, Cell[Any]]], workers: int
) -> Iterator[tuple[str, PolicyResult]]:
    """Run cells of compiled code, which lets other threads run."""
    with ThreadPoolExecutor(workers) as pool:
        try:
            for run in as_completed([pool.submit(_run, _Folders(), *job) for job in work]):
                yield run.result()
        finally:
            pool.shutdown(cancel_futures=True)


class _Folders(tuple[str, ...]):
    """Where modules are found, for workers that began before a user added a folder.

    It comes before a cell and is unpickled first, so that the cell's classes can be imported.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _search, (*self,)


def _search(*folders: str) -> _Folders:
    sys.path.extend(folder for folder in folders if folder not in sys.path)
    return _Folders(folders)


def _run(_: _Folders, key: str, cell: Cell[Any]) -> tuple[str, PolicyResult]:
    return key, cell.run()


@contextmanager
def _backend(engine: str, workers: int) -> Iterator[None]:
    """Make joblib use an engine; a cluster that has to be started is stopped again."""
    import joblib

    cores = workers or joblib.cpu_count()
    with ExitStack() as stack:
        if engine == "processes":
            backend = joblib.parallel_config("loky", n_jobs=workers or -1, inner_max_num_threads=1)
        elif engine == "dask":
            import distributed

            try:
                client = distributed.get_client()
            except ValueError:  # there is none yet
                local = distributed.Client(
                    n_workers=cores, threads_per_worker=1, dashboard_address="127.0.0.1:0"
                )
                client = stack.enter_context(local)
            backend = joblib.parallel_config("dask", client=client)
        else:
            import ray
            from ray.util.joblib import register_ray

            if not ray.is_initialized():
                os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
                ray.init(
                    address="local",
                    num_cpus=cores,
                    logging_level="ERROR",
                    include_dashboard=False,
                    log_to_driver=False,
                )
                stack.callback(ray.shutdown)
            register_ray()
            backend = joblib.parallel_config("ray", n_jobs=workers or -1)
        with backend:
            yield
