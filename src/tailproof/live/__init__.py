"""Run a policy in production: ask for an arm, tell its reward, store both before answering."""

from tailproof.live.agent import Agent, Ask, Fate, Tell, Ticket
from tailproof.live.fold import Verification
from tailproof.live.http.client import AsyncClient, Client
from tailproof.live.journal import Journal
from tailproof.live.log import Log, read
from tailproof.live.opening import open_journal
from tailproof.live.postgres import Postgres
from tailproof.live.sqlite import SQLite

__all__ = [
    "Agent",
    "Ask",
    "AsyncClient",
    "Client",
    "Fate",
    "Journal",
    "Log",
    "Postgres",
    "SQLite",
    "Tell",
    "Ticket",
    "Verification",
    "open_journal",
    "read",
]
