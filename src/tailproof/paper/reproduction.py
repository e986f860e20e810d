"""A folder in which exhibits are simulated, kept and resumed."""

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

from tailproof.checks import require, whole
from tailproof.paper import EXHIBITS, SIZES, select
from tailproof.paper.exhibit import Found
from tailproof.results import Result, provenance
from tailproof.results.identification import Identification
from tailproof.simulation.engines import check_engine
from tailproof.simulation.sweeps import sweep

__all__ = ["Reproduction", "reproduce"]

_FORMAT = "tailproof reproduction 1"


@dataclass(frozen=True)
class Reproduction:
    """What a folder holds: one size, one seed, one set of versions, and the finished exhibits."""

    out: Path
    size: str
    seed: int
    versions: dict[str, str]
    seconds: dict[str, float] = field(default_factory=dict)
    """The time that each finished exhibit took."""
    files: dict[str, dict[str, str]] = field(default_factory=dict)
    """The files of its results, by name."""

    @classmethod
    def load(cls, out: Path) -> Self:
        """Read the description that `save` wrote."""
        try:
            record: dict[str, Any] = json.loads((out / "run.json").read_text(encoding="utf-8"))
            require(record.pop("format") == _FORMAT, "format", _FORMAT, record)
            return cls(out=out, **record)
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise ValueError(
                f"out must be a folder written by tailproof reproduce, got {str(out)!r}"
            ) from error

    def save(self) -> None:
        """Write the description in one step."""
        record = {"format": _FORMAT, **asdict(self)}
        del record["out"]
        self.out.mkdir(parents=True, exist_ok=True)
        part = self.out / "run.part"
        part.write_text(json.dumps(record, indent=2), encoding="utf-8")
        part.replace(self.out / "run.json")

    def results(self, name: str) -> dict[str, Found]:
        """Load the results of a finished exhibit."""
        folder = self.out / "results" / name
        return {
            key: (Identification if file.startswith("names") else Result).load(folder / file)
            for key, file in self.files[name].items()
        }

    def keep(self, name: str, results: Mapping[str, Found], seconds: float) -> None:
        """Save the results of an exhibit, each in one step; the time counts when it is new."""
        folder = self.out / "results" / name
        files = {}
        for key, result in results.items():
            kind = "names" if isinstance(result, Identification) else "regret"
            files[key] = re.sub(r"[^\w.]+", "-", f"{kind} {key}") + ".npz"
            folder.mkdir(parents=True, exist_ok=True)
            part = folder / "part"
            part.unlink(missing_ok=True)
            result.save(part).replace(folder / files[key])
        self.files[name] = files
        self.seconds.setdefault(name, seconds)
        self.save()


def reproduce(
    names: Iterable[str],
    out: Path,
    *,
    size: str = "quick",
    seed: int = 0,
    engine: str = "processes",
    workers: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
) -> Reproduction:
    """Simulate the named exhibits into a folder; what is there already is not simulated again.

    Parameters
    ----------
    names : iterable of str
        Figures, or "all"; see `select`.
    out : Path
        A new folder, or one of the same size, seed and versions.
    size : "smoke", "quick" or "paper"
        How many paths and pulls.
    seed, engine, workers :
        As for `sweep`.
    progress : callable, optional
        Called with the exhibit, its finished cells, and their number.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = reproduce(["overview"], Path(folder) / "new", size="smoke", engine="serial")
    ...     sorted(run.results("overview"))
    ['df = 0.5', 'df = 1', 'df = 1.02', 'df = 3']
    """
    require(size in SIZES, "size", f"one of {', '.join(SIZES)}", size)
    whole("seed", seed, at_least=0)
    check_engine(engine, workers)
    selected = select(names)
    run = Reproduction(out=out, size=size, seed=seed, versions=provenance())
    if out.exists() and any(out.iterdir()):
        before = Reproduction.load(out)
        same = (before.size, before.seed, before.versions) == (size, seed, run.versions)
        rule = f"a new folder, or one of size {size}, seed {seed} and the versions installed"
        require(same, "out", rule, str(out))
        run = before
    run.save()
    for name in selected:
        step = None if progress is None else partial(progress, name)
        begin = time.perf_counter()
        cells = partial(sweep, out=out / "cells", engine=engine, workers=workers, progress=step)
        results = EXHIBITS[name].run(cells, size, seed)
        run.keep(name, results, time.perf_counter() - begin)
    return run
