"""Lazy frames, reduced where the data are: sums and counts travel, rows do not."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tailproof.tables.checked import Records
from tailproof.tables.frames import Frame
from tailproof.tables.how import Reading
from tailproof.tables.reader import ALSO, Reader, finished
from tailproof.typing import Index

if TYPE_CHECKING:
    import narwhals

__all__ = ["is_lazy", "reduced"]

_MOST_ROWS = 10**7
"""More rows than this are thinned at random: they would take a GB, and change no digit shown."""
_DAY = 86400
_COUNT = "rows of the table"
"""What the column of counts is called; no table has this name for something else."""


def is_lazy(table: Any) -> bool:
    """Return whether this is a frame whose rows are elsewhere, as in DuckDB, Dask or Spark."""
    if table is None or isinstance(table, str):
        return False
    import narwhals as nw

    return isinstance(nw.from_native(table, pass_through=True), nw.LazyFrame)


def reduced(
    table: Any, columns: dict[str, Any], features: Any, reading: Reading, *, rows: bool
) -> Records:
    """Return the records of a lazy frame.

    With a unit, a row for each unit and arm, and propensity if there is one: the sum of its
    rewards, its first time, and how many rows it stands for. Without, a row for each distinct
    reward of an arm, day and propensity, repeated as often as it occurs. Features and groups of
    visitors need all rows, and so do models.
    """
    import narwhals as nw

    frame = nw.from_native(table)
    known = frame.collect_schema().names()
    names = {option: _column(option, name, known) for option, name in columns.items()}
    named = {option: name for option, name in names.items() if name is not None}
    whole = rows or features is not None or {"group", "id"} & named.keys()
    source = Frame(_fetched(frame, named, features) if whole else _grouped(frame, named))
    source.name = "the lazy frame"
    asked = {option: named.get(option) for option in columns}
    if whole or "reward" not in named:
        reader = Reader(source, columns, features, reading)
        return finished(reader.read(), source, reading)
    found = Reader(source, asked | {"weight": _COUNT}, None, reading).read()
    if "unit" not in named:
        found = _repeated(found)
    return finished(found, source, reading)


def _column(option: str, name: Any, known: list[str]) -> str | None:
    """Return the column of an option, None if it is not used; names that are wrong are kept."""
    if name is None:
        return None
    if not isinstance(name, str):
        raise ValueError(f"{option} must be a column of the lazy frame, got an array")
    defaults = [name, *(ALSO.get(option, ()) if name == option else ())]
    there = next((own for own in defaults if own in known), None)
    if there is None and name != option:
        raise ValueError(
            f"{option} must be one of the columns {', '.join(known)} of the lazy frame, "
            f"got {name!r}"
        )
    return there


def _fetched(frame: "narwhals.LazyFrame[Any]", named: dict[str, str], features: Any) -> Any:
    """Return all rows, of the columns that are read."""
    known = frame.collect_schema().names()
    wanted = [*named.values(), *(features if isinstance(features, list | tuple) else ())]
    wanted += [name for name in known if name.startswith(("p:", "x:")) or name == "propensities"]
    chosen = [name for name in dict.fromkeys(wanted) if name in known]
    return frame.select(chosen or known).collect().to_native()


def _grouped(frame: "narwhals.LazyFrame[Any]", named: dict[str, str]) -> Any:
    """Return sums and counts by unit, or counts by reward and day, made where the data are."""
    import narwhals as nw

    reward, time = named.get("reward"), named.get("time")
    if reward is None:
        return frame.head(0).collect().to_native()  # the reader says which columns there are
    keys = [named[option] for option in ("arm", "unit", "propensity") if option in named]
    sums = [nw.len().alias(_COUNT)]
    if "unit" in named:
        sums.append(nw.col(reward).sum().alias(reward))
        if time is not None:
            sums.append(nw.col(time).min().alias(time))
    else:
        keys.append(reward)
        if time is not None:
            frame = frame.with_columns(_day(frame, time).alias(time))
            keys.append(time)
    return frame.group_by(*keys).agg(*sums).collect().to_native()


def _day(frame: "narwhals.LazyFrame[Any]", time: str) -> "narwhals.Expr":
    """Return the start of each time's day."""
    import narwhals as nw

    kind, column = frame.collect_schema()[time], nw.col(time)
    if isinstance(kind, nw.Datetime):
        return column.dt.truncate("1d")
    return (column // _DAY) * _DAY if kind.is_numeric() else column


def _repeated(found: Records) -> Records:
    """Return as many rows as there were, or as many as are of use, drawn at random from them."""
    assert found.weight is not None
    counts = found.weight.astype(np.int64)
    total, notes = int(counts.sum()), found.notes
    if total > _MOST_ROWS:
        draw = np.random.default_rng(0).multivariate_hypergeometric
        counts = _drawn(counts, draw)
        notes += (
            f"{_MOST_ROWS:,} of {total:,} rows, drawn at random, are used: name a unit to use all.",
        )
    rows = np.repeat(np.arange(found.n), counts)
    return replace(found.take(rows), weight=None, notes=notes)


def _drawn(counts: Index, draw: Any) -> Index:
    drawn: Index = draw(counts, _MOST_ROWS, method="marginals")
    return drawn
