"""Run a policy in production: ask for an arm, tell its reward, store both before answering."""

from tailproof.live.acts import Ask, Cancel, Status, Tell, Ticket
from tailproof.live.agent import Agent
from tailproof.live.export import Log, read
from tailproof.live.history import Imported, import_history
from tailproof.live.journal import Journal, Postgres, SQLite, open_journal
from tailproof.live.recipe import Recipe
from tailproof.live.retention import Pruned, prune
from tailproof.live.verification import Verification

__all__ = [
    "Agent",
    "Ask",
    "Cancel",
    "Imported",
    "Journal",
    "Log",
    "Postgres",
    "Pruned",
    "Recipe",
    "SQLite",
    "Status",
    "Tell",
    "Ticket",
    "Verification",
    "import_history",
    "open_journal",
    "prune",
    "read",
]


def __dir__() -> list[str]:
    return __all__
