"""A folder of results that is there whole, or can be gone on with."""

import csv
import io
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tailproof.checks import require
from tailproof.results import Result

__all__ = ["prepared", "write_table"]

_COLUMNS = ("mean", "standard_error", "median", "low", "high", "decisions", "pulls")


@contextmanager
def prepared(out: Path | None, *files: str) -> Iterator[Path | None]:
    """Give the folder beside `out` in which a run is made ready; it takes the name at the end.

    What a stop or a full disk leaves there is finished cells, for the same command to go on from.
    """
    if out is None:
        yield None
        return
    empty = not out.exists() or (out.is_dir() and not any(out.iterdir()))
    require(empty, "out", "a folder that does not exist yet, or is empty", str(out))
    place = out.resolve()
    part = place.with_name(f"{place.name}.unfinished")
    part.mkdir(parents=True, exist_ok=True)
    strange = {path.name for path in part.iterdir() if path.suffix != ".part"} - {"cells", *files}
    require(not strange, "out", f"without {part.name} of other files beside it", str(out))
    for path in part.iterdir():
        if path.is_file():
            path.unlink()
    try:
        yield part
        part.replace(place)
        shutil.rmtree(place / "cells")
    except BaseException:
        if part.exists() and not any(part.glob("cells/*.cell")):
            shutil.rmtree(part)
        raise


def write_table(results: Mapping[str, Result], file: Path) -> None:
    """Write the final regret of every policy as comma-separated values."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow(["setting", "policy", *_COLUMNS])
    for setting, result in results.items():
        for name, row in result.summary().items():
            writer.writerow([setting, name, *(row[column] for column in _COLUMNS)])
    file.write_text(stream.getvalue(), encoding="utf-8", newline="")
