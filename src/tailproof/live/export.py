"""A journal as a table, and replayed into another policy."""

import csv
import io
import json
import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailproof.checks import require
from tailproof.live.journal import CANCELLED, LARGE, Journal, open_journal
from tailproof.live.offer import Offer
from tailproof.live.recipe import Recipe
from tailproof.live.replay import blank, offers, replay
from tailproof.policies.base import Policy

if TYPE_CHECKING:
    import pandas

__all__ = ["COLUMNS", "Log", "csv_pieces", "read", "rows"]

COLUMNS = (
    *("ticket", "arm", "propensity", "reward", "status", "asked", "told", "ends", "ended", "late"),
    *("events", "group", "recipe", "offer", "shares", "unit"),
)
_LATE = COLUMNS.index("late")
_EVENTS = ("ticket", "event", "reward", "at", "late")
_TIMES = ("asked", "told", "ends", "ended")
_CHUNK = 1000
_PIECE = 1 << 16
_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")
"""What a spreadsheet takes for a formula, also after spaces and in full width."""
_ROWS = (
    "SELECT r.id, COALESCE(r.ticket, '#' || r.id), a.name, r.propensity, o.reward,"
    " COALESCE(o.why, 'pending'), r.at, {told}, r.ends, o.at, {late}, {events}, r.grp, r.recipe,"
    " r.offer, r.shares, r.unit FROM request r JOIN arm a ON a.number = r.arm"
    " LEFT JOIN outcome o ON o.request = r.id WHERE r.id > ? ORDER BY r.id LIMIT ?"
)
_OF = f"FROM event e WHERE e.request = r.id AND e.name <> '{CANCELLED}'"
_SQL = _ROWS.format(
    told=f"(SELECT MIN(e.at) {_OF})",
    late=f"(SELECT SUM(e.value / {LARGE}) {_OF} AND e.late = 1)",
    events=f"(SELECT COUNT(*) {_OF})",
)


@dataclass(frozen=True)
class Log:
    """The contents of a journal, as they are stored; nothing is computed again.

    Attributes
    ----------
    frame : pandas.DataFrame
        One row for each request: ``ticket``, ``arm``, ``propensity``, ``reward`` (the one that
        counts), ``status``, the times ``asked``, ``told`` (of the first event), ``ends`` (of the
        window) and ``ended`` (of the outcome), ``late`` (the sum of what came too late), the number
        of ``events``, ``group``, the number of the ``recipe``, the arms on ``offer``, the
        propensity of each in ``shares``, and the ``unit``. Then features: ``x:0``, ``x:1``, … if
        all arms of an offer share them, else ``x:ARM:0``, … for every arm.

        The group is *control* or *fixed* if the policy did not choose, *history* if the row was
        imported. The status is *pending* while nothing is certain, *told* if a reward counts,
        *silent* if the reward of silence does, *lost* if there is none, *cancelled* if the ticket
        was.
    recipe : str
        The policy that decides now, as text.
    """

    frame: "pandas.DataFrame"
    recipe: str
    journal: Journal

    @property
    def silence(self) -> float | None:
        """The reward of a ticket whose window ends without one; None if such rewards are lost."""
        recipes = self.journal.recipes()
        silence = Recipe.of(recipes[-1][1], recipes[-1][2]).silence if recipes else None
        return None if silence is None else float(silence)

    def replay(self, policy: Policy[Any]) -> Any:
        """Return the state of another policy after learning every outcome of the journal.

        If that policy takes several rewards per decision, it learns when there are enough of the
        same arm and offer.

        >>> from tailproof import UCB1, AutoFiltered
        >>> from tailproof.live import Agent, read
        >>> agent = Agent(AutoFiltered(UCB1()), ":memory:")
        >>> for reward in range(21):
        ...     status = agent.tell(agent.ask(["red", "blue"]).id, reward)
        >>> state = read(agent.journal).replay(UCB1())
        >>> state.counts.sum(), state.sums.sum()
        (np.int64(21), np.float64(210.0))
        """
        require(isinstance(policy, Policy), "policy", "a Policy such as UCB1()", policy)
        arms = self.journal.arms()
        if not arms:
            raise ValueError("cannot replay an empty journal: it has no decisions yet")
        learner = blank(policy, self.journal, room=len(arms))
        replay(learner, self.journal, self.journal.outcome_count())
        return learner.state

    @cached_property
    def events(self) -> "pandas.DataFrame":
        """Every reward that was told, refunds among them: one row for each event.

        ``ticket``, ``event`` (its id), ``reward``, ``at``, and whether it was ``late``. Read when
        it is first used.
        """
        import pandas

        frame = pandas.DataFrame.from_records(list(_event_rows(self.journal)), columns=[*_EVENTS])
        frame["at"] = pandas.to_datetime(frame["at"], unit="s")
        return frame.astype({"reward": "float64", "late": "bool"})


def rows(journal: Journal) -> Iterator[tuple[list[Any], Offer]]:
    """Yield the columns of every request, with its offer."""
    offer_of, last = offers(journal), -1
    while some := list(journal.execute(_SQL, (last, _CHUNK))):
        last = some[-1][0]
        for _, *row, offer, shares, unit in some:
            row[_LATE] = None if row[_LATE] is None else row[_LATE] * LARGE
            parsed = offer_of(offer)
            listed = None if shares is None else tuple(json.loads(shares))
            yield [*row, parsed.names, listed, unit], parsed


