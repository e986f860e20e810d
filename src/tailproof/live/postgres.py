"""A journal in a PostgreSQL database, for several machines."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from tailproof.checks import require
from tailproof.extras import import_extra
from tailproof.live.journal import Journal

__all__ = ["Postgres"]

_PATIENCE = "60s"
"""How long to wait for others that write, and for one that begins to write and goes silent."""
_LONGEST_NAME = 63
"""PostgreSQL cuts longer names short, and then two may be one."""
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
"""Who has waited for others sees what they wrote."""
_WORDS = {
    r"%": "%%",
    r"\?": "%s",
    r"\bINTEGER\b": "BIGINT",
    r"\bREAL\b": "DOUBLE PRECISION",
    r"\bBLOB\b": "BYTEA",
    r" WITHOUT ROWID\b": "",
}
"""What psycopg and PostgreSQL say for the words of a journal's statements."""


class Postgres(Journal):
    """A journal in a database that processes of several machines may share.

    One row of a table ``clock`` counts the transactions; who has changed it keeps others out until
    the transaction ends, and sees by its number whether they wrote. The time is the server's, the
    same for all machines. A connection that is lost raises in the act that it was needed for, and
    the next act makes another.

    Parameters
    ----------
    url : str
        Where the database is, as libpq has it: ``postgresql://user@host/database``.
    name : str
        The journal; a database has room for many, each a PostgreSQL schema of that name.
    durable : bool
        Whether an answer waits for the server's disk, so that it survives a power cut there.
        Otherwise it survives a killed process of ours.
    make : bool
        Whether to make a journal where there is none, or refuse.

    Examples
    --------
    >>> Postgres("postgresql://localhost", name="pg_shop")
    Traceback (most recent call last):
    ValueError: name must be a text of 1 to 63 bytes that does not begin with pg_, got 'pg_shop'

    Source: our own. Differences: none.
    """

    READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

    def __init__(
        self, url: str, *, name: str = "tailproof", durable: bool = True, make: bool = True
    ) -> None:
        ok = isinstance(name, str) and name.isprintable() and not name.startswith("pg_")
        ok = ok and 0 < len(name.encode()) <= _LONGEST_NAME
        rule = f"a text of 1 to {_LONGEST_NAME} bytes that does not begin with pg_"
        require(ok, "name", rule, name)
        require(isinstance(durable, bool), "durable", "True or False", durable)
        self._psycopg = import_extra("psycopg", "postgres", "a journal in PostgreSQL")
        self.url, self.name, self.durable = url, name, durable
        self._inside, self._number = False, -1
        self._connect()
        try:
            self._prepare(make)
            super().__init__()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> None:
        """Open a session that looks at this journal alone, and gives up waiting at some time."""
        psycopg = self._psycopg
        self._number = -1
        self._connection = psycopg.connect(self.url, autocommit=True, client_encoding="utf8")
        whole = psycopg.types.numeric.Int8Dumper  # not by size: a statement is planned once
        self._connection.adapters.register_dumper(int, whole)
        settings = {
            "search_path": self._quoted,
            "lock_timeout": f"'{_PATIENCE}'",
            "idle_in_transaction_session_timeout": f"'{_PATIENCE}'",
        }
        settings |= {} if self.durable else {"synchronous_commit": "off"}
        for setting, value in settings.items():
            self._connection.execute(f"SET {setting} TO {value}")

    @property
    def _quoted(self) -> str:
        return '"' + self.name.replace('"', '""') + '"'

    def _prepare(self, make: bool) -> None:
        """See to it that there is a clock, which all transactions begin with."""
        if self._there("clock"):
            return
        require(make, "journal", "one that exists", f"{self.name} in PostgreSQL")
        self._connection.execute(
            f"{_BEGIN};"
            "SELECT pg_advisory_xact_lock(hashtext('tailproof'));"
            f"CREATE SCHEMA IF NOT EXISTS {self._quoted};"
            "CREATE TABLE IF NOT EXISTS clock (number BIGINT NOT NULL);"
            "INSERT INTO clock SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM clock);"
            "COMMIT"
        )

    def _there(self, table: str) -> bool:
        ((found,),) = self.execute("SELECT to_regclass(?)", (table,))
        return found is not None

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement, and return its rows."""
        if self._connection.broken and not self._inside:
            self._connect()
        return self._connection.execute(_translated(sql), values)

    def _begin(self) -> bool:
        before = self._number
        try:
            self._number = self._tick()
        except self._psycopg.OperationalError:
            if not self._connection.broken:
                raise
            self._connect()  # lost since the last act: nothing of this one was done
            self._number = self._tick()
        self._inside = True
        return self._number != before + 1

    def _tick(self) -> int:
        """Begin a transaction alone, and return its number."""
        found = self._connection.execute(
            f"{_BEGIN};"
            "UPDATE clock SET number = number + 1"
            " RETURNING number, EXTRACT(EPOCH FROM clock_timestamp())::DOUBLE PRECISION"
        )
        found.nextset()
        number, now = found.fetchone()
        self._set_clock(now)
        return int(number)

    def _end(self, ending: str) -> None:
        self._inside = False
        if ending == "COMMIT":
            self._connection.execute(ending)
            return
        self._number = -1
        idle = self._psycopg.pq.TransactionStatus.IDLE
        if not self._connection.broken and self._connection.info.transaction_status != idle:
            self._connection.execute(ending)

    def _schema(self) -> int:
        return int(self.meta()["schema"]) if self._there("meta") else 0

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


@lru_cache(maxsize=256)
def _translated(sql: str) -> str:
    """Return a statement as psycopg wants it.

    >>> _translated("CREATE TABLE arm (number INTEGER PRIMARY KEY, loss REAL) WITHOUT ROWID")
    'CREATE TABLE arm (number BIGINT PRIMARY KEY, loss DOUBLE PRECISION)'
    >>> _translated("SELECT name FROM arm WHERE number = ?")
    'SELECT name FROM arm WHERE number = %s'
    """
    for ours, theirs in _WORDS.items():
        sql = re.sub(ours, theirs, sql)
    return sql
