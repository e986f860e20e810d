"""Journals in SQLite and PostgreSQL, opened by path or URL."""

import re
import sqlite3
from pathlib import Path

from tailproof.checks import require
from tailproof.extras import import_extra
from tailproof.live.journal.base import Journal
from tailproof.live.journal.postgres import Postgres
from tailproof.live.journal.rows import (
    BEFORE,
    CANCELLED,
    LARGE,
    PAGE,
    Batch,
    ConflictError,
    Note,
    Outcome,
    Request,
    own_id,
    sealed_event,
    sealed_outcome,
)
from tailproof.live.journal.sqlite import SQLite

__all__ = [
    "BEFORE",
    "CANCELLED",
    "LARGE",
    "PAGE",
    "Batch",
    "ConflictError",
    "Journal",
    "Note",
    "Outcome",
    "Postgres",
    "Request",
    "SQLite",
    "open_journal",
    "own_id",
    "sealed_event",
    "sealed_outcome",
]

_URL = re.compile(r"postgres(ql)?://([^@/?#]*@)?[^@/?#]*(/[^@?#]*)?(\?[^#]*)?(#[^@]*)?", re.DOTALL)
_INVALID = (
    "cannot read the postgresql:// URL of the journal: it is postgresql://user:password@host/"
    "database, with special characters in user and password percent-encoded"
)


def open_journal(
    journal: str | Path | Journal, *, durable: bool = True, make: bool = True
) -> Journal:
    """Open the journal at a path or URL.

    Parameters
    ----------
    journal : path, str or Journal
        A SQLite file; or ``"postgresql://user@host/database#name"``, the journal of that name in
        PostgreSQL, by default ``tailproof``; or a `Journal`, which is returned as it is.
    durable : bool
        Whether a commit waits for the disk; see `SQLite` and `Postgres`.
    make : bool
        Whether to create a missing journal; if False, it raises ``ValueError``.

    Examples
    --------
    >>> open_journal(":memory:").meta()
    {'schema': '4'}
    >>> open_journal("shop.db", make=False)
    Traceback (most recent call last):
    ValueError: journal 'shop.db' does not exist
    """
    if isinstance(journal, Journal):
        return journal
    ok = isinstance(journal, str | Path) and bool(str(journal))
    require(ok, "journal", "a path, a postgresql:// URL or a Journal", journal)
    text = str(journal)
    scheme, separator, _ = text.partition("://")
    if separator and scheme not in ("postgresql", "postgres"):
        raise ValueError(f"cannot open a journal at {scheme}://…: use a file or postgresql://")
    if not text.startswith(("postgresql://", "postgres://")):
        try:
            return SQLite(journal, durable=durable, make=make)
        except sqlite3.DatabaseError as error:
            raise ValueError(f"cannot open {text!r} as a SQLite journal: {error}") from error
    if not _URL.fullmatch(text):
        raise ValueError(_INVALID)
    url, _, name = text.partition("#")
    psycopg = import_extra("psycopg", "postgres", "a PostgreSQL journal")
    try:
        psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError:  # its message shows parts of the URL
        raise ValueError(_INVALID) from None
    try:
        return Postgres(url, name=name or "tailproof", durable=durable, make=make)
    except psycopg.OperationalError as error:
        raise ConnectionError(f"cannot open the PostgreSQL journal: {error}") from error
