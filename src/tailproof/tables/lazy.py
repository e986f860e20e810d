"""Lazy frames, reduced where the data are: sums and counts travel, rows do not."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tailproof.stats.customers import ROUNDING, Customers
from tailproof.stats.periods import DAY
from tailproof.tables.checked import Records
from tailproof.tables.frames import Frame
from tailproof.tables.how import Reading
from tailproof.tables.journals import is_export
from tailproof.tables.opening import open_table
from tailproof.tables.reader import ALSO, Reader, finished
from tailproof.tables.sources import Arrays, named as column_named
from tailproof.typing import Index

if TYPE_CHECKING:
    import narwhals

__all__ = ["is_lazy", "reduced"]

_MOST_ROWS = 5 * 10**6
"""More rows than this are thinned at random: they would take GBs, and change no digit shown."""
_COUNT = "rows of the table"
_SIZE = "sum of sizes"
"""What the column of counts is called; no table has this name for something else."""
_NAME = "the lazy frame"
_UNORDERED = "Rows were summed where they are, so bursts of one arm were not looked for."
_NEEDS_ROWS = {"id", "offered", "propensities", "silence", "status", "wait", "zone"}
"""Options that say something about single rows."""


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

    With a unit, a row for each unit, arm and propensity: the sum of its rewards, its first time,
    and how many rows of the frame it stands for; besides, how often each reward of an arm occurs.
    Without a unit, a row for each distinct reward of an arm, day and propensity, repeated as often
    as it occurs. Rows at the same time are put into a random order, as their true order is unknown.

    All rows are fetched where they are needed: for features, propensities of all arms, groups, ids
    and what becomes of a row, if rewards are texts, and if units saw several arms.
    """
    import narwhals as nw

    frame = nw.from_native(table)
    schema = frame.collect_schema()
    known = schema.names()
    names = {option: _column(option, name, known) for option, name in columns.items()}
    named = {option: name for option, name in names.items() if name is not None}
    asked: dict[str, Any] = {option: named.get(option) for option in columns}
    if "reward" not in named:  # the reader names wrong columns in its errors
        return _read(frame.head(1).collect().to_native(), columns, features, reading)
    kind = schema[named["reward"]]
    whole = rows or features is not None or "id" in named or is_export(known)
    whole |= not _NEEDS_ROWS.isdisjoint(reading) or columns["group"] not in ("group", None)
    whole |= any(name.startswith("p:") or name == "propensities" for name in known)
    if whole or not (kind.is_numeric() or kind == nw.Boolean):
        return _read(_fetched(frame, named, features), columns, features, reading)
    told, notes = _with_reward(frame, named["reward"], reading)
    asked = {option: name for option, name in asked.items() if option not in ("id", "group")}
    asked |= {"weight": _COUNT, "group": None}
    records = Reader(_Groups(_grouped(told, named)), asked, None, reading).read()
    if "unit" not in named:
        records = _as_rows(records)
    elif _by_visit(records):
        return _read(_fetched(frame, named, features), columns, features, reading)
    else:
        plain = {option: name for option, name in named.items() if option in ("arm", "reward")}
        behind = dict.fromkeys(asked) | plain | {"weight": _COUNT}
        law = Reader(_Groups(_grouped(told, plain)), behind, None, reading).read()
        records = replace(records, rows=_as_rows(law), twice=_repeated_purchases(told, named))
    records = records.take(np.random.default_rng(0).permutation(records.n))
    return finished(replace(records, notes=(*records.notes, *notes)), Arrays(), reading)


def _read(native: Any, columns: dict[str, Any], features: Any, reading: Reading) -> Records:
    """Return the records of all rows."""
    source = open_table(native)
    source.name = _NAME
    return finished(Reader(source, columns, features, reading).read(), source, reading)


def _by_visit(records: Records) -> bool:
    """Return whether units saw several arms, so that the rewards of single visits matter."""
    assert records.weight is not None
    customers = Customers.of(
        arm=records.arm,
        reward=records.reward,
        unit=records.unit,
        time=records.time,
        count=records.weight,
    )
    if customers.case != "visits":
        return False
    total = int(records.weight.sum())
    if total > _MOST_ROWS:
        raise ValueError(
            f"units saw several arms, so their rows are needed, and {total:,} are too many: keep "
            f"the rows of some units, at most {_MOST_ROWS:,}"
        )
    return True


class _Groups(Frame):
    """Groups of rows; messages say how many rows a group has."""

    name = _NAME

    def where(self, row: int) -> str:
        """Return how many rows the group stands for."""
        count = int(self._frame[_COUNT][row])
        return "1 row" if count == 1 else f"{count:,} rows"


