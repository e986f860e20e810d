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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tailproof.checks import require
from tailproof.live.journal import CANCELLED, Journal, Told, open_journal
from tailproof.live.offers import Offer
from tailproof.live.replay import blank
from tailproof.live.scheduler import Rules
from tailproof.policies.base import Policy
from tailproof.policies.baselines import Uniform

if TYPE_CHECKING:
    import pandas

__all__ = ["Log", "Row", "csv_pieces", "read", "tickets"]

_PIECE = 1 << 16
_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")
"""What a spreadsheet takes for a formula, also after spaces and in full width."""
_EVENTS = ("ticket", "event", "reward", "at", "counts")
_TIMES = ("asked", "told", "ends")


class Row(NamedTuple):
    """A ticket, as in `Log.frame`; the offer with its features."""

    ticket: str
    hold: int
    arm: str
    propensity: float | None
    reward: float | None
    fate: str
    asked: float
    told: float | None
    ends: float
    late: float | None
    events: int
    group: str | None
    recipe: int
    offer: Offer
    shares: tuple[float, ...] | None
    unit: str | None


@dataclass(frozen=True)
class Log:
    """The contents of a journal.

    Attributes
    ----------
    frame : pandas.DataFrame
        One row for each ticket: ``ticket``, ``hold`` (the number of the decision), ``arm``,
        ``propensity``, ``reward`` (what came in its window, that of silence if nothing did),
        ``fate``, the times ``asked``, ``told`` (of the first event) and ``ends`` (of the window),
        ``late`` (the sum of what came too late), the number of ``events``, ``group``, the number
        of the ``recipe``, the arms on ``offer``, the propensity of each in ``shares``, and the
        ``unit``. Then features: ``x:0``, ``x:1``, … if all arms of an offer share them, else
        ``x:ARM:0``, … for every arm.

        The group is *control* or *fixed* if the policy did not choose, *history* if the row was
        imported.

        The fate is *pending* before anything is known, *kept* if the reward has come but its
        decision is open, *learned* if it is part of an outcome, *silent* if the outcome has the
        reward of silence in its place, *late* if it came too late, *cancelled* if the ticket was,
        and *lost* otherwise.
    recipe : str
        The policy that decides now, as text.
    """

    frame: "pandas.DataFrame"
    recipe: str
    journal: Journal

    @property
    def silence(self) -> float | None:
        """The reward of a ticket whose window ended without one; None if such rewards are lost."""
        return Rules.of(self.journal.meta(), Uniform()).silence

    def replay(self, policy: Policy[Any]) -> Any:
        """Return the state of another policy after learning every outcome of the journal.

        If that policy takes fewer rewards per decision than an outcome has, they are split into
        several updates; fewer than its `Policy.least` wait for others of the same arm and offer.

        >>> from tailproof import UCB1, AutoFiltered
        >>> from tailproof.live import Agent, read
        >>> agent = Agent(AutoFiltered(UCB1()), ":memory:")
        >>> for reward in range(21):
        ...     fate = agent.tell(agent.ask(["red", "blue"]).id, reward)
        >>> state = read(agent.journal).replay(UCB1())
        >>> state.counts.sum(), state.sums.sum()
        (np.int64(21), np.float64(210.0))
        """
        require(isinstance(policy, Policy), "policy", "a Policy such as UCB1()", policy)
        arms = self.journal.arms()
        if not arms:
            raise ValueError("cannot replay an empty journal: it has no decisions yet")
        learner = blank(policy, self.journal, room=len(arms))
        for outcome in self.journal.outcomes(learner.learned, self.journal.counts()[0]):
            learner.check(outcome.decision.offer)
            learner.learn(outcome)
        return learner.state

    @cached_property
    def events(self) -> "pandas.DataFrame":
        """Every reward that was told, refunds among them: one row for each event.

        ``ticket``, ``event`` (its id), ``reward``, ``at``, and whether it ``counts``: whether it
        came in time, and is the first one if only that counts. Read when it is first used.
        """
        import pandas

        rows = list(_event_rows(self.journal))
        frame = pandas.DataFrame.from_records(rows, columns=list(_EVENTS))
        frame["at"] = pandas.to_datetime(frame["at"], unit="s")
        return frame.astype({"reward": "float64", "counts": "bool"})


