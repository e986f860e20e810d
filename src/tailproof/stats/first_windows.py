"""Units as they come back live: the total of each in the window after its first request."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailproof.stats.uplift import Decided
from tailproof.typing import Array, Index

__all__ = ["FirstWindows", "Open"]


class Open(NamedTuple):
    """First requests whose windows are not over, with the totals of their units so far."""

    rows: Decided
    ends: Array
    units: list[str]


@dataclass(eq=False)
class FirstWindows:
    """Gathers decisions by unit: a unit enters once, with its total in its window.

    The window starts with the first request of a unit; requests later than that do not count. A
    unit enters with the first decision after the end of its window, so the order depends neither on
    purchases nor on how decisions are split between calls. Only open units take memory.

    Attributes
    ----------
    waiting : Open or None
        The units whose windows are not over.
    latest : float
        The time of the latest request so far.

    Examples
    --------
    >>> none = np.zeros(4)
    >>> rows = Decided(none.astype(int), none, none, none, none, none.astype(int), none, none > 0,
    ...                np.array([1.0, 5.0, 7.0, 0.0]), np.zeros((4, 0), dtype=bool), none + 1)
    >>> windows = FirstWindows()
    >>> found = windows.add(rows, units=["a", "b", "a", "c"], again=np.array([0, 0, 1, 0]) > 0,
    ...                     asked=np.array([0.0, 3.0, 4.0, 11.0]), length=np.full(4, 10.0))
    >>> found.reward.tolist(), windows.open
    ([8.0], 2)
    """

    waiting: Open | None = None
    latest: float = -np.inf

    @property
    def open(self) -> int:
        """How many units have an open window."""
        return 0 if self.waiting is None else len(self.waiting.units)

    @property
    def waiting_for(self) -> float:
        """What units with an open window have brought so far."""
        return 0.0 if self.waiting is None else float(np.nansum(self.waiting.rows.reward))

    def add(
        self,
        rows: Decided,
        *,
        units: list[str | None],
        again: NDArray[np.bool_],
        asked: Array,
        length: Array,
    ) -> Decided:
        """Add decisions, and return decisions whose window is over, or that have no unit.

        `again` says whether a unit had a request before; these are left out as decisions.
        """
        n, before = len(asked), self.waiting
        mark = np.maximum.accumulate(np.append(self.latest, asked))[1:]
        named = np.array([unit is not None for unit in units], dtype=np.bool_)
        ends = np.where(named, asked + length, -np.inf)
        old = 0 if before is None else len(before.units)
        if before is not None:
            rows = joined(before.rows, rows)
            ends = np.append(before.ends, ends)
        place = np.append(np.zeros(old, np.int64), np.arange(n))
        close = np.maximum(np.searchsorted(mark, ends), place)
        again = again.copy()
        reward = rows.reward.copy()
        slots = {} if before is None else {unit: slot for slot, unit in enumerate(before.units)}
        for row in np.flatnonzero(named).tolist():
            unit = str(units[row])
            slot = slots.get(unit, -1)
            if slot >= 0 and asked[row] < ends[slot] and row < close[slot]:
                reward[slot] += reward[old + row]
                again[row] = True  # the first request may have been removed meanwhile
            elif not again[row]:
                slots[unit] = old + row
        kept = np.append(np.ones(old, np.bool_), ~again)
        rows = rows._replace(reward=reward)
        done: Index = np.flatnonzero(kept & (close < n))
        left: Index = np.flatnonzero(kept & (close >= n))
        everyone = [*([] if before is None else before.units), *units]
        names = [str(everyone[slot]) for slot in left.tolist()]
        self.waiting = Open(_taken(rows, left), ends[left], names)
        self.latest = float(mark[-1]) if n else self.latest
        return _taken(rows, done[np.argsort(close[done], kind="stable")])


def joined(first: Decided, last: Decided) -> Decided:
    """Join decisions; arms that were added later count as not on offer in earlier decisions."""
    wider = max(first.there.shape[1], last.there.shape[1])
    there = [
        np.pad(rows.there, ((0, 0), (0, wider - rows.there.shape[1]))) for rows in (first, last)
    ]
    first, last = (rows._replace(there=x) for rows, x in zip((first, last), there, strict=True))
    return Decided._make(np.concatenate(pair) for pair in zip(first, last, strict=True))


def _taken(rows: Decided, places: Index) -> Decided:
    return Decided._make(column[places] for column in rows)
