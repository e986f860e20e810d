"""A journal in PostgreSQL, for services on several machines."""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import Any

from tailproof.checks import require
from tailproof.extras import import_extra
from tailproof.live.journal.base import Journal

__all__ = ["Postgres"]

_PATIENCE = "60s"
"""How long to wait for a lock, and how long a transaction may be idle before it is ended."""
_LONGEST_NAME = 63
"""PostgreSQL truncates longer identifiers, so that two names could become one."""
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
"""After waiting for a lock, a transaction must see the commits of others."""
_BLOCK = 64
"""Ids that a worker takes from the sequence at once."""
_FETCHED = 2000
"""Rows of a long result that are fetched at once."""
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

    Transactions run beside each other. An advisory lock, taken only if it is free, says which of
    them may give numbers to outcomes. Times are the server's, the same for all machines. If the
    connection is lost, the current call raises and the next one reconnects.

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
    """

    READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    SHARED = " FOR KEY SHARE"
    TELLING = " FOR SHARE OF r"
    ORDERING = " FOR UPDATE OF r SKIP LOCKED"
    CLOCK = "EXTRACT(EPOCH FROM clock_timestamp())::DOUBLE PRECISION"
    GRACE = 0.5
    serial = False

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
        self._queue: list[_Rows] | None = None
        self._free = range(0)
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
        self._connection = psycopg.connect(self.url, autocommit=True, client_encoding="utf8")
        whole = psycopg.types.numeric.Int8Dumper  # one type for all sizes, so one plan
        self._connection.adapters.register_dumper(int, whole)
        settings = {
            "search_path": self._quoted,
            "lock_timeout": f"'{_PATIENCE}'",
            "idle_in_transaction_session_timeout": f"'{_PATIENCE}'",
            "jit": "off",
        }
        settings |= {} if self.durable else {"synchronous_commit": "off"}
        for setting, value in settings.items():
            self._connection.execute(f"SET {setting} TO {value}")
        # keys of the two advisory locks of this journal
        ((self._key,),) = self._connection.execute("SELECT hashtext(%s)", (f"tp {self.name}",))

    @property
    def _quoted(self) -> str:
        return '"' + self.name.replace('"', '""') + '"'

    def _prepare(self, make: bool) -> None:
        """Create the schema if it is missing."""
        if self._there("meta"):
            return
        if not make:
            raise ValueError(f"journal {self.name!r} does not exist in this PostgreSQL database")
        self._connection.execute(
            f"{_BEGIN};"
            "SELECT pg_advisory_xact_lock(hashtext('tailproof'));"
            f"CREATE SCHEMA IF NOT EXISTS {self._quoted};"
            f"CREATE SEQUENCE IF NOT EXISTS ids MINVALUE 0 START 0 INCREMENT {_BLOCK};"
            "COMMIT"
        )

    def _there(self, table: str) -> bool:
        sql = "SELECT COUNT(*) FROM pg_tables WHERE schemaname = ? AND tablename = ?"
        ((count,),) = self.execute(sql, (self.name, table))
        return bool(count)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement and return its rows; in a transaction it is sent when rows are read."""
        if self._queue is None:
            if self._connection.broken:
                self._connect()
            return self._connection.execute(_translated(sql), values)
        rows = _Rows(self, sql, values)
        self._queue.append(rows)
        return rows

    def execute_many(self, sql: str, rows: Collection[Sequence[Any]]) -> None:
        """Run a statement for each row."""
        if rows and self._queue is not None:
            self._queue.append(_Rows(self, sql, list(rows), many=True))

    def wait(self) -> None:
        """Send all statements so far at once, and wait for the answers.

        In between the session is idle, so that the server ends it if we do not go on.
        """
        if not self._queue:
            return
        queue, self._queue = self._queue, []
        try:
            self._send(queue)
        except self._psycopg.OperationalError:
            begins = queue[0].sql == _BEGIN and queue[-1].sql != "COMMIT"
            if not (begins and self._connection.broken):
                raise
            self._connect()  # lost since the last transaction; this one has not begun
            self._send(queue)

    def _send(self, queue: "list[_Rows]") -> None:
        if self._connection.broken:
            if queue[0].sql != _BEGIN:  # the rest of a transaction must not go without its start
                raise self._psycopg.OperationalError("the connection was closed in a transaction")
            self._connect()
        with self._connection.pipeline():
            for rows in queue:
                rows.send(self._connection.cursor())

    def stream(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        """Yield the rows of a long result without keeping them all, within `moment`."""
        with self._connection.cursor(name=f"long {id(values)}") as cursor:
            cursor.itersize = _FETCHED
            yield from cursor.execute(_translated(sql), values)

    def _begin(self) -> None:
        self._queue = []
        self.execute(_BEGIN)

    def _end(self, ending: str) -> None:
        if ending == "COMMIT":
            self.execute(ending)
            self.wait()
            self._queue = None
            return
        self._queue, self._free = None, range(0)
        idle = self._psycopg.pq.TransactionStatus.IDLE
        if not self._connection.broken and self._connection.info.transaction_status != idle:
            self._connection.rollback()  # which also forgets what was to be prepared

    def _is_conflict(self, error: BaseException) -> bool:
        return isinstance(error, self._psycopg.errors.UniqueViolation)

    @property
    def ORDERS(self) -> str:  # type: ignore[override]  # noqa: N802
        """A lock that is taken only if it is free, so no worker waits for the one that numbers."""
        return f"pg_try_advisory_xact_lock(1, {self._key})"

    def new_id(self, last: int | None) -> int:
        """Return the id of a new request, from a block of this worker."""
        if not self._free:
            ((first,),) = self.execute("SELECT nextval('ids')")
            self._free = range(first, first + _BLOCK)
        number, self._free = self._free[0], self._free[1:]
        return number

    def lock(self, what: str, names: Collection[str] = ()) -> None:
        """Keep others out until the end of the transaction; see `Journal.lock`."""
        if what == "schema":
            self.execute("SELECT pg_advisory_xact_lock(hashtext('tailproof'))")
        elif what == "arms":
            self.execute("SELECT pg_advisory_xact_lock(2, ?::int)", (self._key,))
        elif what == "offers":
            self.execute("LOCK TABLE offer IN EXCLUSIVE MODE")
        for name in sorted(names):  # in one order, so that nobody waits in a circle
            values = (f"{self.name} {name}",)
            self.execute("SELECT pg_advisory_xact_lock(3, hashtext(?))", values)

    def compact(self) -> None:
        """Let the room of removed rows be used again; the server does so by itself, but later."""
        for table in ("event", "request", "due", "outcome", "offer", "snapshot"):
            self.execute(f"VACUUM {table}")

    def _schema(self) -> int:
        return int(self.meta()["schema"]) if self._there("meta") else 0

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class _Rows:
    """A statement of a transaction, which is sent, with those before it, when its rows are read."""

    def __init__(
        self, journal: Postgres, sql: str, values: Sequence[Any], *, many: bool = False
    ) -> None:
        self._journal, self.sql, self._values, self._many = journal, sql, values, many
        self._cursor: Any = None

    def send(self, cursor: Any) -> None:
        """Send the statement, without waiting for the answer."""
        self._cursor = cursor
        (cursor.executemany if self._many else cursor.execute)(_translated(self.sql), self._values)

    def __iter__(self) -> Iterator[Any]:
        if self._cursor is None:
            self._journal.wait()
        return iter(self._cursor)


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
