"""Journals of `tailproof.live`, and tables that were exported from one."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tailproof.tables.cells import Column
from tailproof.tables.columns import listed

if TYPE_CHECKING:
    import pandas

__all__ = ["as_frame", "is_export", "is_journal", "of_journal"]

_EXPORT = {"ticket", "hold", "arm", "fate", "ends", "shares"}
"""Columns that together are those of an exported journal."""


def is_journal(table: Any) -> bool:
    """Return whether this is the path or URL of a journal."""
    if not isinstance(table, str | Path):
        return False
    if str(table).startswith(("postgres:", "postgresql:")):
        return True
    if not Path(table).is_file():
        return False
    with Path(table).open("rb") as start:
        return start.read(6) == b"SQLite"


def is_export(names: Any) -> bool:
    """Return whether columns are those of an exported journal."""
    return {*map(str, names)} >= _EXPORT


def as_frame(table: Any) -> Any:
    """Return the table of a journal, or of anything that has one; None if it has none."""
    if callable(getattr(table, "to_frame", None)):
        return table.to_frame()
    frame = getattr(table, "frame", None)
    return frame if hasattr(frame, "columns") else None


def of_journal(frame: "pandas.DataFrame") -> "pandas.DataFrame":
    """Return the table of a journal, with a unit in each row.

    Imported rows of unknown propensity are left out, and tickets that were cancelled.
    """
    if "fate" in frame.columns:
        frame = frame[frame["fate"] != "cancelled"]
    if "propensity" in frame.columns and "group" in frame.columns:
        frame = frame[frame["propensity"].notna() | (frame["group"] != "history")]
    found = frame.copy(deep=False)
    if "offer" in frame.columns:
        found["offer"] = offers = listed(Column.of(frame["offer"].to_numpy(dtype=object)))
        escaped = frame["arm"].astype(str).str.startswith("'")  # a formula for spreadsheets
        if escaped.any():
            bare = frame["arm"].astype(str).str[1:]
            known = [arm in own for arm, own in zip(bare, offers, strict=True)]
            found["arm"] = frame["arm"].where(~(escaped & np.array(known)), bare)
    if "unit" in frame.columns and "hold" in frame.columns:
        own = frame["unit"].astype(object).where(frame["unit"].notna(), None)
        found["unit"] = [
            f"decision {hold}" if unit is None else f"unit {unit}"
            for hold, unit in zip(frame["hold"], own, strict=True)
        ]
    return found
