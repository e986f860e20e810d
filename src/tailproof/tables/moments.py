"""Cells of a column as times: ISO 8601, local dates, counts since 1970, with or without a zone."""

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tailproof.tables.cells import MISSING, Column, filled
from tailproof.tables.refusals import Refusals
from tailproof.typing import Array

__all__ = ["Moments", "check_zone", "times"]

_LOCAL = re.compile(
    r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})"
    r"(?:,?[ T]+(\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)(?:\s?([AaPp])\.?[Mm]\.?)?)?"
)
"""Local dates such as 31.12.2026 or 12/31/2026, perhaps with a time of day, as 8:30 or 8:30 PM."""
_NAMED = re.compile(
    r"(?:[A-Z][a-z]{2,8},?\s+)?(?:(\d{1,2})[\s.-]+([A-Za-z]{3,9})|([A-Za-z]{3,9})\.?\s+(\d{1,2}))"
    r"\.?,?[\s-]+(\d{4})(?:,?\s+(\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?)"
    r"(?:\s?([AaPp])\.?[Mm]\.?)?\s*(Z|[+-]\d\d:?\d\d)?)?"
)
"""Dates with the English name of a month, such as 31 Dec 2026 or December 31, 2026, 8:30 PM."""
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_ZONE = re.compile(r":\d\d.*(?:[Zz]|UTC|GMT|[+-]\d\d(?::?\d\d)?)$")
"""A time of day with a zone."""
_UTC = re.compile(r"\s*(?:UTC|GMT)$")
"""How BigQuery and others write that zone."""
_SPREADSHEET = (30_000.0, 80_000.0)
"""Days that a spreadsheet counts from 1900, for the years 1982 to 2119."""
_CLOCKS = ((1e17, 1e9, "nanoseconds"), (1e14, 1e6, "microseconds"), (1e11, 1e3, "milliseconds"))
"""From which number on times are in another unit than seconds, which would be of the year 5000."""
_WRITTEN = (
    (19_800_101, 21_000_101, "%Y%m%d"),
    (19_800_101_000_000, 21_000_101_000_000, "%Y%m%d%H%M%S"),
)
"""Numbers that are dates as they are written, such as 20261231, from 1980 to 2100."""
_SINCE_1970 = 1e8
"""A number of seconds from here on (March 1973) counts from 1970, a smaller one from anywhere."""
_DAY = 86_400


class Moments(NamedTuple):
    """The times of a column.

    Attributes
    ----------
    seconds : array
        Since 1970; small numbers stay as they are.
    note : str
        What was done to the times, as a sentence.
    example : str
        A time as it stands.
    zoned : bool, optional
        Whether they name their zone or count from 1970; None if nobody knows.
    daily : bool
        Whether all are days without an hour.
    """

    seconds: Array
    note: str = ""
    example: str = ""
    zoned: bool | None = None
    daily: bool = False


def check_zone(zone: str | None) -> None:
    """Raise ``ValueError`` unless it is the name of a time zone.

    >>> check_zone("Paris")
    Traceback (most recent call last):
    ValueError: zone must be a time zone such as Europe/Paris or UTC, got 'Paris'
    """
    from zoneinfo import ZoneInfo

    try:
        if zone is not None:
            ZoneInfo(zone)
    except (OSError, TypeError, ValueError, KeyError):
        rule = "a time zone such as Europe/Paris or UTC"
        raise ValueError(f"zone must be {rule}, got {zone!r}") from None


def times(column: Column, name: str, refusals: Refusals, zone: str | None = None) -> Moments:
    """Return the times of a column.

    Texts are ISO 8601, dates such as 31 Dec 2026 with the English name of a month, or local dates
    such as 31.12.2026, if they can be read in one way only. Texts without a zone are in `zone`, or
    in UTC. Numbers that are too large for seconds are
    milliseconds, …, or dates such as 20261231.
    """
    if column.codes is None:
        assert column.numbers is not None
        moments = _of_dates(column) if column.dates else _in_seconds(column.numbers, name)
    else:
        moments = _of_texts(column, name, refusals)
    if "utc" in re.split(r"[^a-z]+", name.lower()) and moments.zoned is False:
        moments = moments._replace(zoned=True, example=name)  # as first_exposure_utc
    if zone is None or moments.zoned is not False:
        return moments
    return moments._replace(seconds=_in_zone(moments.seconds, zone), zoned=True)


