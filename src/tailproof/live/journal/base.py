"""Journals: every ask and tell is stored before it is answered.

All SQL is in one class. A backend adds connections and transactions; see `SQLite` and `Postgres`. A
journal knows nothing of policies: it stores and returns rows.
"""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from typing import Any, ClassVar, Self

from tailproof.live.journal.rows import (
    BEFORE,
    LARGE,
    Batch,
    ConflictError,
    Note,
    Outcome,
    Request,
    own_id,
    sealed_event,
    sealed_outcome,
)
from tailproof.live.journal.tables import SCHEMA, TABLES

__all__ = ["Journal"]

_REQUEST = "r.id, r.ticket, r.unit, r.at, r.ends, r.recipe, r.arm, r.propensity, r.grp, r.again"
_FIND = (
    f"SELECT {_REQUEST}, o.why, e.name, e.value, e.at, e.late FROM request r"
    " LEFT JOIN outcome o ON o.request = r.id LEFT JOIN event e ON e.request = r.id"
    " WHERE r.{key} IN ({marks}){lock}"
)
_SPAN = (
    " FROM outcome o JOIN request r ON r.id = o.request"
    " WHERE o.number >= ? AND o.number < ? ORDER BY o.number"
)
_OUTCOMES = (
    "SELECT o.number, o.reward, o.why, r.arm, r.offer, r.propensity, r.shares, r.grp, r.recipe,"
    f" r.at, r.again, r.unit{_SPAN}"
)
_LEARNABLE = f"SELECT o.number, o.reward, r.arm, r.offer, r.propensity{_SPAN}"
_REQUESTED = f"INSERT INTO request VALUES ({', '.join('?' * 14)})"
_UNIT = (
    "SELECT l.id, l.arm, l.propensity, l.shares, l.offer, l.grp"
    " FROM (SELECT unit FROM request WHERE unit = ? LIMIT 1) u LEFT JOIN"
    " (SELECT * FROM request WHERE unit = ? AND (grp IS NULL OR grp = 'control')"
    " ORDER BY at DESC, id DESC LIMIT 1) l ON l.unit = u.unit"
)
"""The latest request of a unit that the policy or the control group decided; NULL if none was."""


