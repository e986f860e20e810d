"""Live use: decisions one at a time, nothing lost."""

from tailproof.live.agent import Agent, Ask, Fate, Tell, Ticket
from tailproof.live.fold import Verification
from tailproof.live.journal import Journal
from tailproof.live.log import Log, read
from tailproof.live.sqlite import SQLite

__all__ = [
    "Agent",
    "Ask",
    "Fate",
    "Journal",
    "Log",
    "SQLite",
    "Tell",
    "Ticket",
    "Verification",
    "read",
]
