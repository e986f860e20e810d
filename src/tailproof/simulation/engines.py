"""Where cells run: in this process, in others, on dask or on ray."""

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from itertools import chain
from typing import Protocol, TypeVar

import joblib

from tailproof.checks import require, whole

__all__ = ["Job", "check_engine", "running"]

F = TypeVar("F")
F_co = TypeVar("F_co", covariant=True)


class Job(Protocol[F_co]):
    """A piece of work that runs anywhere, with the same bits."""

    def run(self) -> F_co:
        """Do the work."""


_MOST_WORKERS = 256
_PACKAGES = {"dask": "distributed", "ray": "ray"}


def check_engine(engine: str, workers: int) -> None:
    """Refuse an engine that is unknown or not installed, and a senseless number of workers."""
    require(engine in _ENGINES, "engine", f"one of {', '.join(_ENGINES)}", engine)
    whole("workers", workers, at_least=0, at_most=max(_MOST_WORKERS, joblib.cpu_count()))
    package = _PACKAGES.get(engine)
    if package is not None and find_spec(package) is None:
        raise ValueError(
            f"engine {engine!r} needs the package {package}: pip install 'tailproof[{engine}]'"
        )


@contextmanager
def running(
    work: Sequence[tuple[str, Job[F]]], engine: str, workers: int
) -> Iterator[Iterable[tuple[str, F]]]:
    """Run jobs, each named by a key, and give what each found as it finishes."""
    if not work:
        yield ()
        return
    if engine == "processes" and workers == 1:
        engine = "serial"
    jobs = [joblib.delayed(_run)(key, job) for key, job in work]
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
            with warnings.catch_warnings():  # joblib warns of jobs cut off, as they should be here
                warnings.simplefilter("ignore", UserWarning)
                runs.close()


def _run(key: str, job: Job[F]) -> tuple[str, F]:
    return key, job.run()


@contextmanager
def _dask(workers: int) -> Iterator[None]:
    import distributed

    try:
        found = nullcontext(distributed.get_client())
    except ValueError:  # there is none
        found = distributed.Client(
            n_workers=workers or joblib.cpu_count(),
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
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