class Journal(ABC):
    """Rows that are written once: offers, requests, events and outcomes.

    An offer is stored once. A request is a decision: an arm of an offer for one visitor, with the
    end of its window. An event is a reward of a request, as it was told. An outcome says which
    reward of a request counts, and why; numbers of outcomes have no gaps. Outcomes and the events
    behind them are sealed in one chain. A conflict of unique keys raises `ConflictError`.
    """

    READING: ClassVar[str] = "BEGIN"
    """Begins a transaction that only reads, at one point in time."""
    SHARED: ClassVar[str] = ""
    """Protects the rows that a transaction has read from deletion until it ends."""
    TELLING: ClassVar[str] = ""
    """Keeps requests from getting their outcome until the end of the transaction."""
    ORDERING: ClassVar[str] = ""
    """Leaves out requests whose reward is being told at this moment."""
    ORDERS: ClassVar[str] = "1"
    """Says in SQL whether a transaction may number outcomes."""
    CLOCK: ClassVar[str] = "0.0"
    """The time in SQL, 0 if it is the machine's."""
    GRACE = 0.0
    """Seconds after a window in which a reward that was told inside it may still be committed."""
    serial = True
    """Whether transactions run one after the other."""
    read_only = False
    """Whether the journal cannot be written to."""

    def __init__(self) -> None:
        self._set_clock(time.time())
        self._state = (
            "SELECT (SELECT MAX(number) FROM outcome), (SELECT MAX(number) FROM note),"
            f" (SELECT MAX(id) FROM request), {self.ORDERS}, {self.CLOCK},"
            f" EXISTS (SELECT 1 FROM event WHERE request = {BEFORE})"
        )
        self._chain: tuple[int, int] | None = None
        self.create()

    @abstractmethod
    def execute(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement with ? for each value and return its rows."""

    @abstractmethod
    def execute_many(self, sql: str, rows: Collection[Sequence[Any]]) -> None:
        """Run a statement for each row."""

    @abstractmethod
    def _begin(self) -> None:
        """Begin a transaction that writes."""

    @abstractmethod
    def _end(self, ending: str) -> None:
        """End the transaction: COMMIT or ROLLBACK."""

    @abstractmethod
    def _is_conflict(self, error: BaseException) -> bool:
        """Return whether the error says that a row with the same key is stored already."""

    @abstractmethod
    def _schema(self) -> int:
        """Return the schema number, 0 for an empty journal."""

    @abstractmethod
    def new_id(self, last: int | None) -> int:
        """Return the id of a new request; `last` is the largest one that is known."""

    @abstractmethod
    def compact(self) -> None:
        """Give the room of removed rows back to the disk, if nobody is in the way."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def lock(self, what: str, names: Collection[str] = ()) -> None:  # noqa: B027
        """Keep others out until the end of the transaction, unless transactions are serial.

        "schema" keeps them from making tables, "arms" from adding arms, "offers" from deciding on
        offers with features, and "units" from deciding for the units of these names.
        """

    def _set_clock(self, now: float) -> None:
        self._start = now - time.monotonic()

    def now(self) -> float:
        """Return the time in seconds since 1970, by a monotonic clock."""
        return self._start + time.monotonic()

    def transaction(self) -> Self:
        """Run the body of a `with` atomically."""
        return self

    def __enter__(self) -> None:
        try:
            self._begin()
        except BaseException as error:
            self.__exit__(None, error, None)

    def __exit__(self, _: object, error: BaseException | None, trace: object) -> None:
        """Commit, or roll back after an error."""
        try:
            if error is None:
                self._end("COMMIT")
                return
        except BaseException as failure:
            error = failure
        self._chain = None
        self._end("ROLLBACK")
        if self._is_conflict(error):
            raise ConflictError(str(error)) from error
        raise error

    @contextmanager
    def moment(self) -> Iterator[None]:
        """Read the journal at one point in time, on a connection of its own; blocks no writer."""
        self.execute(self.READING)
        try:
            yield
        finally:
            self._end("ROLLBACK")

    def stream(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        """Yield the rows of a long result without keeping them all, within `moment`."""
        yield from self.execute(sql, values)

    def create(self) -> None:
        """Create the tables, unless they are there; a journal of another version raises."""
        if self._fits(self._schema()):
            return
        with self.transaction():
            self.lock("schema")
            if self._fits(self._schema()):
                return
            for statement in TABLES:
                self.execute(statement)
            self.set_meta(schema=str(SCHEMA))

    def _fits(self, schema: int) -> bool:
        if schema > SCHEMA:
            raise ValueError(
                f"the journal has schema {schema}, and this version of tailproof knows schema "
                f"{SCHEMA}: upgrade tailproof"
            )
        if 0 < schema < SCHEMA or (self.read_only and not schema):
            raise ValueError(
                f"the journal has schema {schema} of an earlier tailproof, and this version reads "
                f"schema {SCHEMA}: export it with the version that wrote it (`tailproof log`), and "
                "import that file into a new journal (`tailproof import`)"
            )
        return schema == SCHEMA

    def meta(self) -> dict[str, str]:
        """Return the metadata of the journal."""
        return dict(self.execute("SELECT key, value FROM meta"))

    def set_meta(self, **values: str) -> None:
        """Set metadata of the journal."""
        new = "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        for item in values.items():
            self.execute(f"INSERT INTO meta VALUES (?, ?) {new}", item)

    def ignored(self) -> dict[str, tuple[int, float]]:
        """Return how many rewards were not stored, and their sum, by the reason."""
        rows = self.execute("SELECT why, count, total FROM ignored")
        return {why: (count, total) for why, count, total in rows}

    # ---- recipes, notes, arms and offers

    def recipes(self) -> list[tuple[int, str, str, int, float]]:
        """Return the recipes: number, policy, rules, outcomes before it, and when it began."""
        sql = "SELECT number, policy, rules, after, at FROM recipe ORDER BY number"
        return list(self.execute(sql))

    def add_recipe(self, policy: str, rules: str, at: float) -> int:
        """Store a recipe that decides from now on, and return its number."""
        number = len(self.recipes())
        row = (number, policy, rules, self.outcome_count(), float(at))
        self.execute("INSERT INTO recipe VALUES (?, ?, ?, ?, ?)", row)
        return number

    def notes(self, since: int = 0) -> list[Note]:
        """Return the notes on the experiment, from number `since` on."""
        sql = "SELECT number, at, kind, text FROM note WHERE number >= ? ORDER BY number"
        rows = self.execute(sql, (since,))
        return [Note(number, at, kind, json.loads(text)) for number, at, kind, text in rows]

    def note_count(self) -> int:
        """Return the number of notes so far."""
        ((count,),) = self.execute("SELECT COALESCE(MAX(number) + 1, 0) FROM note")
        return int(count)

    def add_note(self, kind: str, text: Mapping[str, Any], at: float) -> int:
        """Store a note, with its text as JSON, and return its number."""
        number = self.note_count()
        packed = json.dumps(text, sort_keys=True, ensure_ascii=False)
        self.execute("INSERT INTO note VALUES (?, ?, ?, ?)", (number, float(at), kind, packed))
        return number

    def arms(self, since: int = 0) -> dict[str, int]:
        """Return the numbers of arms by name, from number `since` on."""
        sql = "SELECT name, number FROM arm WHERE number >= ? ORDER BY number"
        return dict(self.execute(sql, (since,)))

    def add_arms(self, numbers: Mapping[str, int]) -> None:
        """Store new arms; see `lock`."""
        self.execute_many("INSERT INTO arm (name, number) VALUES (?, ?)", list(numbers.items()))

    def offer(self, number: int) -> tuple[str, str | None]:
        """Return the names and the features of an offer, as JSON."""
        (row,) = self.execute("SELECT names, features FROM offer WHERE id = ?", (number,))
        return row[0], row[1]

    def offer_ids(self, digests: Collection[bytes]) -> dict[bytes, int]:
        """Return the ids of offers that are stored, by digest."""
        if not digests:
            return {}
        sql = f"SELECT digest, id FROM offer WHERE digest IN ({_marks(digests)}){self.SHARED}"
        return {bytes(digest): number for digest, number in self.execute(sql, list(digests))}

    def add_offer(self, number: int, digest: bytes, names: str, features: str | None) -> None:
        """Store an offer, its names and features as JSON; its id is the id of its first request."""
        self.execute("INSERT INTO offer VALUES (?, ?, ?, ?)", (number, digest, names, features))

    # ---- what an agent reads and writes in a transaction

    def read_batch(
        self,
        tickets: Sequence[str] = (),
        units: Collection[str] = (),
        digests: Collection[bytes] = (),
    ) -> Batch:
        """Read the rows that a batch needs, with one wait for the database."""
        state, earlier = self.execute(self._state), dict[str, tuple[Any, ...]]()
        if units:
            self.lock("units", units)
            sent = [(unit, self.execute(_UNIT, (unit, unit))) for unit in units]
            earlier = {unit: row for unit, rows in sent for row in rows}
        requests = self._requests_of(tickets) if tickets else {}
        offers = self.offer_ids(digests) if digests else {}
        ((outcome, note, last, orders, now, any_gone),) = state
        outcomes, notes = 0 if outcome is None else outcome + 1, 0 if note is None else note + 1
        if now:
            self._set_clock(now)
        else:
            now = self.now()
        gone = self._gone(tickets) if any_gone and tickets else set[str]()
        there = (outcomes, notes, last, bool(orders), now, requests, earlier, offers, gone)
        return Batch(*there, [], [], [], [], {})

    def write(self, batch: Batch) -> None:
        """Store the rows that a batch led to; see `add_outcomes` for outcomes."""
        if batch.asked:
            self.add_requests(batch.asked)
        if batch.told:
            self.add_events(batch.told)
        if batch.due:
            self.execute_many("INSERT INTO due VALUES (?, ?) ON CONFLICT DO NOTHING", batch.due)
        if batch.ignored:
            more = "count = ignored.count + excluded.count, total = ignored.total + excluded.total"
            sql = f"INSERT INTO ignored VALUES (?, ?, ?) ON CONFLICT (why) DO UPDATE SET {more}"
            self.execute_many(sql, [(why, *counts) for why, counts in batch.ignored.items()])

    def _gone(self, tickets: Collection[str]) -> set[str]:
        """Return the tickets that were cancelled before they were asked for."""
        sql = f"SELECT name FROM event WHERE request = {BEFORE} AND name IN ({_marks(tickets)})"
        return {name for (name,) in self.execute(sql, list(tickets))}

    def _requests_of(self, tickets: Sequence[str]) -> dict[str, Request]:
        """Return the requests that exist, by ticket, with their events."""
        requests = dict[str, Request]()
        rows = self.execute(_find("ticket", len(tickets), self.TELLING), tickets)
        named = [own_id(ticket) for ticket in tickets if ticket[0] == "#"]
        ids = [number for number in named if number is not None] if named else []
        if ids:
            rows = chain(rows, self.execute(_find("id", len(ids), self.TELLING), ids))
        for row in rows:
            name = f"#{row[0]}" if row[1] is None else row[1]
            request = requests.get(name)
            if request is None:
                request = requests[name] = Request(*row[:11])
            if row[11] is not None:
                request.events[row[11]] = row[12:15]
        return requests

    def add_requests(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Store requests: the columns of the table."""
        self.execute_many(_REQUESTED, rows)

    def add_events(self, rows: Sequence[tuple[int, str, float, float, int]]) -> None:
        """Store events: request, name, value, time, and 1 if it was late."""
        sealed = [(*row, sealed_event(*row)) for row in rows]
        self.execute_many("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)", sealed)

    def remove_due(self, rows: Collection[tuple[float, int]]) -> None:
        """Let requests be due no more."""
        self.execute_many("DELETE FROM due WHERE at = ? AND request = ?", rows)

    def due(self, before: float, most: int) -> list[tuple[float, Request]]:
        """Return requests that may have their outcome by now, in order, with their events.

        The same request may be due twice. Requests that have an outcome say so.
        """
        rows = list(
            self.execute(
                f"SELECT d.at, {_REQUEST}, o.why FROM due d JOIN request r ON r.id = d.request"
                " LEFT JOIN outcome o ON o.request = r.id WHERE d.at <= ?"
                f" ORDER BY d.at, d.request LIMIT ?{self.ORDERING}",
                (before, most),
            )
        )
        requests = {row[1]: Request(*row[1:]) for row in rows}
        if requests:
            sql = "SELECT request, name, value, at, late FROM event WHERE request IN"
            for number, name, *event in self.execute(f"{sql} ({_marks(requests)})", list(requests)):
                requests[number].events[name] = tuple(event)
        return [(row[0], requests[row[1]]) for row in rows]

    def add_outcomes(
        self, rows: Sequence[tuple[Request, float | None, str]], at: float, outcomes: int
    ) -> None:
        """Number outcomes (request, reward, why) after the first `outcomes`, and seal them."""
        chain = self._chain
        last, mark = chain if chain and chain[0] == outcomes - 1 else self.last_outcome()
        sealed = []
        for number, (request, reward, why) in enumerate(rows, last + 1):
            mark = sealed_outcome(mark, number, request, reward, why, at)
            sealed.append((number, request.id, reward, why, at, mark))
        self.execute_many("INSERT INTO outcome VALUES (?, ?, ?, ?, ?, ?)", sealed)
        self._chain = number, mark

    def last_outcome(self) -> tuple[int, int]:
        """Return the number and the seal of the latest outcome, or of where the chain begins."""
        sql = "SELECT number, seal FROM outcome ORDER BY number DESC LIMIT 1"
        return next(iter(self.execute(sql)), (-1, 0))

    def outcome_count(self) -> int:
        """Return the number of outcomes so far, removed ones too."""
        return int(self.last_outcome()[0]) + 1

    def first(self) -> int:
        """Return the number of the first outcome that was not pruned."""
        ((first,),) = self.execute("SELECT MIN(number) FROM outcome")
        return first or 0

    def outcomes(self, first: int, stop: int) -> list[Outcome]:
        """Return the outcomes from number `first` to before `stop`, in order."""
        return [Outcome(*row) for row in self.execute(_OUTCOMES, (first, stop))]

    def learnable(self, first: int, stop: int) -> list[tuple[int, float | None, int, int, Any]]:
        """Return number, reward, arm, offer and propensity of outcomes, as `outcomes` does."""
        return list(self.execute(_LEARNABLE, (first, stop)))

    def pending(self) -> dict[int, int]:
        """Return how many requests wait for their outcome, by the numbers of their arms."""
        sql = "SELECT arm, COUNT(*) FROM request WHERE id IN (SELECT request FROM due) GROUP BY arm"
        return dict(self.execute(sql))

    # ---- snapshots and retention

    def add_snapshot(self, after: int, recipe: int, state: bytes) -> None:
        """Store the state after a number of outcomes; of older snapshots keep only the latest."""
        self.execute(
            "DELETE FROM snapshot WHERE kept = 0 AND after <"
            " (SELECT MAX(after) FROM snapshot WHERE after < ?)",
            (after,),
        )
        new = "ON CONFLICT DO NOTHING"
        self.execute(f"INSERT INTO snapshot VALUES (?, ?, 0, ?) {new}", (after, recipe, state))

    def last_snapshot(self, recipe: int) -> tuple[int, int]:
        """Return after how many outcomes the latest snapshot was taken, and its size."""
        sql = (
            "SELECT after, LENGTH(state) FROM snapshot WHERE recipe = ? ORDER BY after DESC LIMIT 1"
        )
        rows = self.execute(sql, (recipe,))
        return next(((int(after), int(size)) for after, size in rows), (0, 0))

    def snapshots(self, recipe: int, *, kept: bool = False) -> list[tuple[int, bytes]]:
        """Return the snapshots of a recipe, latest first; or only the one that `prune` kept."""
        sql = "SELECT after, state FROM snapshot WHERE recipe = ? AND kept >= ? ORDER BY after DESC"
        rows = self.execute(sql, (recipe, int(kept)))
        return [(int(after), bytes(state)) for after, state in rows]

    def prune(self, first: int, end: float) -> dict[str, Any]:
        """Remove outcomes before number `first` with their requests; return counts of them.

        Cancellations of tickets that were never asked for are removed too, if older than `end`.
        """
        span = "SELECT request FROM outcome WHERE number < ?"
        was = self.first()
        ((mark,),) = self.execute("SELECT seal FROM outcome WHERE number = ?", (first - 1,))
        told = f"SELECT COUNT(*) FROM event WHERE request IN ({span})"
        ((events,),) = self.execute(told, (first,))
        arms = {
            name: {"requests": int(requests), "rewards": int(rewards), "sum": (part or 0.0) * LARGE}
            for name, requests, rewards, part in self.execute(
                f"SELECT a.name, COUNT(*), COUNT(o.reward), SUM(o.reward / {LARGE}) FROM outcome o"
                " JOIN request r ON r.id = o.request JOIN arm a ON a.number = r.arm"
                " WHERE o.number < ? GROUP BY a.name ORDER BY a.name",
                (first,),
            )
        }
        self.execute(f"DELETE FROM event WHERE request IN ({span})", (first,))
        self.execute("DELETE FROM event WHERE request = ? AND at < ?", (BEFORE, end))
        self.execute(f"DELETE FROM request WHERE id IN ({span})", (first,))
        self.execute("DELETE FROM outcome WHERE number < ?", (first,))
        self.lock("offers")
        unused = "features IS NOT NULL AND id NOT IN (SELECT offer FROM request)"
        self.execute(f"DELETE FROM offer WHERE {unused}")
        counts = {"outcomes": first - was, "events": int(events)}
        return {"first": first, "seal": mark, "arms": arms} | counts

    def keep_snapshots(self, after: int, states: Mapping[int, bytes]) -> None:
        """Let every replay begin with these states, by recipe."""
        self.execute("DELETE FROM snapshot WHERE after <= ?", (after,))
        rows = [(after, recipe, state) for recipe, state in states.items()]
        self.execute_many("INSERT INTO snapshot VALUES (?, ?, 1, ?)", rows)


@lru_cache(maxsize=64)
def _find(key: str, count: int, lock: str) -> str:
    """Return the statement that finds `n` requests by ticket or by id."""
    return _FIND.format(key=key, marks=", ".join("?" * count), lock=lock)


def _marks(values: Collection[Any]) -> str:
    return ", ".join("?" * len(values))
