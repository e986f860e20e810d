"""Which journal a text means."""

from pathlib import Path

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
    text = str(journal)
    if not text.startswith(("postgresql://", "postgres://")):
        return SQLite(journal, durable=durable, make=make)
    url, _, name = text.partition("#")
    return Postgres(url, name=name or "tailproof", durable=durable, make=make)