def _with_reward(
    frame: "narwhals.LazyFrame[Any]", reward: str, reading: Reading
) -> "tuple[narwhals.LazyFrame[Any], list[str]]":
    """Return the rows that have a reward, and how many have none."""
    import narwhals as nw

    frame = frame.with_columns(nw.col(reward).cast(nw.Float64))
    blank = nw.col(reward).is_null() | nw.col(reward).is_nan()
    missing = int(frame.select(blank.cast(nw.Int64).sum()).collect().item() or 0)
    if not missing:
        return frame, [_UNORDERED]
    rewards = "1 missing reward was" if missing == 1 else f"{missing} missing rewards were"
    if reading.get("missing") == "refuse":
        raise ValueError(f"column {reward} has no reward in {missing:,} of its rows: mend them")
    return frame.filter(~blank), [f"{rewards} left out.", _UNORDERED]


def _column(option: str, name: Any, known: list[str]) -> str | None:
    """Return the column of an option, None if it is not used; names that are wrong are kept."""
    if name is None:
        return None
    if not isinstance(name, str):
        raise ValueError(f"{option} must be a column of the lazy frame, got an array")
    defaults = [name, *(ALSO.get(option, ()) if name == option else ())]
    there = column_named(defaults, known, exact=name != option)
    if there is None and name != option:
        raise ValueError(
            f"{option} must be one of the columns {', '.join(known)} of the lazy frame, "
            f"got {name!r}"
        )
    return there


def _fetched(frame: "narwhals.LazyFrame[Any]", named: dict[str, str], features: Any) -> Any:
    """Return all rows, of the columns that are read."""
    columns = frame.collect_schema().names()
    wanted = [*named.values(), *(features if isinstance(features, list | tuple) else ())]
    wanted += [name for name in columns if name.startswith(("p:", "x:")) or name == "propensities"]
    chosen = [name for name in dict.fromkeys(wanted) if name in columns]
    return frame.select(chosen or columns).collect().to_native()


def _grouped(frame: "narwhals.LazyFrame[Any]", named: dict[str, str]) -> Any:
    """Return sums and counts by unit, or counts by reward and day, made where the data are."""
    import narwhals as nw

    reward, time = named["reward"], named.get("time")
    keys = [named[option] for option in ("arm", "unit", "propensity") if option in named]
    sums = [nw.len().alias(_COUNT)]
    if "unit" in named:
        sums.append(nw.col(reward).sum().alias(reward))
        sums.append(nw.col(_SIZE).sum())
        if time is not None:
            sums.append(nw.col(time).min().alias(time))
        rounding = nw.col(_SIZE) * nw.col(_COUNT) * ROUNDING  # as in `totals_of`
        cancels = (nw.col(reward).abs() <= rounding) & rounding.is_finite()
        total = nw.when(cancels).then(nw.lit(0.0)).otherwise(nw.col(reward)).alias(reward)
        sized = frame.with_columns(nw.col(reward).abs().alias(_SIZE))
        groups = sized.group_by(*keys).agg(*sums).with_columns(total).drop(_SIZE)
        return groups.collect().sort(*keys).to_native()
    keys.append(reward)
    if time is not None:
        frame = frame.with_columns(_day(frame, time).alias(time))
        keys.append(time)
    return frame.group_by(*keys).agg(*sums).collect().sort(*keys).to_native()


def _repeated_purchases(frame: "narwhals.LazyFrame[Any]", named: dict[str, str]) -> int:
    """Return how many rows with a purchase repeat another row, if times are known."""
    import narwhals as nw

    if "time" not in named:
        return 0
    keys = [named[option] for option in ("arm", "unit", "reward", "time") if option in named]
    bought = frame.filter(nw.col(named["reward"]) != 0)
    groups = bought.group_by(*keys).agg(nw.len().alias(_COUNT)).filter(nw.col(_COUNT) > 1)
    return int(groups.select((nw.col(_COUNT) - 1).sum()).collect().item() or 0)


def _day(frame: "narwhals.LazyFrame[Any]", time: str) -> "narwhals.Expr":
    """Return the start of each time's day."""
    import narwhals as nw

    kind, column = frame.collect_schema()[time], nw.col(time)
    if isinstance(kind, nw.Datetime):
        return column.dt.truncate("1d")
    return (column // int(DAY)) * int(DAY) if kind.is_numeric() else column


def _as_rows(records: Records) -> Records:
    """Return the rows that were counted; of too many rows a part, drawn at random."""
    assert records.weight is not None
    counts = records.weight.astype(np.int64)
    total, notes = int(counts.sum()), records.notes
    if total > _MOST_ROWS:
        draw = np.random.default_rng(0).multivariate_hypergeometric
        counts = _drawn(counts, draw)
        notes += (
            f"{_MOST_ROWS:,} of {total:,} rows, drawn at random, are used: name a unit to use all.",
        )
    rows = np.repeat(np.arange(records.n), counts)
    return replace(records.take(rows), weight=None, notes=notes)


def _drawn(counts: Index, draw: Any) -> Index:
    drawn: Index = draw(counts, _MOST_ROWS, method="marginals")
    return drawn
