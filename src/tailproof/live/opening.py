"""Which journal a text means."""

import sqlite3
from pathlib import Path

from tailproof.checks import require
from tailproof.extras import import_extra
from tailproof.live.journal import Journal
from tailproof.live.postgres import Postgres
from tailproof.live.sqlite import SQLite

__all__ = ["open_journal"]


def open_journal(
    journal: str | Path | Journal, *, durable: bool = True, make: bool = True
) -> Journal:
    """Return the journal that a path or a text means.

    Parameters
    ----------
    journal : path, str or Journal
        A file of SQLite; or ``"postgresql://user@host/database#name"``, a journal of that name in
        PostgreSQL, by default ``tailproof``; or a journal, which is returned as it is.
    durable : bool
        Whether an answer waits for the disk, see `SQLite` and `Postgres`.
    make : bool
        Whether to make a journal where there is none, or refuse.

    Examples
    --------
    >>> open_journal(":memory:").meta()
    {'schema': '1'}
    >>> open_journal("shop.db", make=False)
    Traceback (most recent call last):
    ValueError: journal must be a file that exists, got 'shop.db'

    Source: our own. Differences: none.
    """
    if isinstance(journal, Journal):
        return journal
    ok = isinstance(journal, str | Path) and bool(str(journal))
    require(ok, "journal", "a path, an address of PostgreSQL or a journal", journal)
    text = str(journal)
    if not text.startswith(("postgresql://", "postgres://")):
        try:
            return SQLite(journal, durable=durable, make=make)
        except sqlite3.DatabaseError as error:
            raise ValueError(f"journal must be a file of SQLite, got {text!r}: {error}") from error
    url, _, name = text.partition("#")
    psycopg = import_extra("psycopg", "postgres", "a journal in PostgreSQL")
    try:
        return Postgres(url, name=name or "tailproof", durable=durable, make=make)
    except psycopg.OperationalError as error:
        raise ConnectionError(f"PostgreSQL does not answer: {error}") from error
