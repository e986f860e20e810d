"""`records`: one checked table from files, data frames, journals or arrays."""

from collections.abc import Sequence
from typing import Any, Literal

from tailproof.checks import require
from tailproof.tables.cells import Decimal, Spelling
from tailproof.tables.checked import Records
from tailproof.tables.opening import open_table
from tailproof.tables.reader import Reader, finished

__all__ = ["records"]


def records(
    table: Any = None,
    *,
    arm: Any = "arm",
    reward: Any = "reward",
    unit: Any = "unit",
    time: Any = "time",
    propensity: Any = "propensity",
    features: Any = None,
    group: Any = "group",
    id: Any = None,  # noqa: A002
    status: Any = "status",
    propensities: Any = None,
    offered: Any = None,
    arms: Sequence[Any] | None = None,
    sheet: str | None = None,
    decimal: Decimal | None = None,
    spelling: Spelling = "ask",
    missing: Literal["count", "refuse"] = "count",
    skip_bad: bool = False,
    silence: float | None = None,
    wait: float | None = None,
    adaptive: bool | None = None,
    floor: float | None = None,
) -> Records:
    """Return rows of arms and rewards, checked, from whatever holds them.

    Parameters
    ----------
    table : path, data frame, journal or Records, optional
        A file (CSV in any local form, compressed or not, Excel, Parquet, ``-`` for the standard
        input), a folder of Parquet, a data frame of pandas, polars, Arrow or another library that
        narwhals reads, or a journal. Left out if all columns are given as arrays.
    arm, reward, unit, time, propensity, group, status : str or array, optional
        The name of a column, or the values. The default is the column of that name, if there is
        one; None: do not use it. Rows of the same unit are of the same customer, or were decided
        together. Rows are sorted by time.
    features : sequence of str or array of shape (n, d), optional
        Columns of numbers. Default: the columns ``x:NAME``, or ``x:ARM:NAME`` if every arm has its
        own.
    id : str or array, optional
        What is different in every row: a second row with the same id is refused.
    propensities : str or array of shape (n, K), optional
        Of every arm, in the order of ``arms``; or a column of mappings. Default: the columns
        ``p:NAME``, or a column ``propensities``.
    offered : array of bool of shape (n, K), optional
        Default: all arms but those whose propensity is missing in a row.
    arms : sequence, optional
        The names of all arms; default: those that occur.
    sheet : str, optional
        The sheet of a workbook.
    decimal : "." or ",", optional
        The decimal mark, if the numbers of a file are ambiguous.
    spelling : "ask", "merge" or "keep"
        What to do about arms or groups that differ by case or blanks alone.
    missing : "count" or "refuse"
        Whether rewards may be missing.
    skip_bad : bool
        Whether to leave out rows that cannot be read, and say which.
    silence : float, optional
        The reward of a row that has none. Rows that are still pending are left out, known or not.
    wait : float, optional
        Leave out all rows that are younger than this, known or not, in the unit of ``time``
        (seconds if it is a date): quick rewards must not stand for slow ones.
    adaptive, floor
        See `Records`.

    Examples
    --------
    >>> import pandas as pd
    >>> sales = pd.DataFrame({"variant": ["a", "b", "a"], "revenue": ["$1,200.50", "$3", ""]})
    >>> found = records(sales, arm="variant", reward="revenue")
    >>> found.reward.tolist(), found.arms
    ([1200.5, 3.0, nan], ('a', 'b'))
    >>> records(sales, reward="revenu")
    Traceback (most recent call last):
    ValueError: reward must be one of the columns variant, revenue of the table, got 'revenu': did
    you mean 'revenue'?
    """
    if isinstance(table, Records):
        return table
    require(spelling in ("ask", "merge", "keep"), "spelling", "ask, merge or keep", spelling)
    require(missing in ("count", "refuse"), "missing", "count or refuse", missing)
    require(decimal in (None, ".", ","), "decimal", "'.' or ','", decimal)
    asked = {
        "arm": arm,
        "reward": reward,
        "unit": unit,
        "time": time,
        "propensity": propensity,
        "group": group,
        "id": id,
        "status": status,
        "propensities": propensities,
    }
    reader = Reader(
        open_table(table, sheet),
        asked,
        features=features,
        arms=arms,
        decimal=decimal,
        spelling=spelling,
        skip_bad=skip_bad,
    )
    found = reader.read(offered, complete=missing == "refuse")
    return finished(found, reader.source, silence, wait, adaptive, floor)
