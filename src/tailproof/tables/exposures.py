"""Exposures and orders: the arm that a customer saw, joined with later purchases."""

import re
from dataclasses import replace
from typing import Any

import numpy as np

from tailproof.checks import number, require
from tailproof.stats.customers import totals_of
from tailproof.stats.periods import DAY
from tailproof.tables.checked import Records
from tailproof.tables.how import Reading
from tailproof.tables.moments import Moments
from tailproof.tables.opening import open_table
from tailproof.tables.platforms import NAMES, Part, exposures_of
from tailproof.tables.reader import Reader, finished
from tailproof.tables.sources import Arrays, named
from tailproof.typing import Array, Index

__all__ = ["seconds", "with_events"]

_ZONES = 14 * 3600.0
"""Seconds by which the clocks of two tables may differ at most."""
_MANY = 20
"""Events before their exposures from which their hours are looked at."""
_SPANS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}


def seconds(name: str, span: Any) -> float:
    """Return a span such as "7d" or "12h" in seconds; a plain number means seconds.

    >>> seconds("window", "7d"), seconds("window", 90)
    (604800.0, 90.0)
    >>> seconds("window", "soon")
    Traceback (most recent call last):
    ValueError: window must be a span such as 7d, 12h or 30min, got 'soon'
    """
    if not isinstance(span, str):
        return number(name, span, above=0)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|min|m|h|d|w)\s*", span)
    require(match is not None, name, "a span such as 7d, 12h or 30min", span)
    assert match is not None
    return float(match[1]) * _SPANS[match[2]]


def with_events(
    exposures: Any, columns: dict[str, Any], features: Any, reading: Reading
) -> Records:
    """Return a row for each unit: its arm, and its revenue within the window.

    The window starts with the first exposure of the unit. Left out, and counted in `notes`: units
    that saw two arms, units whose window has not ended when the tables end, and events before the
    exposure, after the window, or of units that were never exposed. A pair of names for ``unit`` or
    ``time`` names the column of the exposures and of the events.
    """
    how: Any = {name: x for name, x in reading.items() if name not in ("arms", "offered", "id")}
    table = exposures_of(open_table(exposures, reading.get("sheet")), reading.get("experiment"))
    shown_columns, order_columns = _column_pairs(columns)
    none: dict[str, Any] = {"reward": None, "id": None}
    shown, shown_to, seen = _read(table, shown_columns | none, features, reading, needed="arm")
    none = dict.fromkeys(("arm", "propensity", "group"))
    events = Part(open_table(reading["events"]))
    orders, by, told = _read(events, order_columns | none, None, how, needed="reward")
    _check_clocks(seen, told)
    orders, daily = _by_the_day(orders, seen, told)
    rows, mixed, notes = _first_exposures(shown)
    end = max(float(_times(shown).max()), float(_times(orders).max()))
    left_out = {shown_to[row] for row in mixed.tolist()}
    number_of = {name: i for i, name in enumerate(shown_to[rows])}
    unit = np.array([number_of.get(name, -1) for name in by], dtype=np.int64)
    stranger = np.array([name not in left_out for name in by], dtype=np.bool_) & (unit < 0)
    if stranger.all():
        raise ValueError(
            f"no unit of the events was exposed, such as {by[0]!r}; the table of exposures has "
            f"{shown_to[0]!r}: unit must name the same identifier in both tables"
        )
    shown = shown.take(rows)
    span = reading.get("window")
    window = np.inf if span is None else seconds("window", span)
    age = _times(orders) - np.append(_times(shown), np.nan)[unit]
    notes = table.notes + notes + daily + _ignored_events(orders, age, window, stranger)
    counted = (unit >= 0) & (age >= 0) & (age < window) & ~np.isnan(orders.reward)
    reward = totals_of(unit[counted], orders.reward[counted], shown.n)
    records = replace(shown, reward=reward, notes=notes)
    return finished(_with_closed_windows(records, end, window), Arrays(), reading)


def _times(records: Records) -> Array:
    assert records.time is not None  # `_read` has checked it
    return records.time


