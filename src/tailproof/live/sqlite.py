"""A journal in a SQLite file."""

import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tailproof.checks import require
from tailproof.live.journal import Journal

__all__ = ["SQLite"]

_PATIENCE = 60.0
"""Seconds to wait for other writers."""


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
    {'schema': '1'}

    Source: our own. Differences: none.
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
            where, timeout=_PATIENCE, isolation_level=None, check_same_thread=False, uri=alone
        )
        self._version, self.read_only = -1, alone
        try:
            self._check(make)
            if not memory and not alone:
                self._write_ahead()
            self.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            super().__init__()
        except BaseException:
            self.close()
            raise

    def _check(self, make: bool) -> None:
        """Raise ``ValueError`` if the file is something else, before writing to it."""
        tables = {name for (name,) in self.execute("SELECT name FROM sqlite_master")}
        ours = tables >= {"meta", "hold", "ticket"} or (make and not tables)
        if not ours:
            raise ValueError(f"{self.path!r} is a SQLite file, but not a journal of tailproof")

    def _write_ahead(self) -> None:
        """Turn on write-ahead logging; SQLite does not wait for others that do so, so we retry."""
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                self.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not busy or time.monotonic() > end:
                    raise
                time.sleep(0.001)

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement and return its rows."""
        return self._connection.execute(sql, values)

    def _begin(self) -> bool:
        self.execute("BEGIN IMMEDIATE")
        ((version,),) = self.execute("PRAGMA data_version")
        before, self._version = self._version, int(version)
        return before != self._version

    def _end(self, ending: str) -> None:
        if self._connection.in_transaction:
            self.execute(ending)

    def _schema(self) -> int:
        ((found,),) = self.execute("SELECT COUNT(*) FROM sqlite_master WHERE name = 'meta'")
        return int(self.meta()["schema"]) if found else 0

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
