"""Open the argument of `records` as a source of columns: a file, a frame, a journal, arrays."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tailproof.tables.files import open_file
from tailproof.tables.frames import Frame, arrow_table, is_frame
from tailproof.tables.journals import is_export, is_journal, of_journal, read_journal, requests
from tailproof.tables.sources import Arrays, Source

__all__ = ["open_table"]


def open_table(table: Any, sheet: str | None = None) -> Source:
    """Return a file, data frame or journal as a source; without a table the source is arrays."""
    if table is None:
        return Arrays()
    if is_journal(table):
        return _journal(*read_journal(str(table)))
    if isinstance(table, str | Path):
        source = open_file(Path(table), sheet)
        if not is_export(source.names):
            return source
        import pandas

        # pandas 2 rounds the last bit wrongly unless it is asked not to; pandas 3 needs no asking
        old = pandas.__version__.startswith("2.")
        exactly: Any = {"float_precision": "round_trip"} if old else {}
        return _journal(pandas.read_csv(table, low_memory=False, **exactly), None)
    if sheet is not None:
        raise ValueError("sheet is for Excel workbooks, and the table is none")
    if is_frame(table):
        frame = Frame(table)
        return _journal(table, None) if is_export(frame.names) else frame
    if callable(getattr(table, "to_table", None)):  # a data set of Arrow
        return Frame(table.to_table())
    if hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__"):
        return Frame(arrow_table(table))
    if isinstance(table, Mapping) or _has_rows(table):
        import pandas

        return Frame(pandas.DataFrame(table))
    journal = getattr(table, "journal", table)  # an agent has one
    if callable(getattr(journal, "execute", None)):
        return _journal(*requests(journal.execute))
    if hasattr(getattr(table, "frame", None), "columns"):
        return _journal(table.frame, getattr(table, "silence", None))
    raise ValueError(
        "table must be a path, a data frame, a journal or Records; pass arrays by name, "
        f"reward= and arm=, got {type(table).__name__}"
    )


def _has_rows(table: Any) -> bool:
    """Return whether this is a list of rows, each of which is a mapping."""
    return isinstance(table, list) and all(isinstance(row, Mapping) for row in table)


def _journal(frame: Any, silence: float | None) -> Frame:
    source = Frame(of_journal(frame))
    source.journal, source.silence = True, silence
    return source