def _column_pairs(columns: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the columns of the exposures and those of the events.

    >>> _column_pairs({"time": ("seen", "bought"), "unit": "user"})
    ({'time': 'seen', 'unit': 'user'}, {'time': 'bought', 'unit': 'user'})
    """
    pairs = {name: x for name, x in columns.items() if isinstance(x, (tuple, list))}
    for name, pair in pairs.items():
        known = name in ("unit", "time") and len(pair) == 2
        require(known, name, "a column, or for unit and time a column of each table", pair)
    first, second = ({name: pair[i] for name, pair in pairs.items()} for i in (0, 1))
    return columns | first, columns | second


def _read(
    source: Part, columns: dict[str, Any], features: Any, reading: Reading, *, needed: str
) -> tuple[Records, Any, Moments]:
    """Return one of the two tables, the name of each row's unit, and how its times were read."""
    for option in (needed, "unit", "time"):
        asked = columns[option]
        if asked in (None, option) and named((option, *NAMES[option]), source.names) is None:
            known = ", ".join(source.names)
            raise ValueError(f"{option} must name a column of {source.name}, which has {known}")
    reader = Reader(source, columns, features, reading, NAMES)
    records = reader.read()
    return records, reader.units[reader.kept], reader.moments


def _check_clocks(seen: Moments, told: Moments) -> None:
    """Raise ``ValueError`` if one table tells its time zone and the other does not."""
    if {seen.zoned, told.zoned} != {True, False}:
        return
    local, zoned = (seen, told) if told.zoned else (told, seen)
    without, other = ("exposures", "events") if told.zoned else ("events", "exposures")
    raise ValueError(
        f"times of the {without} name no time zone{_such_as(local)}, but times of the {other} do"
        f"{_such_as(zoned)}: pass the zone of the {without}, such as zone='Europe/Paris' "
        "(--zone Europe/Paris) or 'UTC'"
    )


def _such_as(moments: Moments) -> str:
    return f" ({moments.example})" if moments.example else ""


def _by_the_day(orders: Records, seen: Moments, told: Moments) -> tuple[Records, tuple[str, ...]]:
    """Move orders without a time of day to the end of their day, so that they follow exposures."""
    if not told.daily or seen.daily:
        return orders, ()
    note = "Events have no time of day: each is taken to be at the end of its day."
    return replace(orders, time=_times(orders) + DAY - 1), (note,)


def _first_exposures(shown: Records) -> tuple[Index, Index, tuple[str, ...]]:
    """Return the row of each unit's first exposure, the rows of units that saw several arms."""
    assert shown.unit is not None
    order = np.lexsort((_times(shown), shown.unit))
    units, start = np.unique(shown.unit[order], return_index=True)
    first = order[start]
    differs = shown.arm != shown.arm[first][np.searchsorted(units, shown.unit)]
    mixed = np.bincount(shown.unit, differs, minlength=len(units)) > 0
    notes = shown.notes
    if mixed.any():
        one = mixed.sum() == 1
        units_saw = "1 unit that saw" if one else f"{mixed.sum():,} units that saw"
        notes += (f"{units_saw} several arms {'was' if one else 'were'} left out.",)
    if mixed.all():
        raise ValueError(f"every unit saw several arms: nothing can be compared. {notes[-1]}")
    return first[~mixed], np.flatnonzero(mixed[shown.unit]), notes


def _ignored_events(orders: Records, age: Array, window: float, stranger: Any) -> tuple[str, ...]:
    """Say which events do not count."""
    with np.errstate(invalid="ignore"):
        counts = {
            "before the first exposure of their unit": int((age < 0).sum()),
            "after the window of their unit": int((age >= window).sum()),
            "of units that were not exposed": int(stranger.sum()),
            "without a value": int(np.isnan(orders.reward).sum()),
        }
    said = [f"{count:,} {words}" for words, count in counts.items() if count]
    notes = [*orders.notes]
    if said:
        notes.append(f"Events that do not count: {', '.join(said)}.")
    with np.errstate(invalid="ignore"):
        early = -age[age < 0]
    if len(early) >= _MANY and (early < _ZONES).mean() > 0.5:
        notes.append(
            "Most events before an exposure came less than 14 hours before it: if the tables have "
            "other time zones, write the times with their zones."
        )
    if window == np.inf:
        notes.append(
            "All events after the exposure count, so units that came early had more time: name a "
            "window."
        )
    return tuple(notes)


def _with_closed_windows(records: Records, end: float, window: float) -> Records:
    """Leave out units whose window has not ended when the tables end."""
    if window == np.inf:
        return records
    over = _times(records) + window <= end
    if not over.any():
        raise ValueError(
            f"no unit's window of {window / 86400:g} days has ended: the tables end "
            f"{(end - _times(records).min()) / 86400:.3g} days after the first exposure"
        )
    if over.all():
        return records
    open_ = int((~over).sum())
    units = "1 unit is" if open_ == 1 else f"{open_:,} of {records.n:,} units are"
    days = "1 day" if window == DAY else f"{window / DAY:g} days"
    note = f"{units} left out, as less than {days} passed since the exposure."
    kept = records.take(np.flatnonzero(over))
    return replace(kept, notes=(*records.notes, note))
