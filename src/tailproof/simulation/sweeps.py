"""Many simulations at once: cells that run anywhere and are kept, so that a sweep can resume."""

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
from tailproof.results import SweepResult
from tailproof.results.base import PolicyResult
from tailproof.results.files import locked, whole_file
from tailproof.results.provenance import Code, provenance
from tailproof.simulation.cells import BasePlan, Cell
from tailproof.simulation.code import library_code, own_code
from tailproof.simulation.engines import check_engine, code_of, running
from tailproof.simulation.progress import shown

__all__ = ["sweep"]

R = TypeVar("R")


def sweep(
    plans: Mapping[str, BasePlan[Any, R]],
    *,
    out: str | Path | None = None,
    engine: str = "processes",
    workers: int = 0,
    progress: Callable[[int, int], None] | bool | None = None,
) -> SweepResult[R]:
    """Run the cells of many plans, keep each as it finishes, and return a result for each plan.

    Parameters
    ----------
    plans : mapping from names to plans
        `Plan` for regret, `IdentificationPlan` for best arms. A cell that several plans share
        is run once.
    out : str, Path or None
        The folder of finished cells, for one sweep at a time; None keeps nothing. A sweep that
        was stopped or killed resumes there, and a finished one runs nothing. Damaged files are run
        again, and so are the cells of a policy of yours that you edited.
    engine : "serial", "processes", "dask", "ray", "compiled" or "cuda"
        Results of the first four are the same bit for bit. "dask" and "ray" use the client or
        cluster you are connected to, or start a local one and stop it again; a script that lets
        dask start one needs the line ``if __name__ == "__main__":``. "compiled" (on cores) and
        "cuda" (on a GPU) play the policies of `tailproof.compiled.FORMS` as machine code, with
        other random numbers of the same laws; no path depends on how many paths are played.
    workers : int
        Processes or threads to start; 0 means one for each core. A dask client keeps its workers.
    progress : bool or callable, optional
        True shows a bar on stderr, False none; by default it comes after two seconds, on a terminal
        and in a notebook. A function gets the cells done and their total.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from tailproof import OFUL, Plan, environments, noise
    >>> bandits = {df: environments.neutral(noise.StudentT(df), arms=5, dim=3) for df in (3, 1)}
    >>> plans = {
    ...     f"df = {df}": Plan(policies={"OFUL": OFUL()}, environment=bandit, horizon=100, paths=10)
    ...     for df, bandit in bandits.items()
    ... }
    >>> with TemporaryDirectory() as folder:
    ...     results = sweep(plans, out=folder, engine="serial")
    ...     again = sweep(plans, out=folder, engine="serial", progress=print)
    2 2
    >>> bool(results["df = 3"].mean("OFUL")[-1] == again["df = 3"].mean("OFUL")[-1])
    True
    """
    _check(plans)
    check_engine(engine, workers)
    folder, code = None if out is None else Path(out), code_of(engine)
    keep = out is not None
    keyed = {name: _cells_by_key(name, plan, code, keep=keep) for name, plan in plans.items()}
    cells = {key: cell for by_key in keyed.values() for key, cell in by_key.items()}
    if folder is not None:
        require(folder.is_dir() or not folder.exists(), "out", "a folder", str(out))
        folder.mkdir(parents=True, exist_ok=True)
    with nullcontext() if folder is None else locked(folder), shown(progress) as report:
        parts = _run(cells, folder, engine, workers, report)
    joined = (plan.join([parts[k] for k in keyed[name]], code) for name, plan in plans.items())
    return SweepResult(zip(plans, joined, strict=True))


def _check(plans: Any) -> None:
    ok = isinstance(plans, Mapping) and len(plans) > 0
    require(ok, "plans", "a mapping with at least one plan", plans)
    for name, plan in plans.items():
        require(isinstance(plan, BasePlan), f"plans[{name!r}]", "a plan", plan)
        plan.check_memory()


def _run(
    cells: Mapping[str, Cell[Any]],
    folder: Path | None,
    engine: str,
    workers: int,
    report: Callable[[int, int], None],
) -> dict[str, PolicyResult]:
    """Return the results of cells, from the folder or from running them."""
    parts = {} if folder is None else _read_cells(folder, cells)
    work = [(key, cell) for key, cell in cells.items() if key not in parts]
    work.sort(key=lambda item: _cost(item[1]), reverse=True)  # the longest first, for balance
    report(len(parts), len(cells))
    with running(work, engine, workers) as runs:
        for key, part in runs:
            if folder is not None:
                _write_cell(folder, key, part)
            parts[key] = part
            report(len(parts), len(cells))
    return parts


def _cells_by_key(
    name: str, plan: BasePlan[Any, Any], code: Code = "numpy", *, keep: bool
) -> dict[str, Cell[Any]]:
    """Return the cells of a plan by key, a hash of everything that their results depend on."""
    if not keep:
        return {f"{name} {number}": cell for number, cell in enumerate(plan.cells(code))}
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):  # arrays to the last digit
        bandit, recipes = repr(plan.environment), {k: repr(p) for k, p in plan.policies.items()}
    for text in (bandit, *recipes.values()):
        if " at 0x" in text:
            raise ValueError(
                f"out cannot be used with {text}: its repr shows an address in place of a setting, "
                "so finished cells could not be told apart. Leave out a folder, or write a __repr__"
            )
    versions = (provenance(code), library_code(), own_code(plan.environment))
    shared, keyed = (type(plan).__name__, bandit, plan.seed, plan.timing(), *versions), {}
    written = {name: own_code(policy) for name, policy in plan.policies.items()}
    for cell in plan.cells(code):
        name = cell.name
        settings = (*shared, name, recipes[name], written[name], cell.chunk, cell.paths, code)
        keyed[sha256(repr(settings).encode()).hexdigest()] = cell
    return keyed


def _cost(cell: Cell[Any]) -> int:
    """Guess how long a cell takes compared to others."""
    contexts = cell.environment.contexts
    return cell.decisions * cell.paths * contexts.arms * contexts.dim


def _with_checksum(key: str, body: bytes) -> bytes:
    """Return the file of a cell: its key, a checksum of key and arrays, and its arrays."""
    head = f"tailproof cell 3\n{key}\n".encode()
    return head + sha256(head + body).hexdigest().encode() + b"\n" + body


def _write_cell(folder: Path, key: str, result: PolicyResult) -> None:
    """Write the file of a cell, all of it or nothing."""
    body = io.BytesIO()
    np.savez(body, allow_pickle=False, **result.arrays())
    try:
        with whole_file(folder / f"{key}.cell") as file:
            file.write(_with_checksum(key, body.getvalue()))
    except OSError as error:
        warnings.warn(f"a finished cell could not be kept: {error}", RuntimeWarning, stacklevel=3)


def _read_cells(folder: Path, cells: Mapping[str, Cell[Any]]) -> dict[str, PolicyResult]:
    """Read the files that `_keep` wrote for these cells; damaged and foreign files do not count."""
    for leftover in folder.glob("*.cell.*.part"):
        leftover.unlink()
    parts = {}
    for key, cell in cells.items():
        file = folder / f"{key}.cell"
        data = file.read_bytes() if file.is_file() else b""
        body = data[len(_with_checksum(key, b"")) :]
        if data == _with_checksum(key, body):
            with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
                parts[key] = cell.kind.of(dict(arrays))
    return parts