def tickets(journal: Journal) -> Iterator[Row]:
    """Yield a row for every ticket."""
    rules = Rules.of(journal.meta(), Uniform())
    for row, events in journal.tickets():
        name, decision, place, asked, ends, arm, share, shares, group, recipe, offer, *rest = row
        unit, ended, learned = rest
        cancelled = Told(place, asked, ends, events).cancelled
        events = [] if cancelled else events  # it has no rewards
        ticket = Told(place, asked, ends, events)
        reward, last = rules.came(ticket, ended), rules.last(ticket, ended)
        late = [reward for _, reward, at in events if at > last]
        if reward is not None:
            fate = "kept" if ended is None else "learned" if learned else "lost"
        elif cancelled:
            fate = "cancelled"
        elif late:
            fate = "late"
        elif ended is None:
            fate = "pending"
        else:
            fate = "silent" if learned and rules.silence is not None else "lost"
        yield Row(
            ticket=f"{decision}.{place}" if name is None else name,
            hold=decision,
            arm=arm,
            propensity=share,
            reward=rules.silence if reward is None and (late or learned) else reward,
            fate=fate,
            asked=asked,
            told=events[0][2] if events else None,
            ends=ends,
            late=sum(late) if late else None,
            events=len(events),
            group=group,
            recipe=recipe,
            offer=journal.offer(offer),
            shares=None if shares is None else tuple(np.frombuffer(shares, "<f4").tolist()),
            unit=unit,
        )


def _event_rows(journal: Journal) -> Iterator[tuple[Any, ...]]:
    rules = Rules.of(journal.meta(), Uniform())
    for row, events in journal.tickets():
        name, decision, place, asked, ends, *_, ended, _ = row
        last = rules.last(Told(place, asked, ends, events), ended)
        for number, (event, reward, at) in enumerate(events):
            if event == CANCELLED:
                continue
            counts = at <= last and (number == 0 or rules.rewards == "sum")
            yield name or f"{decision}.{place}", event, reward, at, counts


class _Features:
    """The columns of features, and their values in a row.

    One set of columns if the arms of every offer share their features, else one for each arm.
    """

    def __init__(self, journal: Journal) -> None:
        dims, self._shared = journal.dims()
        dim = max(dims, default=0)
        named = json.loads(journal.meta().get("names", "[]"))
        names = named if len(named) == dim else [str(i) for i in range(dim)]
        self._arms = [""] if self._shared else sorted(journal.arms())
        self._dim = dim
        self._blank: list[float | None] = [None] * dim
        arms = [""] if self._shared else [f"{arm}:" for arm in self._arms]
        self.columns = [f"x:{arm}{name}" for arm in arms for name in names]

    def values(self, offer: Offer) -> list[float | None]:
        """Return the features of an offer, None for arms that it does not have."""
        if not self._dim:
            return []
        if offer.vectors is None:
            return self._blank * len(self._arms)
        rows = offer.vectors.tolist()
        if self._shared:
            return self._fit(rows[0])
        of = dict(zip(offer.names, rows, strict=True))
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
    ...     print(line[:77])
    ticket,hold,arm,propensity,reward,fate,asked,told,ends,late,events,group,reci
    a,0,'=red,1.0,-3.5,learned,1970-01-01T00:00:00+00:00,1970-01-01T00:00:00+00:0
    """
    piece = io.StringIO()
    writer = csv.writer(piece)
    for row in _event_lines(journal) if events else _ticket_lines(journal):
        writer.writerow(row)
        if piece.tell() > _PIECE:
            yield piece.getvalue()
            piece.seek(0)
            piece.truncate()
    yield piece.getvalue()


def _ticket_lines(journal: Journal) -> Iterator[Sequence[Any]]:
    features = _Features(journal)
    yield (*Row._fields, *features.columns)
    for row in tickets(journal):
        times = {name: _written(getattr(row, name)) for name in _TIMES}
        names = {"ticket": _escaped(row.ticket), "arm": _escaped(row.arm)}
        names |= {} if row.unit is None else {"unit": _escaped(row.unit)}
        lists = {"offer": json.dumps(row.offer.names)}
        lists |= {} if row.shares is None else {"shares": json.dumps(row.shares)}
        values = features.values(row.offer)
        yield (*row._replace(**times, **names, **lists), *values)  # type: ignore[arg-type]


def _event_lines(journal: Journal) -> Iterator[Sequence[Any]]:
    yield _EVENTS
    for ticket, event, reward, at, counts in _event_rows(journal):
        yield _escaped(ticket), _escaped(event), reward, _written(at), counts


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
    >>> read(agent.journal).frame[["ticket", "hold", "propensity", "reward", "fate"]]
      ticket  hold  propensity  reward     fate
    0      a     0         0.5     3.5  learned

    Source: our own. Differences: none.
    """
    import pandas

    journal = open_journal(journal, make=False)
    features = _Features(journal)
    rows = [
        (*row._replace(offer=row.offer.names), *features.values(row.offer))  # type: ignore[arg-type]
        for row in tickets(journal)
    ]
    frame = pandas.DataFrame.from_records(rows, columns=[*Row._fields, *features.columns])
    numbers = ("propensity", "reward", "late", *_TIMES, *features.columns)
    frame = frame.astype(dict.fromkeys(numbers, "float64"))
    for name in _TIMES:
        frame[name] = pandas.to_datetime(frame[name], unit="s")
    recipes = journal.recipes()
    return Log(frame, recipes[-1][1] if recipes else "", journal)
