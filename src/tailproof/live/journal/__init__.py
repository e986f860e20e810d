"""Journals in SQLite and PostgreSQL."""

from tailproof.live.journal.base import OWN_ID, ConflictError, Glance, Journal, TicketRow
from tailproof.live.journal.connect import open_journal
from tailproof.live.journal.postgres import Postgres
from tailproof.live.journal.rows import (
    BEFORE,
    CANCELLED,
    REPEATED,
    Chosen,
    Counts,
    Decision,
    DecisionRow,
    Earlier,
    Ended,
    Found,
    Note,
    Outcome,
    Told,
)
from tailproof.live.journal.sqlite import SQLite

__all__ = [
    "BEFORE",
    "CANCELLED",
    "OWN_ID",
    "REPEATED",
    "Chosen",
    "ConflictError",
    "Counts",
    "Decision",
    "DecisionRow",
    "Earlier",
    "Ended",
    "Found",
    "Glance",
    "Journal",
    "Note",
    "Outcome",
    "Postgres",
    "SQLite",
    "TicketRow",
    "Told",
    "open_journal",
]