def _of_dates(column: Column) -> Moments:
    """Return the times of a column of dates; only some kinds of frames tell their zone."""
    assert column.numbers is not None
    return Moments(column.numbers, "", "", column.zoned, _are_days(column.numbers))


def _are_days(seconds: Array) -> bool:
    known = seconds[np.isfinite(seconds)]
    return bool(len(known)) and bool((known % _DAY == 0).all())


def _in_zone(seconds: Array, zone: str) -> Array:
    """Return times of a zone's clocks as seconds since 1970.

    An hour that occurs twice in autumn is its first; one that spring leaves out is the next.
    """
    import pandas

    local = pandas.DatetimeIndex(_stamps(seconds))
    first = np.ones(len(local), dtype=np.bool_)
    zoned = local.tz_localize(zone, ambiguous=first, nonexistent="shift_forward")
    return _seconds(zoned.tz_convert(None).to_numpy("datetime64[us]"))


def _stamps(seconds: Array) -> np.ndarray[tuple[int], np.dtype[np.datetime64]]:
    known = np.isfinite(seconds)
    micro = np.round(np.where(known, seconds, 0.0) * 1e6).astype(np.int64)
    return np.where(known, micro.view("datetime64[us]"), np.datetime64("NaT", "us"))


def _seconds(stamps: np.ndarray[tuple[int], np.dtype[np.datetime64]]) -> Array:
    exact = stamps.astype("datetime64[us]")
    return np.where(np.isnat(exact), np.nan, exact.astype(np.int64) / 1e6)


def _of_texts(column: Column, name: str, refusals: Refusals) -> Moments:
    import pandas

    assert column.codes is not None
    texts = pandas.Series([text.strip() for text in column.texts], dtype=object)
    blank = texts.str.lower().isin(MISSING)
    values = pandas.to_numeric(texts.where(~blank, None), errors="coerce").to_numpy(np.float64)
    asked = texts[~blank].tolist()
    dated, zoned = bool(np.isnan(values[~blank]).any()), None
    if dated:
        zoned = _names_zone(asked, name)
        local = _local_dates(asked, name)
        iso = texts.where(~blank, None).str.replace(_UTC, "+00:00", regex=True)
        iso = iso if local is None else iso.map(local, na_action="ignore")
        if iso.str.contains("[A-Za-z]{3}", na=False).any():
            iso = iso.map(_with_number_of_month, na_action="ignore")
        dates = pandas.to_datetime(iso, utc=True, format="ISO8601", errors="coerce")
        values = _seconds(dates.dt.tz_localize(None).to_numpy("datetime64[us]"))
    refusals.cells(
        column,
        np.flatnonzero(np.isnan(values) & ~blank.to_numpy()).tolist(),
        f"column {name} must have times as in 2026-12-31T09:00:00 or 31 Dec 2026, or seconds since "
        "1970, got",
    )
    seconds = filled(column, np.append(values, np.nan))
    if not dated and not column.dates:
        return _in_seconds(seconds, name)
    daily = not any(":" in text for text in asked) and _are_days(seconds)
    return Moments(seconds, "", asked[0] if asked else "", zoned, daily)


def _names_zone(texts: list[str], name: str) -> bool:
    """Return whether times name a zone; raise ``ValueError`` if some do and others do not."""
    zoned = {bool(_ZONE.search(text)): text for text in texts if ":" in text}
    if len(zoned) == 2:
        raise ValueError(
            f"column {name} has {zoned[True]!r} with a time zone beside {zoned[False]!r} without: "
            "write all times alike"
        )
    return True in zoned


