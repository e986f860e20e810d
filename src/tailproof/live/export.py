"""A journal as a table, and replayed into another policy."""

import csv
import io
import json
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tailproof.checks import require
from tailproof.live.journal import Journal, Told, open_journal
from tailproof.live.replay import blank
from tailproof.live.scheduler import Rules
from tailproof.policies.base import Policy
from tailproof.policies.baselines import Uniform

if TYPE_CHECKING:
    import pandas

__all__ = ["Log", "csv_pieces", "read"]

_PIECE = 1 << 16
_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")
"""What a spreadsheet takes for a formula, also after spaces and in full width."""
_COLUMNS = [
    *("ticket", "hold", "arm", "propensity", "reward", "fate", "asked", "told", "ends"),
    *("late", "events", "group", "recipe", "offer", "shares"),
]


@dataclass(frozen=True)
class Log:
    """The contents of a journal.

    Attributes
    ----------
    frame : pandas.DataFrame
        One row for each ticket: ``ticket``, ``hold`` (the number of the decision), ``arm``,
        ``propensity``, ``reward`` (what came in its window), ``fate``, the times ``asked``,
        ``told`` (of the first event) and ``ends`` (of the window), ``late`` (the sum of what came
        too late), the number of ``events``, ``group``, the number of the ``recipe``, the arms on
        ``offer`` and the propensity of each in ``shares``.

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
        learner = blank(policy, self.journal, room=len(arms))
        for outcome in self.journal.outcomes(0, self.journal.counts()[0]):
            if outcome.rewards is not None:
                learner.check(outcome.decision.offer)
                for start in range(0, len(outcome.rewards), pulls):
                    part = outcome.rewards[start : start + pulls]
                    if len(part) >= policy.least:
                        learner.learn(outcome._replace(rewards=part))
        return learner.state


def _rows(journal: Journal) -> Iterator[tuple[Any, ...]]:
    """Yield a row for every ticket, as in `_COLUMNS`; lists are tuples."""
    rules = Rules.of(journal.meta(), Uniform())
    for row, events in journal.tickets():
        name, decision, place, asked, ends, arm, share, shares, group, recipe, offer, *rest = row
        ended, learned = rest
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
        known = None if shares is None else tuple(np.frombuffer(shares, "<f4").tolist())
        yield (
            *(f"{decision}.{place}" if name is None else name, decision, arm, share, reward, fate),
            *(asked, events[0][2] if events else None, ends, sum(late) if late else None),
            *(len(events), group, recipe, journal.offer(offer).names, known),
        )


def csv_pieces(journal: Journal) -> Generator[str]:
    """Yield a journal as CSV, piece by piece; times are in UTC.

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
    writer.writerow(_COLUMNS)
    for name, hold, arm, *values in _rows(journal):
        values[3:6] = map(_written, values[3:6])
        values[-2:] = (None if one is None else json.dumps(one) for one in values[-2:])
        writer.writerow((_escaped(name), hold, _escaped(arm), *values))
        if piece.tell() > _PIECE:
            yield piece.getvalue()
            piece.seek(0)
            piece.truncate()
    yield piece.getvalue()


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
    frame = pandas.DataFrame.from_records(list(_rows(journal)), columns=_COLUMNS)
    numbers = ("propensity", "reward", "late", "asked", "told", "ends")
    frame = frame.astype(dict.fromkeys(numbers, "float64"))
    for name in ("asked", "told", "ends"):
        frame[name] = pandas.to_datetime(frame[name], unit="s")
    recipes = journal.recipes()
    return Log(frame, recipes[-1][1] if recipes else "", journal)
