"""A journal as a table, and as lessons for another policy."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tailproof.checks import require
from tailproof.live.fold import blank
from tailproof.live.journal import KEPT, LATE, Journal
from tailproof.live.opening import open_journal
from tailproof.policies.base import Policy

__all__ = ["Log", "read"]

_COLUMNS = ["ticket", "hold", "arm", "propensity", "reward", "fate", "asked", "told"]


@dataclass(frozen=True)
class Log:
    """What a journal has written down.

    Attributes
    ----------
    frame : pandas.DataFrame
        One row for each ticket: ``ticket``, ``hold``, ``arm``, ``propensity``, ``reward``, ``fate``
        (learned, kept, late, or pending without a reward), and the times ``asked`` and ``told``.
    recipe : str
        The policy, as text.
    """

    frame: pd.DataFrame
    recipe: str
    journal: Journal

    def replay(self, policy: Policy[Any]) -> Any:
        """Return the state of another policy that has learned all lessons of the journal.

        A policy that wants fewer rewards for a decision than there were gets them in turn; what is
        left over of a lesson, and is less than its `Policy.least`, is left out.

        >>> from tailproof import UCB1, AutoFiltered
        >>> from tailproof.live import Agent, read
        >>> agent = Agent(AutoFiltered(UCB1()), ":memory:")
        >>> for reward in range(21):
        ...     fate = agent.tell(agent.ask(["red", "blue"]).id, reward)
        >>> state = read(agent.journal).replay(UCB1())
        >>> state.counts.sum(), state.sums.sum()
        (np.int64(21), np.float64(210.0))
        """
        require(isinstance(policy, Policy), "policy", "a policy", policy)
        mind, pulls = blank(policy, self.journal), policy.pulls
        for closing in self.journal.closings(0, self.journal.counts()[1]):
            if closing.learned:
                for start in range(0, len(closing.rewards), pulls):
                    part = closing.rewards[start : start + pulls]
                    if len(part) >= policy.least:
                        mind.fold(closing._replace(rewards=part))
        return mind.state


def read(journal: str | Path | Journal) -> Log:
    """Return a journal as a table.

    Parameters
    ----------
    journal : path, str or Journal
        One that exists, see `open_journal`.

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
    journal = open_journal(journal, make=False)
    frame = pd.DataFrame.from_records(
        list(journal.rows()), columns=[*_COLUMNS[:5], "f", "l", *_COLUMNS[6:]]
    )
    written, learned = frame.pop("f"), frame.pop("l")
    fate = np.select(
        [written == LATE, (written == KEPT) & (learned == 1), written == KEPT],
        ["late", "learned", "kept"],
        "pending",
    )
    frame.insert(5, "fate", fate)
    for name in ("asked", "told"):
        frame[name] = pd.to_datetime(frame[name].astype("float64"), unit="s")
    return Log(frame, journal.meta().get("recipe", ""), journal)
