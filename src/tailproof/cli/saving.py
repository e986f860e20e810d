"""Folders of results: complete, or continued by the same command."""

import csv
import io
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tailproof.cli.output import progress_bar, say_where

if TYPE_CHECKING:
    from tailproof.results import Result

__all__ = ["Run", "prepared", "write_table"]

R = TypeVar("R")
_COLUMNS = ("mean", "standard_error", "median", "low", "high", "decisions", "pulls")


class Run(NamedTuple):
    """Simulates with a progress bar; results go to `folder`, if it is not None."""

    folder: Path | None

    def __call__(self, task: str, simulate: Callable[..., R], *args: Any, **settings: Any) -> R:
        """Return the result of the simulation."""
        cells = self.folder and self.folder / "cells"
        with progress_bar(task) as progress:
            return simulate(*args, **settings, out=cells, progress=progress)


@contextmanager
def prepared(out: Path | None, *files: str) -> Iterator[Run]:
    """Give a run a folder beside `out` to write `files` in; it is renamed to `out` at the end.

    After a stop or a full disk the finished cells stay there, and the same command continues.
    """
    if out is None:
        yield Run(None)
        return
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise ValueError(f"out must be a folder that does not exist yet, or is empty, got {out}")
    place = out.resolve()
    part = place.with_name(f"{place.name}.unfinished")
    part.mkdir(parents=True, exist_ok=True)
    strange = {path.name for path in part.iterdir() if path.suffix != ".part"} - {"cells", *files}
    if strange:
        raise ValueError(f"{part} contains other files: {', '.join(sorted(strange))}")
    for path in part.iterdir():
        if path.is_file():
            path.unlink()
    try:
        yield Run(part)
        if place.exists():
            place.rmdir()
        part.replace(place)
        shutil.rmtree(place / "cells")
    except BaseException:
        if part.exists() and not any(part.glob("cells/*.cell")):
            shutil.rmtree(part)
        raise
    say_where("Written to", out)


def write_table(setting: str, result: "Result", file: Path) -> None:
    """Write the final regret of every policy as comma-separated values."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow(["setting", "policy", *_COLUMNS])
    for name, row in result.summary().items():
        writer.writerow([setting, name, *(row[column] for column in _COLUMNS)])
    file.write_text(stream.getvalue(), encoding="utf-8", newline="")
