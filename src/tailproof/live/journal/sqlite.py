"""A journal in a SQLite file."""

import os
import sqlite3
import time
import weakref
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tailproof.checks import require
from tailproof.live.journal.base import Journal

__all__ = ["SQLite"]

_PATIENCE = 60.0
"""Seconds to wait for other writers."""
_PAGE = 1024
"""Bytes of a page: a commit writes each page that it touches, and an ask or tell touches seven."""
_CHECKPOINT = 1 << 22
"""Bytes of new pages after which they are moved from the -wal file to the journal."""
_PAUSE = 0.0005
"""Seconds between two tries to begin."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")
"""Changes when a Linux machine starts; in between, its monotonic clock is the same for all."""


class SQLite(Journal):
    """A journal in a file, which threads and processes of one machine may share.

    Parameters
    ----------
    path : path
        The file; a new one gets permissions for its owner only.
    durable : bool
        Whether a commit waits for the disk, so that it survives a power cut. If False, it survives
        a killed process.
    make : bool
        Whether to create a missing file; if False, it raises ``ValueError``.

    Examples
    --------
    >>> journal = SQLite(":memory:")
    >>> journal.meta()
    {'schema': '4'}
    """

    def __init__(self, path: str | Path, *, durable: bool = True, make: bool = True) -> None:
        require(isinstance(durable, bool), "durable", "True or False", durable)
        self.path = str(path)
        memory = self.path == ":memory:"
        if not make and not Path(path).is_file():
            raise ValueError(f"journal {self.path!r} does not exist")
        alone = not make and not os.access(self.path, os.W_OK)  # a read-only copy
        if not memory and not alone:
            with suppress(FileExistsError):  # closing an old one would drop our locks on it
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        where = f"{Path(path).absolute().as_uri()}?immutable=1" if alone else self.path
        self._connection = sqlite3.connect(
            where, timeout=0, isolation_level=None, check_same_thread=False, uri=alone
        )
        # an agent that is dropped closes its file: its answers are committed
        self._close = weakref.finalize(self, self._connection.close)
        self.read_only = alone
        self._next = -1
        try:
            self._check(make)
            if not memory and not alone:
                self.execute(f"PRAGMA page_size = {_PAGE}")  # of a new file; others keep theirs
                self.execute("PRAGMA journal_mode = WAL")
                self.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT // _PAGE}")
            self.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._file = None if memory or alone else self._identity()
            super().__init__()
            if self._file and _BOOT.exists():
                self._share_clock(_BOOT.read_text().strip())
        except BaseException:
            self.close()
            raise

    def _check(self, make: bool) -> None:
        """Raise ``ValueError`` if the file is something else, before writing to it."""
        tables = {name for (name,) in self.execute("SELECT name FROM sqlite_master")}
        earlier = ({"request", "outcome"}, {"ticket", "decision"}, {"ticket", "hold"})
        ours = "meta" in tables and any(tables >= some for some in earlier)
        if not ours and not (make and not tables):
            raise ValueError(f"{self.path!r} is a SQLite file, but not a journal of tailproof")

    def _identity(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino

    def _share_clock(self, boot: str) -> None:
        """Take the clock of the first process, if the machine's clock was set since then."""
        if self._took_clock(boot):  # a process that only reads waits for no writer
            return
        with self.transaction():
            if not self._took_clock(boot):
                self.set_meta(clock=f"{boot} {self._start!r}")

    def _took_clock(self, boot: str) -> bool:
        last, _, start = self.meta().get("clock", " ").partition(" ")
        self._start = float(start) if last == boot else self._start
        return last == boot

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement, if need be after other writers, and return its rows."""
        try:
            return self._connection.execute(sql, values)
        except sqlite3.OperationalError as error:
            return self._execute_later(sql, values, error)

    def _execute_later(self, sql: str, values: Sequence[Any], error: Exception) -> Any:
        """Try again while others write.

        SQLite itself would sleep for up to 100 ms between two tries, and for some statements
        not try again at all.
        """
        end = time.monotonic() + _PATIENCE
        while True:
            code = getattr(error, "sqlite_errorcode", 0)
            if code & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise error
            time.sleep(_PAUSE)
            try:
                return self._connection.execute(sql, values)
            except sqlite3.OperationalError as again:
                error = again

    def execute_many(self, sql: str, rows: Collection[Sequence[Any]]) -> None:
        """Run a statement for each row."""
        if len(rows) == 1:
            self._connection.execute(sql, *rows)
        else:
            self._connection.executemany(sql, rows)

    def _is_conflict(self, error: BaseException) -> bool:
        return isinstance(error, sqlite3.IntegrityError)

    def _begin(self) -> None:
        if self._file is not None and self._identity() != self._file:
            raise OSError(
                f"the file {self.path!r} was deleted or replaced while in use: stop everything "
                "that uses it, restore it with its -wal file, and start again"
            )
        self._next = -1
        self.execute("BEGIN IMMEDIATE")

    def _end(self, ending: str) -> None:
        if self._connection.in_transaction:
            self._connection.execute(ending)

    def new_id(self, last: int | None) -> int:
        """Return the id of a new request: the next number."""
        self._next = max(self._next, -1 if last is None else last) + 1
        return self._next

    def compact(self) -> None:
        """Rewrite the file without removed rows, unless others use it just now."""
        with suppress(sqlite3.OperationalError):
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _schema(self) -> int:
        ((count,),) = self.execute("SELECT COUNT(*) FROM sqlite_master WHERE name = 'meta'")
        return int(self.meta()["schema"]) if count else 0

    def close(self) -> None:
        """Close the file."""
        self._close()
