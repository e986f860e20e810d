"""Journals of `tailproof.live`, and tables that were exported from one."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tailproof.extras import import_extra
from tailproof.tables.cells import Column
from tailproof.tables.columns import listed

if TYPE_CHECKING:
    import pandas

__all__ = ["is_export", "is_journal", "of_journal", "pieces", "read_journal", "requests"]

_EXPORT = {"ticket", "arm", "ends", "shares"}
"""Columns of an exported journal, besides a status."""
_VIEW = {
    "request": "ticket",
    "unit": "unit",
    "time": "asked",
    "arm": "arm",
    "propensity": "propensity",
    "offered": "offer",
    "shares": "shares",
    "reward": "reward",
    "status": "status",
    "grp": "group",
}
"""The columns of the view `log` in a journal, and their names in an exported journal."""
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
    """Return whether columns belong to an exported journal."""
    columns = {*map(str, names)}
    return columns >= _EXPORT and not columns.isdisjoint(_STATUS)


def of_journal(frame: "pandas.DataFrame") -> "pandas.DataFrame":
    """Return the table of a journal, with a unit in each row.

    Imported rows of unknown propensity are left out, and tickets that were cancelled.
    """
    for name in _STATUS:
        if name in frame.columns:
            frame = frame[frame[name] != "cancelled"]
    if "propensity" in frame.columns and "group" in frame.columns:
        frame = frame[frame["propensity"].notna() | (frame["group"] != "history")]
    table = frame.copy(deep=False)
    if "offer" in frame.columns:
        table["offer"] = offers = listed(Column.of(frame["offer"].to_numpy(dtype=object)))
        escaped = frame["arm"].astype(str).str.startswith("'")  # a formula for spreadsheets
        if escaped.any():
            bare = frame["arm"].astype(str).str[1:]
            offered = [arm in offer for arm, offer in zip(bare, offers, strict=True)]
            table["arm"] = frame["arm"].where(~(escaped & np.array(offered)), bare)
    if "unit" in frame.columns:
        units = frame["unit"].astype(object).where(frame["unit"].notna(), None)
        decisions = frame["hold"] if "hold" in frame.columns else range(len(frame))
        table["unit"] = [
            f"decision {decision}" if unit is None else f"unit {unit}"
            for decision, unit in zip(decisions, units, strict=True)
        ]
    return table


def read_journal(address: str) -> "tuple[pandas.DataFrame, float | None]":
    """Return the requests of the journal at a path or URL, and the reward of silence."""
    with _opened(address) as ask:
        return requests(ask)


def requests(ask: "Callable[[str], Any]") -> "tuple[pandas.DataFrame, float | None]":
    """Return the requests of a journal and the reward of silence; `ask` returns rows of a query."""
    (frame,) = pieces(ask)
    rules = list(ask("SELECT rules FROM recipe ORDER BY number DESC LIMIT 1"))
    if frame.empty:
        raise ValueError("the journal has no requests yet")
    silence = json.loads(rules[0][0]).get("silence") if rules else None
    return frame, None if silence in (None, "lost") else float(silence)


def pieces(
    ask: "Callable[[str], Any]", more: "Mapping[str, str] | None" = None, size: int | None = None
) -> "Iterator[pandas.DataFrame]":
    """Yield the requests of a journal, from its view `log`, in pieces of so many rows, or in one.

    The columns are as in an exported journal; features are columns ``x:…``. `more` are further
    columns, SQL by name.
    """
    import pandas

    features, last = _Features(ask), -1
    columns = _VIEW | {sql: name for name, sql in (more or {}).items()}
    limit = "" if size is None else f" LIMIT {size}"
    while True:
        sql = f"SELECT {', '.join(columns)}, features, number FROM log WHERE number > {last}"
        rows = [tuple(row) for row in ask(f"{sql} ORDER BY number{limit}")]
        names = [*columns.values(), "features", "number"]
        frame = pandas.DataFrame.from_records(rows, columns=names)
        frame = frame.astype({"propensity": "float64", "reward": "float64"})
        yield pandas.concat(
            [frame.drop(columns=["features", "number"]), features.of(frame)], axis=1
        )
        if size is None or len(rows) < size:
            return
        last = rows[-1][-1]


class _Features:
    """The columns of features: shared by all arms of every offer, or of every arm."""

    def __init__(self, ask: "Callable[[str], Any]") -> None:
        self._arms, self._dim, self._shared = set[str](), 0, True
        for names, features in ask("SELECT names, features FROM offer"):
            self._arms.update(json.loads(names))
            if features is not None:
                vectors = json.loads(features)
                self._dim, shared = max(self._dim, len(vectors[0])), len(vectors) == 1
                self._shared = self._shared and shared
        named = list(ask("SELECT value FROM meta WHERE key = 'names'"))
        given = json.loads(named[0][0]) if named else []
        self._names = given if len(given) == self._dim else range(self._dim)

    def of(self, frame: "pandas.DataFrame") -> "pandas.DataFrame":
        """Return the features of each row."""
        import pandas

        if not self._dim:
            return pandas.DataFrame(index=frame.index)
        arms = [""] if self._shared else sorted(self._arms)
        place = {name: i for i, name in enumerate(arms)}
        kinds = {text: json.loads(text) for text in set(frame["features"]) if isinstance(text, str)}
        values = np.full((len(frame), len(arms), self._dim), np.nan)
        for row, (text, offer) in enumerate(zip(frame["features"], frame["offer"], strict=True)):
            vectors = kinds.get(text, [])
            offered = [""] if self._shared else json.loads(offer)
            vectors = vectors * len(offered) if len(vectors) == 1 else vectors
            for arm, vector in zip(offered, vectors, strict=False):
                values[row, place[arm], : len(vector)] = vector
        between = "" if self._shared else ":"
        columns = [f"x:{arm}{between}{name}" for arm in arms for name in self._names]
        return pandas.DataFrame(values.reshape(len(frame), -1), columns=columns, index=frame.index)


@contextmanager
def _opened(address: str) -> "Iterator[Callable[[str], list[Any]]]":
    """Open a journal for reading, and yield a function that runs a query."""
    if not address.startswith(("postgres:", "postgresql:")):
        place = Path(address).resolve().as_uri()
        with closing(sqlite3.connect(f"{place}?mode=ro", uri=True)) as connection:
            views = connection.execute("SELECT name FROM sqlite_master WHERE name = 'log'")
            if not views.fetchall():
                raise ValueError(
                    f"{Path(address).name} is a SQLite database without a journal of this version: "
                    "export a table as CSV, or a journal with the version that wrote it"
                )
            yield lambda sql: connection.execute(sql).fetchall()
        return
    psycopg = import_extra("psycopg", "postgres", "a PostgreSQL journal")
    url, _, name = address.partition("#")
    try:
        session = psycopg.connect(url, client_encoding="utf8")
    except psycopg.Error as error:
        raise ConnectionError(f"cannot open the PostgreSQL journal: {error}") from error
    with closing(session) as connection:
        path = psycopg.sql.Identifier(name or "tailproof")
        connection.execute(psycopg.sql.SQL("SET search_path TO {}").format(path))
        yield lambda sql: connection.execute(sql).fetchall()