def _event_rows(journal: Journal) -> Iterator[tuple[Any, ...]]:
    sql = (
        "SELECT COALESCE(r.ticket, '#' || r.id), e.name, e.value, e.at, e.late FROM event e"
        f" JOIN request r ON r.id = e.request WHERE e.name <> '{CANCELLED}'"
        " ORDER BY r.id, e.at, e.name"
    )
    for ticket, name, value, at, late in journal.execute(sql):
        yield ticket, name, value, at, bool(late)


class _Features:
    """The columns of features, and their values in a row.

    One set of columns if the arms of every offer share their features, else one for each arm.
    """

    def __init__(self, journal: Journal) -> None:
        dim, self._shared = 0, True
        for (features,) in journal.execute("SELECT features FROM offer WHERE features IS NOT NULL"):
            vectors = json.loads(features)
            dim, self._shared = max(dim, len(vectors[0])), self._shared and len(vectors) == 1
        named = json.loads(journal.meta().get("names", "[]"))
        names = named if len(named) == dim else [str(i) for i in range(dim)]
        self._arms = [""] if self._shared else sorted(journal.arms())
        self._blank: list[float | None] = [None] * dim
        arms = [""] if self._shared else [f"{arm}:" for arm in self._arms]
        self.columns = [f"x:{arm}{name}" for arm in arms for name in names]

    def values(self, offer: Offer) -> list[float | None]:
        """Return the features of an offer, None for arms that it does not have."""
        if offer.vectors is None:
            return self._blank * len(self._arms) if self._blank else []
        vectors = offer.vectors.tolist()
        if self._shared:
            return self._fit(vectors[0])
        of = dict(zip(offer.names, vectors, strict=True))
        return [value for arm in self._arms for value in self._fit(of.get(arm, []))]

    def _fit(self, row: list[float]) -> list[float | None]:
        return [*row, *self._blank[len(row) :]]


def csv_pieces(journal: Journal, *, events: bool = False) -> Generator[str]:
    """Yield a journal, or its events, as CSV, piece by piece; times are in UTC.

    A name that a spreadsheet would take for a formula is prefixed with an apostrophe.

    >>> from tailproof import LinStudentUCB
    >>> from tailproof.live import Agent
    >>> agent = Agent(LinStudentUCB(), ":memory:", clock=lambda: 0.0)
    >>> agent.tell(agent.ask(["=red"], ticket="a").id, -3.5)
    'kept'
    >>> for line in "".join(csv_pieces(agent.journal)).splitlines():
    ...     print(line[:66])
    ticket,arm,propensity,reward,status,asked,told,ends,ended,late,eve
    a,'=red,1.0,-3.5,told,1970-01-01T00:00:00+00:00,1970-01-01T00:00:0
    """
    piece = io.StringIO()
    writer = csv.writer(piece)
    for row in _event_lines(journal) if events else _lines(journal):
        writer.writerow(row)
        if piece.tell() > _PIECE:
            yield piece.getvalue()
            piece.seek(0)
            piece.truncate()
    yield piece.getvalue()


def _lines(journal: Journal) -> Iterator[Sequence[Any]]:
    features = _Features(journal)
    yield (*COLUMNS, *features.columns)
    for row, offer in rows(journal):
        line = dict(zip(COLUMNS, row, strict=True))
        line |= {name: _written(line[name]) for name in _TIMES}
        line |= {name: _escaped(line[name]) for name in ("ticket", "arm", "unit") if line[name]}
        line |= {name: json.dumps(line[name]) for name in ("offer", "shares") if line[name]}
        yield (*line.values(), *features.values(offer))


def _event_lines(journal: Journal) -> Iterator[Sequence[Any]]:
    yield _EVENTS
    for ticket, event, reward, at, late in _event_rows(journal):
        yield _escaped(ticket), _escaped(event), reward, _written(at), late


def _written(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat()


def _escaped(name: str) -> str:
    return f"'{name}" if _FORMULA.match(name) else name


def read(journal: str | Path | Journal) -> Log:
    """Return a journal as a table.

    Parameters
    ----------
    journal : path, str or Journal
        An existing journal; see `open_journal`.

    Examples
    --------
    >>> from tailproof import LinStudentUCB
    >>> from tailproof.live import Agent
    >>> agent = Agent(LinStudentUCB(), ":memory:")
    >>> agent.tell(agent.ask(["red", "blue"], ticket="a").id, 3.5)
    'kept'
    >>> read(agent.journal).frame[["ticket", "propensity", "reward", "status"]]
      ticket  propensity  reward status
    0      a         0.5     3.5   told
    """
    import pandas

    journal = open_journal(journal, make=False)
    features = _Features(journal)
    every = [(*row, *features.values(offer)) for row, offer in rows(journal)]
    frame = pandas.DataFrame.from_records(every, columns=[*COLUMNS, *features.columns])
    numbers = ("propensity", "reward", "late", *_TIMES, *features.columns)
    frame = frame.astype(dict.fromkeys(numbers, "float64"))
    for name in _TIMES:
        frame[name] = pandas.to_datetime(frame[name], unit="s")
    recipes = journal.recipes()
    return Log(frame, recipes[-1][1] if recipes else "", journal)
