"""Many simulations at once: cells that run anywhere, are kept, and are resumed after a stop."""

import io
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tailproof.checks import require
from tailproof.results import Curves, Verdicts, provenance
from tailproof.results.files import locked, whole_file
from tailproof.simulation.engines import check_engine, running
from tailproof.simulation.work import Work, WorkCell

__all__ = ["sweep"]

R = TypeVar("R")


def sweep(
    plans: Mapping[str, Work[Any, R]],
    *,
    out: str | Path | None,
    engine: str = "processes",
    workers: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, R]:
    """Run the cells of many plans, keep each as it finishes, and return a result for each plan.

    Parameters
    ----------
    plans : mapping from names to plans
        Of regret, `Plan`, or of best arms, `IdentificationPlan`. A cell that several plans share
        is run once.
    out : str, Path or None
        The folder of finished cells, for one sweep at a time; None keeps nothing. A sweep that
        was stopped, or killed, goes on from there, and a finished one runs nothing; damaged files
        are run again. Where a cell cannot be written, a warning says so and the work goes on.
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
    ok = isinstance(plans, Mapping) and len(plans) > 0
    require(ok, "plans", "a mapping with at least one plan", plans)
    for name, plan in plans.items():
        require(isinstance(plan, Work), f"plans[{name!r}]", "a plan", plan)
    check_engine(engine, workers)
    folder = None if out is None else Path(out)
    keyed = _keyed(plans, by_settings=folder is not None)
    cells = {key: cell for own in keyed.values() for key, cell in own.items()}
    if folder is not None:
        require(folder.is_dir() or not folder.exists(), "out", "a folder", str(out))
        folder.mkdir(parents=True, exist_ok=True)

    with nullcontext() if folder is None else locked(folder):
        found = {} if folder is None else _kept(folder, cells)
        work = [(key, cell) for key, cell in cells.items() if key not in found]
        work.sort(key=lambda item: _cost(item[1]), reverse=True)  # the longest first, for balance
        report = progress or (lambda done, total: None)
        report(len(found), len(cells))
        with running(work, engine, workers) as runs:
            for key, part in runs:
                if folder is not None:
                    _keep(folder, key, part)
                found[key] = part
                report(len(found), len(cells))
    return {name: plan.join([found[key] for key in keyed[name]]) for name, plan in plans.items()}


def _keyed(
    plans: Mapping[str, Work[Any, Any]], *, by_settings: bool
) -> dict[str, dict[str, WorkCell[Any]]]:
    """Name each cell by all that its result depends on, or just by its place."""
    versions = repr(provenance())
    return {
        name: {
            _key(cell, versions) if by_settings else f"{name} {place}": cell
            for place, cell in enumerate(plan.cells())
        }
        for name, plan in plans.items()
    }


def _key(cell: WorkCell[Any], versions: str) -> str:
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):  # arrays to the last digit
        text = repr(cell)
    rule = "of policies and environments whose repr shows their settings"
    require(" at 0x" not in text, "plans", rule, (cell.policy, cell.environment))
    return sha256(f"{text}\n{versions}".encode()).hexdigest()


def _cost(cell: WorkCell[Any]) -> int:
    """Guess how long a cell takes, beside others."""
    contexts = cell.environment.contexts
    return cell.decisions * cell.paths * contexts.arms * contexts.dim


_KINDS = {kind.__name__: kind for kind in (Curves, Verdicts)}


def _sealed(key: str, body: bytes) -> bytes:
    """Put the key and a checksum of everything before the arrays."""
    head = f"tailproof cell 2\n{key}\n".encode()
    return head + sha256(head + body).hexdigest().encode() + b"\n" + body


def _keep(folder: Path, key: str, found: Curves | Verdicts) -> None:
    """Write a cell's file, whole or not at all."""
    arrays = {name: array for name, array in vars(found).items() if array is not None}
    body = io.BytesIO()
    body.write(f"{type(found).__name__} {' '.join(arrays)}\n".encode())
    for array in arrays.values():
        np.save(body, array, allow_pickle=False)
    try:
        with whole_file(folder / f"{key}.cell") as file:
            file.write(_sealed(key, body.getvalue()))
    except OSError as error:
        warnings.warn(f"a finished cell could not be kept: {error}", RuntimeWarning, stacklevel=3)


def _kept(folder: Path, keys: Mapping[str, object]) -> dict[str, Any]:
    """Read what `_keep` wrote for these keys; anything else is nothing."""
    for leftover in folder.glob("*.cell.*.part"):
        leftover.unlink()
    found = {}
    for key in keys:
        file = folder / f"{key}.cell"
        data = file.read_bytes() if file.is_file() else b""
        body = data[len(_sealed(key, b"")) :]
        if data == _sealed(key, body):
            stream = io.BytesIO(body)
            kind, *names = stream.readline().decode().split()
            arrays = {name: np.load(stream, allow_pickle=False) for name in names}
            found[key] = _KINDS[kind](**arrays)
    return found