def _in_seconds(moments: Array, name: str) -> Moments:
    """Return numbers as seconds, if they are usually too large for that."""
    finite = moments[np.isfinite(moments)]
    usual = float(np.median(np.abs(finite))) if len(finite) else 0.0
    first, last = _SPREADSHEET
    whole = np.floor(finite) == finite
    if not whole.all() and first <= finite.min() and finite.max() < last:
        raise ValueError(
            f"column {name} has {finite[~whole][0]:.10g}, which may be a day of a spreadsheet or a "
            "second: write times as 2026-12-31T09:00:00"
        )
    if len(finite) and whole.all() and (written := _as_written(moments, finite)) is not None:
        example = f"{finite[0]:.0f}"
        note = f"Column {name} was read as dates, such as {example}."
        return Moments(written, note, example, False, _are_days(written))
    example = f"{finite[0]:.15g}" if len(finite) else ""
    zoned = True if usual >= _SINCE_1970 else None
    for least, divisor, unit in _CLOCKS:
        if least <= usual:
            note = f"Column {name} was read as {unit} since 1970."
            return Moments(moments / divisor, note, example, zoned)
    return Moments(moments, "", example, zoned)


def _as_written(moments: Array, finite: Array) -> Array | None:
    """Return numbers such as 20261231 as times; None if they are not all dates."""
    import pandas

    for first, last, form in _WRITTEN:
        if first <= finite.min() and finite.max() < last:
            codes, distinct = pandas.factorize(moments)
            dates = pandas.to_datetime(
                pandas.Series([f"{x:.0f}" for x in distinct]), format=form, errors="coerce"
            )
            if dates.isna().any():
                return None
            seconds: Array = np.append(_seconds(dates.to_numpy("datetime64[us]")), np.nan)[codes]
            return seconds
    return None


def _local_dates(texts: list[str], name: str) -> Callable[[str], str] | None:
    """Return a function that turns local dates into ISO 8601; None if there are none."""
    parts = [match.groups() for text in texts if (match := _LOCAL.fullmatch(text))]
    if not parts:
        return None
    first, second = (max(int(part[i]) for part in parts) for i in (0, 2))
    day_first = any(part[1] == "." for part in parts) or first > 12
    if day_first == (second > 12):
        raise ValueError(
            f"{texts[0]!r} in column {name} is ambiguous: is the day first or the month? "
            "Write dates as 2026-12-31"
        )

    def iso(text: str) -> str:
        match = _LOCAL.fullmatch(text)
        if not match:
            return text
        first, _, second, year, clock, half = match.groups()
        day, month = (first, second) if day_first else (second, first)
        return f"{year}-{int(month):02d}-{int(day):02d}{_hour(clock, half)}"

    return iso


def _with_number_of_month(text: str) -> str:
    """Return a date with the English name of a month as in ISO 8601; other texts as they are.

    >>> _with_number_of_month("Thu, 19 Nov 2026 08:30:00 +0100"), _with_number_of_month("Mai 2026")
    ('2026-11-19T08:30:00+0100', 'Mai 2026')
    """
    match = _NAMED.fullmatch(text)
    if not match:
        return text
    day, month, month_first, day_second, year, clock, half, zone = match.groups()
    name = (month or month_first).lower()
    number = next((i for i, full in enumerate(_MONTHS, 1) if full.startswith(name)), None)
    if number is None and name != "sept":
        return text
    date = f"{year}-{number or 9:02d}-{int(day or day_second):02d}"
    return date + _hour(clock, half) + (zone or "")


def _hour(clock: str | None, half: str | None) -> str:
    """Return a time of day as in ISO 8601.

    >>> _hour("8:30", None), _hour("12:05", "a"), _hour("1:00:07", "P")
    ('T08:30', 'T00:05', 'T13:00:07')
    """
    if clock is None:
        return ""
    hour, rest = clock.split(":", 1)
    if half is None:
        return f"T{int(hour):02d}:{rest}"
    if not 1 <= int(hour) <= 12:
        return f"T99:{rest}"  # no time of day, so the cell is refused
    return f"T{int(hour) % 12 + 12 * (half in 'pP'):02d}:{rest}"
