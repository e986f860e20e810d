"""A journal as a table, and replayed into another policy."""

import json
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailproof.checks import require
from tailproof.live.journal import CANCELLED, LARGE, Journal, open_journal
from tailproof.live.replay import blank, replay
from tailproof.policies.base import Policy
from tailproof.tables.journals import pieces

if TYPE_CHECKING:
    import pandas

__all__ = ["Log", "csv_pieces", "read"]

_EVENTS = ("ticket", "event", "reward", "at", "late")
_TIMES = ("asked", "told", "ends", "ended", "at")
_NAMES = ("ticket", "arm", "unit", "event")
_PIECE = 10_000
"""Rows that are written at once."""
_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")
"""What a spreadsheet takes for a formula, also after spaces and in full width."""
_OF = f"FROM event e WHERE e.request = log.number AND e.name <> '{CANCELLED}'"
_MORE = {
    "told": f"(SELECT MIN(e.at) {_OF})",
    "ends": "ends",
    "ended": "outcome_time",
    "late": f"(SELECT SUM(e.value / {LARGE}) {_OF} AND e.late = 1)",
    "events": f"(SELECT COUNT(*) {_OF})",
    "recipe": "recipe",
}
_COLUMNS = (
    *("ticket", "arm", "propensity", "reward", "status", "asked", "told", "ends", "ended", "late"),
    *("events", "group", "recipe", "offer", "shares", "unit"),
)
_TOLD = (
    "SELECT COALESCE(r.ticket, '#' || r.id), e.name, e.value, e.at, e.late FROM event e"
    f" JOIN request r ON r.id = e.request WHERE e.name <> '{CANCELLED}'"
    " ORDER BY r.id, e.at, e.name"
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

        frame = pandas.concat(_events(self.journal))
        frame["at"] = pandas.to_datetime(frame["at"], unit="s")
        return frame


def _requests(journal: Journal, size: int | None = None) -> "Iterator[pandas.DataFrame]":
    """Yield the requests of a journal, in pieces of so many rows."""
    for piece in pieces(journal.execute, _MORE, size):
        frame = piece[[*_COLUMNS, *(name for name in piece.columns if name.startswith("x:"))]]
        frame = frame.astype(dict.fromkeys(("asked", "told", "ends", "ended", "late"), "float64"))
        yield frame.assign(late=frame["late"] * LARGE)


def _events(journal: Journal) -> "Iterator[pandas.DataFrame]":
    """Yield the events of a journal, in pieces."""
    import pandas

    rows = iter(journal.execute(_TOLD))
    kinds = {"reward": "float64", "late": "bool"}
    while True:
        some = [tuple(row) for row in islice(rows, _PIECE)]
        yield pandas.DataFrame.from_records(some, columns=[*_EVENTS]).astype(kinds)
        if len(some) < _PIECE:
            return


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
    import pandas

    header = True
    for frame in _events(journal) if events else _requests(journal, _PIECE):
        for change, names in ((_written, _TIMES), (_escaped, _NAMES)):
            for name in frame.columns.intersection(names):
                some = frame[name].dropna()
                frame[name] = pandas.Series(map(change, some), some.index, dtype=object)
        yield frame.to_csv(index=False, header=header, lineterminator="\r\n")
        header = False


def _written(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


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
    (frame,) = _requests(journal)
    for name in frame.columns.intersection(_TIMES):
        frame[name] = pandas.to_datetime(frame[name], unit="s")
    for name in ("offer", "shares"):
        frame[name] = [
            tuple(json.loads(text)) if isinstance(text, str) else None for text in frame[name]
        ]
    recipes = journal.recipes()
    return Log(frame, recipes[-1][1] if recipes else "", journal)
