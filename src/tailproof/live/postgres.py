"""A journal in PostgreSQL, for services on several machines."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from tailproof.checks import require
from tailproof.extras import import_extra
from tailproof.live.journal import Journal

__all__ = ["Postgres"]

_PATIENCE = "60s"
"""How long to wait for the lock, and how long a transaction may be idle before it is ended."""
_LONGEST_NAME = 63
"""PostgreSQL truncates longer identifiers, so that two names could become one."""
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
"""After waiting for the lock, a transaction must see what others have committed."""
_WORDS = {
    r"%": "%%",
    r"\?": "%s",
    r"\bINTEGER\b": "BIGINT",
    r"\bREAL\b": "DOUBLE PRECISION",
    r"\bBLOB\b": "BYTEA",
    r" WITHOUT ROWID\b": "",
}
"""How the SQL of a journal is translated for psycopg and PostgreSQL."""


class Postgres(Journal):
    """A journal in a database, which processes on several machines may share.

    Every transaction starts by incrementing the one row of a table ``clock``. Its row lock keeps
    other writers out until the commit, and a gap in the count shows that others wrote. Times are
    the server's, the same for all machines. If the connection is lost, the current call raises and
    the next one reconnects.

    Parameters
    ----------
    url : str
        The database as a libpq URI: ``postgresql://user@host/database``.
    name : str
        The name of the journal. Each journal is a PostgreSQL schema; a database may have many.
    durable : bool
        Whether a commit waits for the server's disk, so that it survives a power cut there. If
        False, it survives a killed client process.
    make : bool
        Whether to create a missing journal; if False, it raises ``ValueError``.

    Examples
    --------
    >>> Postgres("postgresql://localhost", name="pg_shop")
    Traceback (most recent call last):
    ValueError: name must be a printable string of 1 to 63 bytes that does not start with pg_, got
    'pg_shop'

    Source: our own. Differences: none.
    """

    READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

    def __init__(
        self, url: str, *, name: str = "tailproof", durable: bool = True, make: bool = True
    ) -> None:
        ok = isinstance(name, str) and name.isprintable() and not name.startswith("pg_")
        ok = ok and 0 < len(name.encode()) <= _LONGEST_NAME
        rule = f"a printable string of 1 to {_LONGEST_NAME} bytes that does not start with pg_"
        require(ok, "name", rule, name)
        require(isinstance(durable, bool), "durable", "True or False", durable)
        self._psycopg = import_extra("psycopg", "postgres", "a PostgreSQL journal")
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
        """Open a session on this journal's schema, with lock and idle timeouts."""
        psycopg = self._psycopg
        self._number = -1
        self._connection = psycopg.connect(self.url, autocommit=True, client_encoding="utf8")
        whole = psycopg.types.numeric.Int8Dumper  # one type for all sizes, so one plan
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
        """Create the schema and its ``clock`` if they are missing."""
        if self._there("clock"):
            return
        if not make:
            raise ValueError(f"journal {self.name!r} does not exist in this PostgreSQL database")
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
        """Run a statement and return its rows."""
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
            self._connect()  # lost since the last transaction; this one has not begun
            self._number = self._tick()
        self._inside = True
        return self._number != before + 1

    def _tick(self) -> int:
        """Begin an exclusive transaction and return its number."""
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
    """Return a statement in the dialect of psycopg and PostgreSQL.

    >>> _translated("CREATE TABLE arm (number INTEGER PRIMARY KEY, loss REAL) WITHOUT ROWID")
    'CREATE TABLE arm (number BIGINT PRIMARY KEY, loss DOUBLE PRECISION)'
    >>> _translated("SELECT name FROM arm WHERE number = ?")
    'SELECT name FROM arm WHERE number = %s'
    """
    for ours, theirs in _WORDS.items():
        sql = re.sub(ours, theirs, sql)
    return sql
