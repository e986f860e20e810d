"""Where cells run: in this process, in others, on dask or on ray."""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from itertools import chain

from tailproof.checks import require, whole
from tailproof.results.base import PolicyResult
from tailproof.simulation.cells import Cell

__all__ = ["check_engine", "running"]

_MOST_WORKERS = 256
_PACKAGES = {"dask": "distributed", "ray": "ray"}


def check_engine(engine: str, workers: int) -> None:
    """Refuse an engine that is unknown or not installed, and far more workers than cores."""
    require(engine in _ENGINES, "engine", f"one of {', '.join(_ENGINES)}", engine)
    whole("workers", workers, at_least=0, at_most=max(_MOST_WORKERS, os.cpu_count() or 1))
    package = _PACKAGES.get(engine)
    if package is not None and find_spec(package) is None:
        raise ValueError(
            f"engine {engine!r} needs the package {package}: pip install 'tailproof[{engine}]'"
        )


@contextmanager
def running(
    work: Sequence[tuple[str, Cell]], engine: str, workers: int
) -> Iterator[Iterable[tuple[str, PolicyResult]]]:
    """Run cells, each with a key, and give the key and the result of each as it finishes."""
    if not work or engine == "serial" or (engine == "processes" and workers == 1):
        yield (_run(key, cell) for key, cell in work)
        return
    import joblib

    jobs = [joblib.delayed(_run)(key, cell) for key, cell in work]
    with _ENGINES[engine](min(workers, len(work))):
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
            with warnings.catch_warnings():  # joblib warns of cancelled jobs, as they should be
                warnings.simplefilter("ignore", UserWarning)
                runs.close()


def _run(key: str, cell: Cell) -> tuple[str, PolicyResult]:
    return key, cell.run()


@contextmanager
def _processes(workers: int) -> Iterator[None]:
    import joblib

    with joblib.parallel_config("loky", n_jobs=workers or -1, inner_max_num_threads=1):
        yield


@contextmanager
def _dask(workers: int) -> Iterator[None]:
    import distributed
    import joblib

    try:
        found = nullcontext(distributed.get_client())
    except ValueError:  # no client yet
        found = distributed.Client(
            n_workers=workers or joblib.cpu_count(),
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
        )
    with found as client, joblib.parallel_config("dask", client=client):
        yield


@contextmanager
def _ray(workers: int) -> Iterator[None]:
    import joblib
    import ray
    from ray.util.joblib import register_ray

    start = not ray.is_initialized()
    if start:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry from a sweep
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
    "serial": nullcontext,
    "processes": _processes,
    "dask": _dask,
    "ray": _ray,
}
