"""How a table is read: the options that every function with a table passes on."""

from collections.abc import Sequence
from typing import Any, Literal, TypedDict

from tailproof.tables.cells import Decimal, Spelling

__all__ = ["Reading"]


class Reading(TypedDict, total=False):
    """Options of `tailproof.records` that `calibrate`, `judge` and imports pass on.

    Attributes
    ----------
    group : str or array
        Column of visitors' groups.
    id : str or array
        What is different in every row: a second row with the same id is refused.
    propensities : str or array of shape (n, K)
        Of every arm, in the order of ``arms``; or a column of mappings. Default: the columns
        ``p:NAME``, or a column ``propensities``.
    offered : array of bool of shape (n, K)
        Default: all arms but those whose propensity is missing in a row.
    arms : sequence
        The names of all arms; default: those that occur.
    status : str
        Column of what became of each row: told, silent, lost, pending.
    sheet : str
        The sheet of a workbook.
    decimal : "." or ","
        The decimal mark, if the numbers of a file are ambiguous.
    zone : str
        The time zone of times that name none, such as Europe/Paris; default: UTC.
    spelling : "ask", "merge" or "keep"
        What to do about arms or groups that differ by case or blanks alone.
    missing : "count" or "refuse"
        Whether rewards may be missing.
    skip_bad : bool
        Whether to leave out rows that cannot be read, and say which.
    silence : float
        The reward of a row that has none. Rows that are still pending are left out, known or not.
    wait : float
        Leave out all rows that are younger than this, known or not, in the unit of ``time``
        (seconds if it is a date): quick rewards must not stand for slow ones.
    adaptive, floor
        See `Records`.
    events, window, experiment
        Orders beside a table of exposures, see `tailproof.records`.

    Examples
    --------
    >>> import tailproof as tp
    >>> how: tp.Reading = {"spelling": "merge", "missing": "refuse"}
    >>> tp.records(arm=["a", "A", "a"], reward=[1, 2, 3], **how).notes
    ("'A' (once) was read as 'a'.",)
    """

    group: Any
    id: Any
    propensities: Any
    offered: Any
    arms: Sequence[Any] | None
    status: Any
    sheet: str | None
    decimal: Decimal | None
    zone: str | None
    spelling: Spelling
    missing: Literal["count", "refuse"]
    skip_bad: bool
    silence: float | None
    wait: float | None
    adaptive: bool | None
    floor: float | None
    events: Any
    window: Any
    experiment: str | None
