"""`records`: one checked table from files, data frames, journals or arrays."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Unpack

from tailproof.checks import require
from tailproof.tables.checked import Records
from tailproof.tables.exposures import with_events
from tailproof.tables.how import Reading
from tailproof.tables.lazy import is_lazy, reduced
from tailproof.tables.moments import check_zone
from tailproof.tables.opening import open_table
from tailproof.tables.reader import Reader, finished

__all__ = ["check_options", "records"]

_NAMES = ("arm", "reward", "unit", "time", "propensity")
_CHOICES = {
    "spelling": ("ask", "merge", "keep"),
    "missing": ("count", "refuse"),
    "decimal": (None, ".", ","),
    "skip_bad": (True, False),
}


def records(
    table: Any = None,
    *,
    arm: Any = "arm",
    reward: Any = "reward",
    unit: Any = "unit",
    time: Any = "time",
    propensity: Any = "propensity",
    features: Any = None,
    rows: bool = False,
    **reading: Unpack[Reading],
) -> Records:
    """Return rows of arms and rewards, checked, from whatever holds them.

    Parameters
    ----------
    table : path, data frame, journal or Records, optional
        A file (CSV in any local form, Excel, Parquet, ``-``), a folder of Parquet, a data frame
        of any library that narwhals knows, a journal; left out if all columns are arrays.
    arm, reward, unit, time, propensity : str or array, optional
        The name of a column, or the values. The default is the column of that name, if there is
        one; None: do not use it. Rows of a unit are of one customer, or were decided together.
    features : sequence of str or array of shape (n, d), optional
        Columns of numbers. Default: ``x:NAME``, or ``x:ARM:NAME`` if every arm has its own.
    rows : bool
        Whether to fetch the rows of a lazy frame; else sums are made where the data are.
    **reading :
        See `Reading`; ``events=`` and ``window="7d"`` join a table of exposures with orders. If the
        two tables name a column differently, pass both names: ``time=("seen_at", "ordered_at")``;
        likewise for ``unit``.

    Examples
    --------
    >>> import pandas as pd
    >>> sales = pd.DataFrame({"variant": ["a", "b", "a"], "revenue": ["$1,200.50", "$3", ""]})
    >>> table = records(sales, arm="variant", reward="revenue")
    >>> table.reward.tolist(), table.arms
    ([1200.5, 3.0, nan], ('a', 'b'))
    """
    columns = dict(zip(_NAMES, (arm, reward, unit, time, propensity), strict=True))
    _check(table, columns, features, reading)
    if isinstance(table, Records):
        if rows and table.weight is not None:
            raise ValueError(
                "these records are sums of rows, and rows are needed: pass the table itself, or "
                "make them with records(…, rows=True)"
            )
        return table
    columns |= {"group": reading.get("group", "group"), "id": reading.get("id")}
    if reading.get("events") is not None:
        return with_events(table, columns, features, reading)
    if is_lazy(table):
        return reduced(table, columns, features, reading, rows=rows)
    reader = Reader(open_table(table, reading.get("sheet")), columns, features, reading)
    return finished(reader.read(), reader.source, reading)


def check_options(given: Iterable[str], options: Sequence[str]) -> None:
    """Raise ``ValueError`` if an option does not exist, with the option that was meant."""
    for name in given:
        if name not in options:
            close = get_close_matches(name, options, n=1)
            hint = f"did you mean {close[0]}?" if close else f"these are: {', '.join(options)}"
            raise ValueError(f"{name} is no option here: {hint}")


def _check(table: Any, columns: dict[str, Any], features: Any, reading: Reading) -> None:
    """Raise ``ValueError`` for options that do not exist, or mean nothing here."""
    check_options(reading, [*_NAMES, "features", *sorted(Reading.__annotations__)])
    for name, value in reading.items():
        if name in _CHOICES:
            ok = any(value is choice or value == choice for choice in _CHOICES[name])
            words = " or ".join(repr(x) for x in _CHOICES[name] if x is not None)
            require(ok, name, words, value)
    check_zone(reading.get("zone"))
    if isinstance(table, Records):
        given = [name for name, x in columns.items() if not (isinstance(x, str) and x == name)]
        given += [*reading, *(["features"] if features is not None else [])]
        if given:
            raise ValueError(
                f"{', '.join(given)}: options for reading a table, which is read already"
            )
    if reading.get("events") is None and reading.get("window") is not None:
        raise ValueError("window needs events, a table of what units did after their exposure")
