"""Journals of `tailproof.live`, and tables that were exported from one."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tailproof.tables.cells import Column
from tailproof.tables.columns import listed

if TYPE_CHECKING:
    import pandas

__all__ = ["as_frame", "is_export", "is_journal", "of_journal"]

_EXPORT = {"ticket", "arm", "ends", "shares"}
"""Columns that together, with a status, are those of an exported journal."""
_STATUS = ("fate", "status")
"""What the status of a row is called in exports of 0.3, and since."""


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
    known = {*map(str, names)}
    return known >= _EXPORT and not known.isdisjoint(_STATUS)


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
    for name in _STATUS:
        if name in frame.columns:
            frame = frame[frame[name] != "cancelled"]
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
    if "unit" in frame.columns:
        own = frame["unit"].astype(object).where(frame["unit"].notna(), None)
        decisions = frame["hold"] if "hold" in frame.columns else range(len(frame))
        found["unit"] = [
            f"decision {decision}" if unit is None else f"unit {unit}"
            for decision, unit in zip(decisions, own, strict=True)
        ]
    return found
