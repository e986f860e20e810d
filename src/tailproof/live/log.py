"""A journal as a table, and replayed into another policy."""

import csv
import io
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailproof.checks import require
from tailproof.live.fold import blank
from tailproof.live.journal import LATE, Journal
from tailproof.live.opening import open_journal
from tailproof.policies.base import Policy

if TYPE_CHECKING:
    import pandas

__all__ = ["Log", "csv_pieces", "read"]

_PIECE = 1 << 16
_COLUMNS = ["ticket", "hold", "arm", "propensity", "reward", "fate", "asked", "told"]


@dataclass(frozen=True)
class Log:
    """The contents of a journal.

    Attributes
    ----------
    frame : pandas.DataFrame
        One row for each ticket: ``ticket``, ``hold`` (the decision), ``arm``, ``propensity``,
        ``reward``, ``fate`` (learned, kept or late; without a reward pending, or lost if the
        decision has ended), and the times ``asked`` and ``told``.
    recipe : str
        The policy, as text.
    """

    frame: "pandas.DataFrame"
    recipe: str
    journal: Journal

    def replay(self, policy: Policy[Any]) -> Any:
        """Return the state of another policy after learning every outcome of the journal.

        If that policy takes fewer rewards per decision than an outcome has, they are split into
        several updates; a remainder of fewer than its `Policy.least` is dropped.

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
        arms, pulls = self.journal.arms(), policy.pulls
        if not arms:
            raise ValueError("cannot replay an empty journal: it has no decisions yet")
        mind = blank(policy, self.journal, room=len(arms))
        for closing in self.journal.closings(0, self.journal.counts()[1]):
            if closing.learned:
                mind.check(closing.decision.offer)
                for start in range(0, len(closing.rewards), pulls):
                    part = closing.rewards[start : start + pulls]
                    if len(part) >= policy.least:
                        mind.fold(closing._replace(rewards=part))
        return mind.state


def _rows(journal: Journal) -> Iterator[tuple[Any, ...]]:
    """Yield every ticket with its status in words."""
    for *known, written, learned, asked, told in journal.rows():
        if written is None:
            fate = "pending" if learned is None else "lost"
        else:
            fate = "late" if written == LATE else "learned" if learned else "kept"
        yield *known, fate, asked, told


def csv_pieces(journal: Journal) -> Generator[str]:
    """Yield a journal as CSV, piece by piece; times are in UTC.

    A name that a spreadsheet would take for a formula is prefixed with an apostrophe.

    >>> from tailproof import LinStudentUCB
    >>> from tailproof.live import Agent
    >>> agent = Agent(LinStudentUCB(), ":memory:", clock=lambda: 0.0)
    >>> agent.tell(agent.ask(["=red"], ticket="a").id, -3.5)
    'learned'
    >>> for line in "".join(csv_pieces(agent.journal)).splitlines():
    ...     print(line)
    ticket,hold,arm,propensity,reward,fate,asked,told
    a,0,'=red,1.0,-3.5,learned,1970-01-01T00:00:00+00:00,1970-01-01T00:00:00+00:00
    """
    piece = io.StringIO()
    writer = csv.writer(piece)
    writer.writerow(_COLUMNS)
    for name, hold, arm, propensity, reward, fate, *times in _rows(journal):
        asked, told = (_written(at) for at in times)
        row = (_escaped(name), hold, _escaped(arm), propensity, reward, fate, asked, told)
        writer.writerow(row)
        if piece.tell() > _PIECE:
            yield piece.getvalue()
            piece.seek(0)
            piece.truncate()
    yield piece.getvalue()


def _written(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat()


def _escaped(name: str) -> str:
    return f"'{name}" if name[0] in "=+-@" else name


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
    'learned'
    >>> read(agent.journal).frame[["ticket", "hold", "propensity", "reward", "fate"]]
      ticket  hold  propensity  reward     fate
    0      a     0         0.5     3.5  learned

    Source: our own. Differences: none.
    """
    import pandas

    journal = open_journal(journal, make=False)
    frame = pandas.DataFrame.from_records(list(_rows(journal)), columns=_COLUMNS)
    frame = frame.astype(dict.fromkeys(("propensity", "reward", "asked", "told"), "float64"))
    for name in ("asked", "told"):
        frame[name] = pandas.to_datetime(frame[name], unit="s")
    return Log(frame, journal.meta().get("recipe", ""), journal)
