"""Journals in SQLite and PostgreSQL."""

from tailproof.live.journal.base import Journal
from tailproof.live.journal.connect import open_journal
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
