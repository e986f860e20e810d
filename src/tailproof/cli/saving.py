"""Folders of results: complete, or continued by the same command."""

import csv
import io
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from tailproof.cli.output import ReportProgress, progress_bar, say_where

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tailproof.research.gauntlet import Score
    from tailproof.results import Result

__all__ = [
    "Run",
    "prepared",
    "save_picture",
    "save_result",
    "save_score",
    "unused",
    "write_table",
]

R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")
_COLUMNS = ("mean", "standard_error", "median", "low", "high", "decisions", "pulls")


class Simulation(Protocol[R_co]):
    """Simulates, keeps its cells in a folder, and reports progress."""

    def __call__(self, *, out: Path | None, progress: ReportProgress) -> R_co:
        """Return the result."""


class Run(NamedTuple):
    """Simulates with a progress bar; results go to `folder`, if it is not None."""

    folder: Path | None

    def __call__(self, task: str, simulation: Simulation[R]) -> R:
        """Return the result of the simulation."""
        cells = self.folder and self.folder / "cells"
        with progress_bar(task) as progress:
            return simulation(out=cells, progress=progress)


@contextmanager
def prepared(out: Path | None, *files: str) -> Iterator[Run]:
    """Give a run the folder `out` to write `files` in.

    Until the run is complete, its finished cells are in `out/cells`. After a stop or a full disk
    they stay there, and the same command continues. A complete folder is never written to.
    """
    if out is None:
        yield Run(None)
        return
    cells = out / "cells"
    ok = not out.exists() or (out.is_dir() and (cells.is_dir() or not any(out.iterdir())))
    if not ok:
        raise ValueError(f"out must be a folder that does not exist yet, or is empty, got {out}")
    made = not out.exists()
    out.mkdir(parents=True, exist_ok=True)
    names = {path.name for path in out.iterdir() if path.suffix != ".part"}
    if strange := names - {"cells", *files}:
        raise ValueError(f"{out} contains other files: {', '.join(sorted(strange))}")
    for leftover in [*out.glob("*.part"), *(out / name for name in files)]:
        leftover.unlink(missing_ok=True)
    try:
        yield Run(out)
    except BaseException:
        if not any(cells.glob("*.cell")):
            shutil.rmtree(out)
            if not made:
                out.mkdir()
        raise
    shutil.rmtree(cells)
    say_where("Written to", out)


def save_result(result: "Result", setting: str, folder: Path, title: str | None) -> None:
    """Write curves and a table of final regrets, and with a title also a picture."""
    from tailproof.figures import regret_figure

    result.save(folder / "result.npz")
    write_table(setting, result, folder / "table.csv")
    if title is not None:
        regret_figure({title: result}).savefig(folder / "regret.png")


def save_score(score: "Score", command: str, folder: Path) -> None:
    """Write the score of a gauntlet, its page with the command, and its picture."""
    score.save(folder / "score.npz")
    (folder / "gauntlet.md").write_text(score.to_markdown(command), encoding="utf-8")
    score.plot().savefig(folder / "gauntlet.png")


def write_table(setting: str, result: "Result", file: Path) -> None:
    """Write the final regret of every policy as comma-separated values."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow(["setting", "policy", *_COLUMNS])
    for name, row in result.summary().items():
        writer.writerow([setting, name, *(row[column] for column in _COLUMNS)])
    file.write_text(stream.getvalue(), encoding="utf-8", newline="")


def unused(option: str, file: Path | None) -> None:
    """Raise ``ValueError`` if a file for a picture exists already."""
    from tailproof.checks import require

    if file is not None:
        require(not file.exists(), option, "a file that does not exist yet", str(file))


def save_picture(figure: "Figure", file: Path) -> None:
    """Write a picture in the format of the file's suffix, all of it or nothing."""
    from tailproof.results.files import whole_file

    with whole_file(file) as picture:
        figure.savefig(picture, format=file.suffix[1:] or "png")
