"""Journals: every ask and tell is stored before it is answered.

All SQL is in one class. A backend adds how to connect, and what a transaction is; see `SQLite` and
`Postgres`.
"""

import json
import re
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

import numpy as np

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
    seal,
)
from tailproof.live.offers import Offer

__all__ = ["OWN_ID", "SCHEMA", "TABLES", "ConflictError", "Glance", "Journal", "TicketRow"]

OWN_ID = re.compile(r"(\d{1,18})\.(\d{1,9})")
"""Generated ticket ids, for asks without one: decision and place."""
SCHEMA = 2
"""1 is that of tailproof 0.2."""
_OFFERS, _DIGESTS = 1024, 65_536
"""Sizes of the caches of offers and of their digests; the latter exceeds any batch."""
_CHUNK = 1000
"""Rows read at once."""
TABLES = (
    "CREATE TABLE recipe (number INTEGER PRIMARY KEY, text TEXT NOT NULL, after INTEGER NOT NULL,"
    " at REAL NOT NULL, seal INTEGER NOT NULL)",
    "CREATE TABLE note (number INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL,"
    " text TEXT NOT NULL, seal INTEGER NOT NULL)",
    "CREATE TABLE arm (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    "CREATE TABLE offer (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, names TEXT NOT NULL,"
    " dim INTEGER, features BLOB, at REAL NOT NULL)",
    "CREATE TABLE decision (id INTEGER PRIMARY KEY, offer INTEGER NOT NULL, arm INTEGER NOT NULL,"
    " propensity REAL, shares BLOB, explore REAL NOT NULL, grp TEXT, recipe INTEGER NOT NULL,"
    " worker INTEGER NOT NULL, after INTEGER NOT NULL, since INTEGER NOT NULL, at REAL NOT NULL,"
    " seal INTEGER NOT NULL)",
    "CREATE TABLE ticket (decision INTEGER, place INTEGER, id TEXT, unit TEXT,"
    " asked REAL NOT NULL, ends REAL NOT NULL, seal INTEGER NOT NULL,"
    " PRIMARY KEY (decision, place)) WITHOUT ROWID",
    "CREATE UNIQUE INDEX ticket_id ON ticket (id) WHERE id IS NOT NULL",
    "CREATE INDEX ticket_unit ON ticket (unit, asked) WHERE unit IS NOT NULL",
    "CREATE TABLE event (decision INTEGER, place INTEGER, id TEXT, reward REAL NOT NULL,"
    " at REAL NOT NULL, seal INTEGER NOT NULL, PRIMARY KEY (decision, place, id)) WITHOUT ROWID",
    f"CREATE INDEX event_cancelled ON event (decision) WHERE id = '{CANCELLED}'",
    "CREATE TABLE outcome (number INTEGER PRIMARY KEY, decision INTEGER NOT NULL UNIQUE,"
    " rewards BLOB, tickets INTEGER NOT NULL, at REAL NOT NULL, seal INTEGER NOT NULL)",
    "CREATE TABLE snapshot (after INTEGER, recipe INTEGER, kept INTEGER NOT NULL,"
    " state BLOB NOT NULL, PRIMARY KEY (after, recipe))",
    "CREATE TABLE due (at REAL, decision INTEGER, PRIMARY KEY (at, decision)) WITHOUT ROWID",
    "CREATE TABLE tally (worker INTEGER, arm INTEGER, asked INTEGER NOT NULL,"
    " told INTEGER NOT NULL, late INTEGER NOT NULL, late_sum REAL NOT NULL,"
    " PRIMARY KEY (worker, arm)) WITHOUT ROWID",
)
_FIND = (
    "SELECT t.id, t.decision, t.place, t.ends, d.arm, d.propensity, o.number, e.id, e.at, ({told})"
    " FROM ticket t JOIN decision d ON d.id = t.decision"
    " LEFT JOIN outcome o ON o.decision = t.decision"
    " LEFT JOIN event e ON e.decision = t.decision AND e.place = t.place WHERE "
)
_WHERE = ("t.decision = ? AND t.place = ? AND t.id IS NULL", "t.id = ?")
_FOUND = {
    False: [_FIND.format(told="SELECT 0") + where for where in _WHERE],
    True: [
        _FIND.format(told="SELECT COUNT(*) FROM event f WHERE f.decision = t.decision") + where
        for where in _WHERE
    ],
}
"""How to find a ticket by decision and place, or by its id; with or without counting events."""

_UNIT = (
    "SELECT t.unit, d.id, d.arm, d.propensity, d.shares, f.digest FROM ticket t"
    " JOIN decision d ON d.id = t.decision JOIN offer f ON f.id = d.offer"
    " WHERE t.unit = ? AND d.grp IS NULL ORDER BY t.asked DESC, t.decision DESC LIMIT 1"
)
"""The latest decision that the policy made for a unit."""
_LAST_NOTE = "SELECT number FROM note ORDER BY number DESC LIMIT 1"

TicketRow = tuple[int, int, str | None, str | None, float, float]


class ConflictError(Exception):
    """Another worker stored the same ticket, event, offer or outcome first; try again."""


class Glance(NamedTuple):
    """What an agent reads at the start of a transaction.

    Attributes
    ----------
    now : float
        The time of the journal.
    outcomes : callable
        Returns how many there are.
    orders : bool
        Whether this transaction may give numbers to outcomes.
    notes : callable
        Returns how many there are.
    found : dict of Found
        The tickets that were looked for and exist, by id.
    units : dict of Earlier
        The units that were looked for and had a decision of the policy.
    gone : set of str
        Tickets that were cancelled before they were asked for.
    """

    now: float
    outcomes: Callable[[], int]
    orders: bool
    notes: Callable[[], int]
    found: dict[str, Found]
    units: dict[str, Earlier]
    gone: set[str]


class Journal(ABC):
    """Rows that are written once: offers, decisions, tickets, events and outcomes.

    An offer is stored once. A decision is an arm of an offer. A ticket is a request that got this
    arm, with the end of its window. An event is a reward of a ticket, as it was told. An outcome is
    what is learned from a decision; outcomes have numbers, and what a policy has learned follows
    from them in this order. Each row has a checksum; that of an outcome covers the one before it.

    Three tables save time and follow from the others: ``snapshot``, ``due``, which says when a
    decision may have its outcome, and ``tally``, which counts tickets and rewards.
    """

    READING: ClassVar[str] = "BEGIN"
    """Begins a read-only transaction that sees the database at one point in time."""

    SHARED: ClassVar[str] = ""
    """Keeps rows that were read from being deleted until the end of the transaction."""

    serial = True
    """Whether transactions run one after the other."""
    read_only = False
    """Whether the journal cannot be written to."""

    def __init__(self) -> None:
        self._offers: OrderedDict[int, Offer] = OrderedDict()
        self._ids: OrderedDict[bytes, int] = OrderedDict()
        self._passing: dict[bytes, int] = {}
        """Ids of offers with features, for one transaction: later they may be pruned."""
        self._set_clock(time.time())
        self.migrate()

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
        """Return whether a row was there already."""

    @abstractmethod
    def _schema(self) -> int:
        """Return the schema number, 0 for an empty journal."""

    @abstractmethod
    def _state(self) -> Callable[[], tuple[float, Callable[[], int], bool, Callable[[], int]]]:
        """Ask for what `Glance` has beside tickets; return how to get it."""

    @abstractmethod
    def new_id(self) -> int:
        """Return the id of a new decision."""

    @abstractmethod
    def reserve(self) -> None:
        """Let new ids be larger than those in the journal."""

    @abstractmethod
    def lock_arms(self) -> None:
        """Keep others from adding arms until the end of the transaction."""

    @abstractmethod
    def lock_units(self, units: Collection[str]) -> None:
        """Keep others from deciding for the same units until the end of the transaction."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def _set_clock(self, now: float) -> None:
        self._start = now - time.monotonic()

    def now(self) -> float:
        """Return the time in seconds since 1970, by a monotonic clock."""
        return self._start + time.monotonic()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the body atomically."""
        self._passing = {}
        try:
            self._begin()
            yield
            self._end("COMMIT")
        except BaseException as error:
            self._offers.clear()
            self._ids.clear()
            self._end("ROLLBACK")
            if self._is_conflict(error):
                raise ConflictError(str(error)) from error
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
        """Create the tables, or bring over those of tailproof 0.2; later ones raise."""
        if self.read_only:
            found = self._schema()
            if found != SCHEMA:
                raise ValueError(
                    f"cannot read this read-only journal: it has schema {found}, and this version "
                    f"of tailproof reads {SCHEMA}; open a writable copy, or use another version"
                )
            return
        if self._schema() == SCHEMA:
            return
        with self.transaction():
            self._lock_schema()
            found = self._schema()
            if found > SCHEMA:
                raise ValueError(
                    f"the journal has schema {found}, and this version of tailproof knows schemas "
                    f"up to {SCHEMA}: upgrade tailproof"
                )
            if found == 0:
                self.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
                for statement in TABLES:
                    self.execute(statement)
                self.set_meta(schema=str(SCHEMA))
            elif found == 1:
                from tailproof.live.journal.upgrade import upgrade

                upgrade(self)

    @abstractmethod
    def _lock_schema(self) -> None:
        """Keep others from creating tables until the end of the transaction."""

    def meta(self) -> dict[str, str]:
        """Return the metadata of the journal."""
        return dict(self.execute("SELECT key, value FROM meta"))

    def set_meta(self, **values: str) -> None:
        """Set metadata of the journal."""
        new = "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        for item in values.items():
            self.execute(f"INSERT INTO meta VALUES (?, ?) {new}", item)

    # ---- arms, recipes and offers

    def arms(self, since: int = 0) -> dict[str, int]:
        """Return the numbers of arms by name, from number `since` on."""
        sql = "SELECT name, number FROM arm WHERE number >= ? ORDER BY number"
        return dict(self.execute(sql, (since,)))

    def add_arms(self, numbers: Mapping[str, int]) -> None:
        """Store new arms; see `lock_arms`."""
        self.execute_many("INSERT INTO arm (name, number) VALUES (?, ?)", list(numbers.items()))

    def recipes(self) -> list[tuple[int, str, int, float]]:
        """Return the recipes: number, text, after how many outcomes, and when they began."""
        return list(self.execute("SELECT number, text, after, at FROM recipe ORDER BY number"))

    def add_recipe(self, text: str, after: int, at: float) -> int:
        """Store a recipe that decides from now on, and return its number."""
        number = len(self.recipes())
        row = (number, text, after, float(at))
        self.execute("INSERT INTO recipe VALUES (?, ?, ?, ?, ?)", (*row, seal(*row)))
        return number

    def notes(self, since: int = 0) -> list[Note]:
        """Return what was done to the experiment, from note number `since` on."""
        sql = "SELECT number, at, kind, text FROM note WHERE number >= ? ORDER BY number"
        rows = self.execute(sql, (since,))
        return [Note(number, at, kind, json.loads(text)) for number, at, kind, text in rows]

    def note_count(self) -> int:
        """Return how many notes there are."""
        return next((int(last) + 1 for (last,) in self.execute(_LAST_NOTE)), 0)

    def add_note(self, kind: str, text: Mapping[str, Any], at: float) -> int:
        """Store a note, with its text as JSON, and return its number."""
        number = self.note_count()
        row = (number, float(at), kind, json.dumps(text, sort_keys=True, ensure_ascii=False))
        self.execute("INSERT INTO note VALUES (?, ?, ?, ?, ?)", (*row, seal(*row)))
        return number

    def dims(self) -> tuple[list[int], bool]:
        """Return the lengths of features, and whether the arms of every offer share theirs."""
        rows = self.execute("SELECT dim, MAX(LENGTH(features)) FROM offer GROUP BY dim")
        found = [(dim, size) for dim, size in rows if dim is not None]
        return [dim for dim, _ in found], all(size == 8 * dim for dim, size in found)

    def offer(self, number: int) -> Offer:
        """Return an offer by its id."""
        found = self._offers.get(number)
        if found is None:
            sql = "SELECT names, dim, features FROM offer WHERE id = ?"
            (row,) = self.execute(sql, (number,))
            found = Offer.from_row(*row)
            _cache(self._offers, number, found)
        return found

    # ---- what an agent reads and writes in a transaction

    def look(
        self,
        tickets: Collection[str] = (),
        offers: Collection[bytes] = (),
        *,
        shared: bool = False,
        units: Collection[str] = (),
        asked: Collection[str] = (),
    ) -> Glance:
        """Read what a batch of asks and tells needs, with one wait for the database.

        `asked` are those tickets that are asked for or cancelled. With `shared`, also count the
        events of each ticket's decision.
        """
        state = self._state()
        self.lock_units(units)
        earlier = [self.execute(_UNIT, (unit,)) for unit in units]
        rows = self._finding(tickets, shared) if tickets else ()
        early = self._cancelled_before(asked) if asked else ()
        known = self._identifying(offers)
        now, outcomes, orders, notes = state()
        found: dict[str, Found] = {}
        for name, decision, place, ends, arm, share, ended, event, at, told in rows:
            key = f"{decision}.{place}" if name is None else name
            one = found.get(key)
            if one is None:
                chosen = Chosen(decision, arm, share)
                one = found[key] = Found(chosen, place, ends, {}, told, ended is not None)
            if event is not None:
                one.events[event] = at
        for number, digest, names_only in known:
            self._identify(bytes(digest), number, names_only=names_only)
        had = {
            unit: Earlier(Chosen(*chosen), None if shares is None else bytes(shares), bytes(key))
            for rows in earlier
            for unit, *chosen, shares, key in rows
        }
        return Glance(now, outcomes, orders, notes, found, had, {one for (one,) in early})

    def _cancelled_before(self, tickets: Collection[str]) -> Any:
        marks = ", ".join("?" * len(tickets))
        sql = f"SELECT id FROM event WHERE decision = {BEFORE} AND place = 0 AND id IN ({marks})"
        return self.execute(sql, list(tickets))

    def find_offers(self, digests: Sequence[bytes]) -> None:
        """Find out which of many offers are stored already, before `add_decisions`."""
        for start in range(0, len(digests), _CHUNK):
            for number, digest, names_only in self._identifying(digests[start : start + _CHUNK]):
                self._identify(bytes(digest), number, names_only=names_only)

    def _identify(self, digest: bytes, number: int, *, names_only: bool) -> None:
        if names_only:
            _cache(self._ids, digest, number)
        else:
            self._passing[digest] = number

    def _finding(self, tickets: Collection[str], shared: bool) -> Any:
        by_place, by_id = _FOUND[shared]
        parts, values = list[str](), list[Any]()
        for ticket in tickets:
            own = OWN_ID.fullmatch(ticket)
            if own:
                parts.append(by_place)
                values += map(int, own.groups())
            else:
                parts.append(by_id)
                values.append(ticket)
        return self.execute(parts[0] if len(parts) == 1 else " UNION ALL ".join(parts), values)

    def _identifying(self, offers: Collection[bytes]) -> Any:
        digests = [digest for digest in offers if digest not in self._ids]
        if not digests:
            return ()
        marks = ", ".join("?" * len(digests))
        sql = f"SELECT id, digest, features IS NULL FROM offer WHERE digest IN ({marks})"
        return self.execute(sql + self.SHARED, digests)

    def add_decisions(self, rows: Sequence[tuple[DecisionRow, int]]) -> None:
        """Store decisions with the numbers of their arms, and offers that are new; see `look`."""
        offers, sealed = [], []
        for row, arm in rows:
            decision, offer = row.decision, row.decision.offer
            known = self._ids if offer.vectors is None else self._passing
            number = known.get(offer.key)
            if number is None:
                number = decision.id
                offers.append((number, offer.key, *offer.row(), row.at))
                self._identify(offer.key, number, names_only=offer.vectors is None)
                _cache(self._offers, number, offer)
            values = (decision.id, number, arm, decision.propensity, *row[1:])
            sealed.append((*values, seal(*values)))
        self.execute_many("INSERT INTO offer VALUES (?, ?, ?, ?, ?, ?)", offers)
        marks = ", ".join("?" * 13)
        self.execute_many(f"INSERT INTO decision VALUES ({marks})", sealed)

    def add_tickets(self, rows: Sequence[TicketRow]) -> None:
        """Store tickets: decision, place, id, unit, time, end of the window."""
        sealed = [(*row, seal(*row)) for row in rows]
        self.execute_many("INSERT INTO ticket VALUES (?, ?, ?, ?, ?, ?, ?)", sealed)

    def add_events(self, rows: Sequence[tuple[int, int, str, float, float]]) -> None:
        """Store events: decision, place, id, reward, time."""
        sealed = [(*row, seal(*row)) for row in rows]
        self.execute_many("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)", sealed)

    def add_due(self, rows: Collection[tuple[float, int]]) -> None:
        """Store when decisions may have their outcome."""
        self.execute_many("INSERT INTO due VALUES (?, ?) ON CONFLICT DO NOTHING", rows)

    def count(self, worker: int, counts: Mapping[int, Counts]) -> None:
        """Add to the tally of a worker, by the numbers of arms."""
        rows = [
            (worker, arm, one.asked, one.told, one.late, one.late_sum)
            for arm, one in sorted(counts.items())
        ]
        self.execute_many(
            "INSERT INTO tally VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (worker, arm) DO UPDATE SET"
            " asked = tally.asked + excluded.asked, told = tally.told + excluded.told,"
            " late = tally.late + excluded.late, late_sum = tally.late_sum + excluded.late_sum",
            rows,
        )

    def tally(self) -> dict[int, Counts]:
        """Return tickets and rewards so far, by the numbers of arms."""
        sql = "SELECT arm, SUM(asked), SUM(told), SUM(late), SUM(late_sum) FROM tally GROUP BY arm"
        return {
            arm: Counts(int(asked), int(told), int(late), float(total))
            for arm, asked, told, late, total in self.execute(sql)
        }

    def cancelled(self) -> int:
        """Return how many tickets were cancelled."""
        rows = self.execute(f"SELECT COUNT(*) FROM event WHERE id = '{CANCELLED}'")
        return next(int(count) for (count,) in rows)

    # ---- outcomes

    def due(self, before: float, most: int) -> list[tuple[float, int]]:
        """Return decisions that may have their outcome by now, in order."""
        if not most:
            return []
        sql = "SELECT at, decision FROM due WHERE at <= ? ORDER BY at, decision LIMIT ?"
        return list(self.execute(sql, (before, most)))

    def done(self, rows: Collection[tuple[float, int]]) -> None:
        """Remove rows of ``due``."""
        self.execute_many("DELETE FROM due WHERE at = ? AND decision = ?", rows)

    def told(self, decisions: Sequence[int], *, ended: bool = False) -> dict[int, list[Told]]:
        """Return the tickets and events of decisions without an outcome, or with one (`ended`)."""
        marks = ", ".join("?" * len(decisions))
        tickets = self.execute(
            "SELECT t.decision, place, asked, ends FROM ticket t"
            f" LEFT JOIN outcome o ON o.decision = t.decision WHERE t.decision IN ({marks})"
            f" AND {'1 = 1' if ended else 'o.number IS NULL'} ORDER BY t.decision, place",
            decisions,
        )
        events = self.execute(
            f"SELECT decision, place, id, reward, at FROM event WHERE decision IN ({marks})"
            " ORDER BY decision, place, at, id",
            decisions,
        )
        found: dict[int, list[Told]] = {}
        places: dict[tuple[int, int], Told] = {}
        for decision, place, asked, ends in tickets:
            one = Told(place, asked, ends, [])
            found.setdefault(decision, []).append(one)
            places[decision, place] = one
        for decision, place, *event in events:
            if (decision, place) in places:
                places[decision, place].events.append(tuple(event))
        return found

    def add_outcomes(self, rows: Sequence[tuple[int, bytes | None, int]], at: float) -> None:
        """Number outcomes: decision, rewards, and how many tickets it had."""
        sql = "SELECT number, tickets, seal FROM outcome ORDER BY number DESC LIMIT 1"
        last, ended, chain = next(iter(self.execute(sql)), (-1, 0, 0))
        sealed = []
        for number, (decision, rewards, tickets) in enumerate(rows, last + 1):
            ended += tickets
            row = (number, decision, rewards, ended, at)
            chain = seal(chain, row)
            sealed.append((*row, chain))
        self.execute_many("INSERT INTO outcome VALUES (?, ?, ?, ?, ?, ?)", sealed)

    def first(self) -> int:
        """Return the number of the first outcome that was not pruned."""
        ((found,),) = self.execute("SELECT MIN(number) FROM outcome")
        return found or 0

    def of_others(self, decisions: Sequence[int], recipe: int) -> set[int]:
        """Return those of some decisions that other recipes made."""
        marks = ", ".join("?" * len(decisions))
        sql = f"SELECT id FROM decision WHERE id IN ({marks}) AND recipe <> ?"
        return {id_ for (id_,) in self.execute(sql, (*decisions, recipe))}

    def counts(self) -> tuple[int, int]:
        """Return the number of outcomes, and of the tickets of their decisions."""
        sql = "SELECT number + 1, tickets FROM outcome ORDER BY number DESC LIMIT 1"
        return next(iter(self.execute(sql)), (0, 0))

    def outcomes(self, first: int, stop: int) -> Iterator[Outcome]:
        """Yield outcomes in order."""
        sql = (
            "SELECT o.number, d.id, d.offer, a.name, d.propensity, rewards FROM outcome o"
            " JOIN decision d ON d.id = o.decision JOIN arm a ON a.number = d.arm"
            " WHERE o.number >= ? AND o.number < ? ORDER BY o.number"
        )
        for start in range(first, stop, _CHUNK):
            for number, *decided, rewards in list(
                self.execute(sql, (start, min(start + _CHUNK, stop)))
            ):
                values = None if rewards is None else np.frombuffer(rewards, "<f8")
                yield Outcome(number, self.decided(*decided), values)

    def decision(self, number: int) -> Decision:
        """Return a decision by its number."""
        sql = (
            "SELECT d.id, offer, a.name, propensity FROM decision d JOIN arm a ON a.number = arm"
            " WHERE d.id = ?"
        )
        (row,) = self.execute(sql, (number,))
        return self.decided(*row)

    def decided(self, decision: int, offer: int, arm: str, share: float | None) -> Decision:
        """Return a decision with its offer."""
        found = self.offer(offer)
        return Decision(decision, found, found.names.index(arm), share)

    def decisions(self, recipe: int = 0) -> Iterator[DecisionRow]:
        """Yield the decisions of a recipe that can be made again, in the order of `after`."""
        sql = (
            "SELECT d.id, offer, a.name, propensity, shares, explore, grp, recipe, worker, after,"
            " since, at FROM decision d JOIN arm a ON a.number = arm"
            " WHERE recipe = ? AND after >= 0 ORDER BY after, d.id"
        )
        for *decided, shares, explore, group, _, worker, after, since, at in self.stream(
            sql, (recipe,)
        ):
            packed = None if shares is None else bytes(shares)
            decision = self.decided(*decided)
            yield DecisionRow(decision, packed, explore, group, recipe, worker, after, since, at)

    def stream(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        """Yield the rows of a long result without keeping them all."""
        yield from self.execute(sql, values)

    def unlike(self) -> list[int]:
        """Return decisions that differ from those that they repeat for a unit."""
        rows = self.execute(
            "SELECT d.id FROM decision d LEFT JOIN decision e ON e.id = d.since WHERE d.after = ?"
            " AND NOT (e.arm = d.arm AND COALESCE(e.propensity, 2) = COALESCE(d.propensity, 2))",
            (REPEATED,),
        )
        return [id_ for (id_,) in rows]

    def awaiting(self, arm: str) -> list[int]:
        """Return decisions without an outcome that had an arm on offer."""
        rows = self.execute(
            "SELECT d.id, d.offer FROM decision d LEFT JOIN outcome o ON o.decision = d.id"
            " WHERE o.number IS NULL"
        )
        return [id_ for id_, offer in list(rows) if arm in self.offer(offer).names]

    def unfinished(self, most: int) -> list[tuple[bytes, str | None, Chosen, bool]]:
        """Return open decisions among the latest `most`: digest of the offer, group, choice.

        The last value says whether they repeat those of units.
        """
        rows = self.execute(
            "SELECT f.digest, d.grp, d.id, d.arm, d.propensity, d.after FROM"
            " (SELECT * FROM decision ORDER BY id DESC LIMIT ?) d"
            " JOIN offer f ON f.id = d.offer LEFT JOIN outcome o ON o.decision = d.id"
            " WHERE o.number IS NULL AND d.recipe = (SELECT MAX(number) FROM recipe) ORDER BY d.id",
            (most,),
        )
        return [
            (bytes(digest), group, Chosen(*chosen), after == REPEATED)
            for digest, group, *chosen, after in rows
        ]

    def ended(self, first: int, stop: int) -> list[Ended]:
        """Return the tickets of some outcomes, in order, cancelled ones too."""
        span = (first, stop)
        events: dict[tuple[int, int], list[tuple[str, float, float]]] = {}
        for decision, place, *event in self.execute(
            "SELECT e.decision, place, id, reward, e.at FROM outcome o JOIN event e"
            " ON e.decision = o.decision WHERE number >= ? AND number < ?"
            " ORDER BY number, place, e.at, id",
            span,
        ):
            events.setdefault((decision, place), []).append(tuple(event))
        rows = self.execute(
            "SELECT d.id, d.offer, d.arm, o.at, d.propensity, d.shares, d.explore, d.grp, d.worker,"
            " CASE WHEN t.unit IS NULL THEN FALSE ELSE EXISTS (SELECT 1 FROM ticket u"
            " WHERE u.unit = t.unit AND u.asked < t.asked) END,"
            " t.place, t.asked, t.ends FROM outcome o"
            " JOIN decision d ON d.id = o.decision JOIN ticket t ON t.decision = o.decision"
            " WHERE number >= ? AND number < ? ORDER BY number, place",
            span,
        )
        return [
            Ended._make([*about, Told(place, asked, ends, events.get((about[0], place), []))])
            for *about, place, asked, ends in rows
        ]

    def tickets(self) -> Iterator[tuple[tuple[Any, ...], list[tuple[str, float, float]]]]:
        """Yield every ticket with its decision and outcome, and its events in order."""
        sql = (
            "SELECT t.id, t.decision, t.place, t.asked, t.ends, a.name, d.propensity, d.shares,"
            " d.grp, d.recipe, d.offer, t.unit, o.at, o.rewards IS NOT NULL FROM ticket t"
            " JOIN decision d ON d.id = t.decision JOIN arm a ON a.number = d.arm"
            " LEFT JOIN outcome o ON o.decision = t.decision"
            " WHERE (t.decision, t.place) > (?, ?) ORDER BY t.decision, t.place LIMIT ?"
        )
        told = (
            "SELECT decision, place, id, reward, at FROM event WHERE (decision, place) > (?, ?)"
            " AND (decision, place) <= (?, ?) ORDER BY decision, place, at, id"
        )
        last = (-1, 0)
        while rows := list(self.execute(sql, (*last, _CHUNK))):
            first, last = last, (rows[-1][1], rows[-1][2])
            events: dict[tuple[int, int], list[tuple[str, float, float]]] = {}
            for decision, place, *event in self.execute(told, (*first, *last)):
                events.setdefault((decision, place), []).append(tuple(event))
            for row in rows:
                yield row, events.get(row[1:3], [])

    # ---- snapshots

    def add_snapshot(self, after: int, recipe: int, state: bytes) -> None:
        """Store the state after so many outcomes; keep only the latest of the older snapshots."""
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

    def kept_snapshot(self, recipe: int) -> tuple[int, bytes] | None:
        """Return the snapshot with which the replay of a recipe begins, if it was pruned."""
        sql = "SELECT after, state FROM snapshot WHERE recipe = ? AND kept = 1"
        rows = self.execute(sql, (recipe,))
        return next(((int(after), bytes(state)) for after, state in rows), None)

    def snapshots(self, recipe: int = 0) -> list[tuple[int, bytes]]:
        """Return the snapshots of a recipe, latest first."""
        sql = "SELECT after, state FROM snapshot WHERE recipe = ? ORDER BY after DESC"
        return [(after, bytes(state)) for after, state in self.execute(sql, (recipe,))]

    # ---- retention

    def prune(self, first: int, end: float) -> dict[str, Any]:
        """Remove outcomes before number `first` with their decisions; return what they were.

        Cancellations before the time `end` of tickets that were never asked for go, too.
        """
        span = "SELECT decision FROM outcome WHERE number < ?"
        was = self.first()
        ((mark,),) = self.execute("SELECT seal FROM outcome WHERE number = ?", (first - 1,))
        arms: dict[str, dict[str, float]] = {}
        for table, columns in (
            ("ticket", {"tickets": "COUNT(*)"}),
            ("event", {"events": "COUNT(*)", "sum": "SUM(reward)"}),
        ):
            for name, *values in self.execute(
                f"SELECT a.name, {', '.join(columns.values())} FROM {table} t"
                " JOIN decision d ON d.id = t.decision JOIN arm a ON a.number = d.arm"
                f" WHERE t.decision IN ({span}) GROUP BY a.name ORDER BY a.name",
                (first,),
            ):
                arms.setdefault(name, {"tickets": 0, "events": 0, "sum": 0.0})
                arms[name] |= dict(zip(columns, values, strict=True))
        ((cancelled,),) = self.execute(
            f"SELECT COUNT(*) FROM event WHERE id = ? AND decision IN ({span})", (CANCELLED, first)
        )
        for table in ("event", "ticket", "due"):
            self.execute(f"DELETE FROM {table} WHERE decision IN ({span})", (first,))
        self.execute("DELETE FROM event WHERE decision = ? AND at < ?", (BEFORE, end))
        self.execute(f"DELETE FROM decision WHERE id IN ({span})", (first,))
        self.execute("DELETE FROM outcome WHERE number < ?", (first,))
        self.lock_offers()
        self.execute(
            "DELETE FROM offer WHERE features IS NOT NULL"
            " AND id NOT IN (SELECT offer FROM decision)"
        )
        self._offers.clear()
        counts = {key: sum(int(one[key]) for one in arms.values()) for key in ("tickets", "events")}
        counts |= {"outcomes": first - was, "cancelled": cancelled}
        return {"first": first, "seal": mark, "arms": arms} | counts

    def keep_snapshots(self, after: int, states: Mapping[int, bytes]) -> None:
        """Let every replay begin with these states, by recipe."""
        self.execute("DELETE FROM snapshot WHERE after <= ?", (after,))
        rows = [(after, recipe, state) for recipe, state in states.items()]
        self.execute_many("INSERT INTO snapshot VALUES (?, ?, 1, ?)", rows)

    @abstractmethod
    def lock_offers(self) -> None:
        """Keep others from deciding on offers with features until the end of the transaction."""

    @abstractmethod
    def compact(self) -> None:
        """Give the room of removed rows back to the disk, if nobody is in the way."""


def _cache(cache: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    cache[key] = value
    if len(cache) > (_DIGESTS if isinstance(key, bytes) else _OFFERS):
        cache.popitem(last=False)
