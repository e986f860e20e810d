"""Run a policy in production: ask for an arm, tell its reward, store both before answering."""

from tailproof.live.agent import Agent, Ask, Cancel, Fate, Tell, Ticket
from tailproof.live.export import Log, read
from tailproof.live.history import Imported, import_history
from tailproof.live.journal import Journal, Postgres, SQLite, open_journal
from tailproof.live.replay import Verification
from tailproof.live.retention import Pruned, prune

__all__ = [
    "Agent",
    "Ask",
    "Cancel",
    "Fate",
    "Imported",
    "Journal",
    "Log",
    "Postgres",
    "Pruned",
    "SQLite",
    "Tell",
    "Ticket",
    "Verification",
    "import_history",
    "open_journal",
    "prune",
    "read",
]
