"""Journals: every ask and tell is stored before it is answered.

All SQL is in one class. A backend adds how to connect, and how a transaction keeps other writers
out; see `SQLite` and `Postgres`.
"""

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from tailproof.live.offers import Offer
from tailproof.live.records import Closing, Decision, Found, HoldRow

__all__ = ["KEPT", "LATE", "OWN_ID", "Journal"]

KEPT, LATE = 1, 2
"""The stored status of a reward: in time for its decision, or not."""
OWN_ID = re.compile(r"(\d{1,18})\.(\d{1,9})")
"""Generated ticket ids, for asks without one: decision and number within it."""
_OFFERS = 1024
"""Size of the caches of offers."""


class Journal(ABC):
    """Tables of arms, offers, decisions and tickets, and snapshots that only save time.

    An offer is stored once. A decision, a row of the table ``hold``, is an arm of an offer. A
    ticket is a request that got this arm, with its reward once it is told. Decisions end one after
    the other; their outcomes, in this order, are what the policy has learned.
    """

    MIGRATIONS: ClassVar[Sequence[Sequence[str]]] = (
        (
            "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
            "CREATE TABLE arm (number INTEGER PRIMARY KEY, name TEXT NOT NULL, hold INTEGER"
            " NOT NULL)",
            "CREATE TABLE offer (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE,"
            " names TEXT NOT NULL, features BLOB)",
            "CREATE TABLE hold (id INTEGER PRIMARY KEY, offer INTEGER NOT NULL,"
            " arm INTEGER NOT NULL, propensity REAL, explore REAL NOT NULL,"
            " after INTEGER NOT NULL, since INTEGER NOT NULL, closed INTEGER, learned INTEGER)",
            "CREATE UNIQUE INDEX hold_closed ON hold (closed) WHERE closed IS NOT NULL",
            "CREATE INDEX hold_open ON hold (id) WHERE closed IS NULL",
            "CREATE TABLE ticket (hold INTEGER, number INTEGER, id TEXT, asked REAL NOT NULL,"
            " reward REAL, told REAL, fate INTEGER, PRIMARY KEY (hold, number)) WITHOUT ROWID",
            "CREATE UNIQUE INDEX ticket_id ON ticket (id) WHERE id IS NOT NULL",
            "CREATE INDEX ticket_late ON ticket (fate) WHERE fate = 2",
            "CREATE TABLE snapshot (after INTEGER PRIMARY KEY, state BLOB NOT NULL)",
        ),
    )
    """Steps from each schema to the next; the schema number is how many have run.

    Append new steps, and never change old ones.
    """

    READING: ClassVar[str] = "BEGIN"
    """Begins a read-only transaction that sees the database at one point in time."""

    read_only = False
    """Whether the journal cannot be written to."""

    def __init__(self) -> None:
        self._offer_at = lru_cache(maxsize=_OFFERS)(self._read_offer)
        self._number_of = lru_cache(maxsize=_OFFERS)(self._find_offer)
        self._set_clock(time.time())
        self.migrate()

    @abstractmethod
    def execute(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement with ? for each value and return its rows."""

    @abstractmethod
    def _begin(self) -> bool:
        """Begin an exclusive transaction; return whether others wrote since our last one."""

    @abstractmethod
    def _end(self, ending: str) -> None:
        """End the transaction: COMMIT or ROLLBACK."""

    @abstractmethod
    def _schema(self) -> int:
        """Return the schema number, 0 for an empty journal."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def _set_clock(self, now: float) -> None:
        self._start = now - time.monotonic()

    def now(self) -> float:
        """Return the time in seconds since 1970, by a monotonic clock."""
        return self._start + time.monotonic()

    @contextmanager
    def transaction(self) -> Iterator[bool]:
        """Run the body atomically; yields whether others wrote since our last transaction."""
        try:
            yield self._begin()
            self._end("COMMIT")
        except BaseException:
            self._number_of.cache_clear()
            self._offer_at.cache_clear()
            self._end("ROLLBACK")
            raise

    @contextmanager
    def moment(self) -> Iterator[None]:
        """Read the journal at one point in time, on a connection of its own; blocks no writer."""
        self.execute(self.READING)
        try:
            yield
        finally:
            self._end("ROLLBACK")

    def migrate(self) -> None:
        """Migrate the tables to the schema of this version; a later one raises ``ValueError``."""
        ours = len(self.MIGRATIONS)
        if self.read_only:
            found = self._schema()
            if found != ours:
                raise ValueError(
                    f"cannot read this read-only journal: it has schema {found}, and this version "
                    f"of tailproof reads {ours}; migrate a writable copy, or upgrade tailproof"
                )
            return
        with self.transaction():
            found = self._schema()
            if found > ours:
                raise ValueError(
                    f"the journal has schema {found}, and this version of tailproof knows schemas "
                    f"up to {ours}: upgrade tailproof"
                )
            for step in self.MIGRATIONS[found:]:
                for statement in step:
                    self.execute(statement)
            if found < ours:
                self.set_meta(schema=str(ours))

    def meta(self) -> dict[str, str]:
        """Return the metadata of the journal."""
        return dict(self.execute("SELECT key, value FROM meta"))

    def set_meta(self, **values: str) -> None:
        """Set metadata of the journal."""
        new = "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        for item in values.items():
            self.execute(f"INSERT INTO meta VALUES (?, ?) {new}", item)

    def arms(self, since: int = 0) -> dict[str, int]:
        """Return the numbers of arms by name, from number `since` on."""
        sql = "SELECT name, number FROM arm WHERE number >= ? ORDER BY number"
        return dict(self.execute(sql, (since,)))

    def add_hold(self, row: HoldRow, numbers: dict[str, int]) -> None:
        """Store a decision, with its offer and arms if they are new."""
        (hold, offer, arm, propensity), explore, after, since = row
        number = self._number_of(offer.key)
        if number is None:
            ((number,),) = self.execute("SELECT COALESCE(MAX(id), -1) + 1 FROM offer")
            new = (number, offer.key, *offer.row())
            self.execute("INSERT INTO offer VALUES (?, ?, ?, ?)", new)
            self._number_of.cache_clear()
            once = "ON CONFLICT DO NOTHING"
            for name in offer.names:
                self.execute(
                    f"INSERT INTO arm VALUES (?, ?, ?) {once}", (numbers[name], name, hold)
                )
        values = (hold, number, arm, propensity, explore, after, since)
        self.execute("INSERT INTO hold VALUES (?, ?, ?, ?, ?, ?, ?, NULL, NULL)", values)

    def counts(self) -> tuple[int, int]:
        """Return the number of decisions, and how many have ended."""
        ((holds,),) = self.execute("SELECT COALESCE(MAX(id), -1) + 1 FROM hold")
        sql = "SELECT COALESCE(MAX(closed), -1) + 1 FROM hold WHERE closed IS NOT NULL"
        ((ended,),) = self.execute(sql)
        return holds, ended

    def last_after(self) -> int:
        """Return how many outcomes had been learned when the last decision was made."""
        rows = self.execute("SELECT after FROM hold ORDER BY id DESC LIMIT 1")
        return next((int(after) for (after,) in rows), 0)

    def holds(self, first: int, stop: int) -> Iterator[HoldRow]:
        """Yield decisions in the order in which they were made."""
        sql = "SELECT id, offer, arm, propensity, explore, after, since FROM hold"
        for start in range(first, stop, 1000):
            values = (start, min(start + 1000, stop))
            for row in self.execute(f"{sql} WHERE id >= ? AND id < ? ORDER BY id", values):
                yield HoldRow(self.decided(*row[:4]), *row[4:])

    def unfolded(self, after: int, since: int) -> dict[int, Decision]:
        """Return the decisions from `since` on that are not among the first `after` outcomes."""
        sql = "SELECT id, offer, arm, propensity FROM hold WHERE id >= ?"
        rows = self.execute(
            f"{sql} AND (closed IS NULL OR closed >= ?) ORDER BY id", (since, after)
        )
        return {row[0]: self.decided(*row) for row in rows}

    def open_holds(self) -> tuple[list[tuple[Any, ...]], list[tuple[int, int, float, Any]]]:
        """Return open decisions and their tickets, each in order.

        A decision has the digest of its offer, and the arguments of `decided`; a ticket has its
        decision and number, when it was asked for, and when told, if it was. The cross join makes
        SQLite start from the open decisions; otherwise it would scan every ticket.
        """
        holds = self.execute(
            "SELECT digest, hold.id, offer, arm, propensity FROM hold"
            " JOIN offer ON offer.id = offer WHERE closed IS NULL ORDER BY hold.id"
        )
        tickets = self.execute(
            "SELECT hold, number, asked, told FROM hold CROSS JOIN ticket"
            " WHERE ticket.hold = hold.id AND closed IS NULL ORDER BY hold.id, number"
        )
        return [(bytes(digest), *decided) for digest, *decided in holds], list(tickets)

    def tickets(self, hold: int) -> list[tuple[float, float | None]]:
        """Return when the tickets of a decision were asked for and told."""
        sql = "SELECT asked, told FROM ticket WHERE hold = ? ORDER BY number"
        return list(self.execute(sql, (hold,)))

    def add_ticket(self, hold: int, number: int, name: str | None, asked: float) -> None:
        """Store a ticket."""
        sql = "INSERT INTO ticket (hold, number, id, asked) VALUES (?, ?, ?, ?)"
        self.execute(sql, (hold, number, name, asked))

    def find(self, ticket: str) -> Found | None:
        """Return the ticket with this id, None if there is none."""
        sql = "SELECT hold, number, told, closed FROM ticket JOIN hold ON hold.id = hold WHERE"
        own = OWN_ID.fullmatch(ticket)
        which = "hold = ? AND number = ? AND ticket.id IS NULL" if own else "ticket.id = ?"
        for row in self.execute(
            f"{sql} {which}", [int(n) for n in own.groups()] if own else [ticket]
        ):
            return Found(*row)
        return None

    def tell(self, found: Found, reward: float, at: float, fate: int) -> None:
        """Store the reward of a ticket."""
        sql = "UPDATE ticket SET reward = ?, told = ?, fate = ? WHERE hold = ? AND number = ?"
        self.execute(sql, (reward, at, fate, found.hold, found.number))

    def close_hold(self, hold: int, number: int, learned: bool) -> None:
        """End a decision; `number` counts the outcomes from 0."""
        sql = "UPDATE hold SET closed = ?, learned = ? WHERE id = ?"
        self.execute(sql, (number, int(learned), hold))

    def closings(self, first: int, stop: int) -> Iterator[Closing]:
        """Yield the outcomes of decisions, in the order in which they ended."""
        for start in range(first, stop, 1000):
            values = (start, min(start + 1000, stop))
            rows = self.execute(
                "SELECT id, offer, arm, propensity, learned FROM hold"
                " WHERE closed >= ? AND closed < ? ORDER BY closed",
                values,
            )
            rewards: dict[int, list[float]] = {}
            for hold, reward in self.execute(
                "SELECT hold.id, reward FROM hold JOIN ticket ON ticket.hold = hold.id"
                " WHERE closed >= ? AND closed < ? AND learned = 1 AND fate = 1"
                " ORDER BY closed, number",
                values,
            ):
                rewards.setdefault(hold, []).append(reward)
            for hold, offer, arm, propensity, learned in rows:
                decision = self.decided(hold, offer, arm, propensity)
                yield Closing(decision, bool(learned), np.array(rewards.get(hold, [])))

    def ended(self, first: int) -> list[int]:
        """Return the decisions that ended, from outcome `first` on."""
        sql = "SELECT id FROM hold WHERE closed >= ? ORDER BY closed"
        return [hold for (hold,) in self.execute(sql, (first,))]

    def ended_tickets(self, first: int, stop: int) -> list[tuple[Any, ...]]:
        """Return the tickets of ended decisions: offer, arm, time asked, reward if in time."""
        sql = (
            "SELECT offer, arm, asked, CASE WHEN fate = 1 THEN reward END FROM hold"
            " JOIN ticket ON ticket.hold = hold.id WHERE closed >= ? AND closed < ?"
            " ORDER BY closed, number"
        )
        return list(self.execute(sql, (first, stop)))

    def open_tickets(self, before: float) -> list[tuple[int, int, int, int, int]]:
        """Count the tickets of open decisions by offer and arm.

        The counts are of all tickets, of those told, and of the others asked for before `before`.
        """
        sql = (
            "SELECT offer, arm, COUNT(*), COUNT(told),"
            " COUNT(CASE WHEN told IS NULL AND asked < ? THEN 1 END) FROM hold CROSS JOIN ticket"
            " WHERE ticket.hold = hold.id AND closed IS NULL GROUP BY offer, arm"
        )
        return list(self.execute(sql, (before,)))

    def late(self) -> int:
        """Return how many rewards came after their decision had ended."""
        ((count,),) = self.execute("SELECT COUNT(*) FROM ticket WHERE fate = 2")
        return int(count)

    def offer(self, number: int) -> Offer:
        """Return an offer by its number."""
        return self._offer_at(number)

    def decision(self, hold: int) -> Decision:
        """Return a decision by its number."""
        sql = "SELECT id, offer, arm, propensity FROM hold WHERE id = ?"
        (row,) = self.execute(sql, (hold,))
        return self.decided(*row)

    def add_snapshot(self, after: int, state: bytes) -> None:
        """Store the state after so many outcomes; keep only the latest of the older snapshots."""
        self.execute("DELETE FROM snapshot WHERE after < (SELECT MAX(after) FROM snapshot)")
        new = "ON CONFLICT (after) DO UPDATE SET state = excluded.state"
        self.execute(f"INSERT INTO snapshot VALUES (?, ?) {new}", (after, state))

    def last_snapshot(self) -> tuple[int, int]:
        """Return after how many outcomes the latest snapshot was taken, and its size."""
        rows = self.execute("SELECT after, LENGTH(state) FROM snapshot ORDER BY after DESC LIMIT 1")
        return next(((int(after), int(size)) for after, size in rows), (0, 0))

    def snapshots(self) -> list[tuple[int, bytes]]:
        """Return the snapshots, latest first."""
        rows = self.execute("SELECT after, state FROM snapshot ORDER BY after DESC")
        return [(after, bytes(state)) for after, state in rows]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield every ticket: id, decision, arm, propensity, reward, status, times."""
        sql = (
            "SELECT ticket.id, hold, number, offer, arm, propensity, reward, fate, learned,"
            " asked, told FROM ticket JOIN hold ON hold.id = hold"
            " WHERE hold >= ? AND hold < ? ORDER BY hold, number"
        )
        for start in range(0, self.counts()[0], 1000):
            for name, hold, number, offer, arm, *rest in self.execute(sql, (start, start + 1000)):
                known = f"{hold}.{number}" if name is None else name
                yield known, hold, self._offer_at(offer).names[arm], *rest

    def decided(self, hold: int, offer: int, arm: int, propensity: float | None) -> Decision:
        """Return the decision in a row of the table ``hold``, with its offer."""
        return Decision(hold, self._offer_at(offer), arm, propensity)

    def _read_offer(self, number: int) -> Offer:
        ((names, features),) = self.execute(
            "SELECT names, features FROM offer WHERE id = ?", (number,)
        )
        return Offer.from_row(names, features)

    def _find_offer(self, digest: bytes) -> int | None:
        for (number,) in self.execute("SELECT id FROM offer WHERE digest = ?", (digest,)):
            return int(number)
        return None
