"""Journals in SQLite and PostgreSQL."""

from tailproof.live.journal.base import OWN_ID, ConflictError, Glance, Journal, TicketRow
from tailproof.live.journal.connect import open_journal
from tailproof.live.journal.postgres import Postgres
from tailproof.live.journal.rows import (
    Chosen,
    Counts,
    Decision,
    DecisionRow,
    Ended,
    Found,
    Note,
    Outcome,
    Told,
)
from tailproof.live.journal.sqlite import SQLite

__all__ = [
    "OWN_ID",
    "Chosen",
    "ConflictError",
    "Counts",
    "Decision",
    "DecisionRow",
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
