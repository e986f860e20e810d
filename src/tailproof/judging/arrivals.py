"""Rows in which every arm that a rule names could have been chosen."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from tailproof.checks import number
from tailproof.tables import Records

__all__ = ["comparable", "instant"]

_BY_CHANCE = 1e-4
"""An arm counts as added later if its first row would come so late with less probability."""


def instant(name: str, time: Any, zone: str | None = None) -> float:
    """Return a time in seconds since 1970; a date that names no zone is of `zone`, or of UTC.

    >>> instant("since", "1970-01-02"), instant("since", 5)
    (86400.0, 5.0)
    """
    if not isinstance(time, str):
        return number(name, time)
    try:
        moment = datetime.fromisoformat(time)
    except ValueError:
        raise ValueError(f"{name} must be a date such as 2026-08-15, got {time!r}") from None
    local = UTC if zone is None else ZoneInfo(zone)
    return (moment if moment.tzinfo else moment.replace(tzinfo=local)).timestamp()


def comparable(log: Records, rules: Iterable[Any], since: float | None = None) -> Records:
    """Leave out rows before `since`, and rows in which a named arm was not on offer.

    Rules are compared on the same rows, so that an arm that came later is not compared with days
    that it never saw. If neither offers nor propensities are known, an arm is assumed to be on
    offer from its first row on. With units, all rows of a unit go together.

    >>> from tailproof import records
    >>> log = records(arm=["A"] * 90 + ["A", "B"] * 30, reward=range(150), time=range(150))
    >>> comparable(log, ["B", "A"]).notes
    ('91 of 150 rows are left out: B was not on offer there.',)
    """
    kept, notes = np.ones(log.n, np.bool_), []
    if since is not None:
        if log.time is None:
            raise ValueError("since needs the time of each row: pass time=")
        kept &= log.time >= since
        if gone := log.n - int(kept.sum()):
            notes.append(f"{gone:,} of {log.n:,} rows are left out: they were before `since`.")
    arms = [log.arms.index(name) for name in _named_arms(rules) if name in log.arms]
    missing = {arm: _not_offered(log, arm) & kept for arm in arms}
    late = [arm for arm, rows in missing.items() if rows.any()]
    if late:
        before = int(kept.sum())
        kept &= ~np.any([missing[arm] for arm in late], axis=0)
        names = " and ".join(log.arms[arm] for arm in late)
        were = "was" if len(late) == 1 else "were"
        notes.append(
            f"{before - int(kept.sum()):,} of {log.n:,} rows are left out: {names} {were} not on "
            "offer there."
        )
    if kept.all():
        return log
    if log.unit is not None:
        whole = kept & ~(np.bincount(log.unit, ~kept) > 0)[log.unit]
        if more := int(kept.sum()) - int(whole.sum()):
            notes.append(f"With them {more:,} other rows of their units.")
        kept = whole
    if not kept.any():
        raise ValueError(f"no row is left. {' '.join(notes)}")
    return replace(log.take(np.flatnonzero(kept)), notes=(*log.notes, *notes))


def _named_arms(rules: Iterable[Any]) -> list[str]:
    """Return the arms that rules name; none if a rule has a probability for each row."""
    arms: dict[str, None] = {}
    for rule in rules:
        if isinstance(rule, str):
            arms[rule.removeprefix("always:")] = None
        elif isinstance(rule, Mapping):
            for key, value in rule.items():
                if isinstance(value, int | float):
                    arms |= {str(key): None} if value else {}
                else:
                    arms |= dict.fromkeys(_named_arms([value]))
        elif isinstance(rule, np.ndarray | list):
            return []
    return list(arms)


def _not_offered(log: Records, arm: int) -> Any:
    """Return the rows in which an arm was not on offer."""
    if log.offered is not None:
        return ~log.offered[:, arm]
    chosen = log.arm == arm
    if log.propensity is not None or log.time is None or not chosen.any():
        return np.zeros(log.n, np.bool_)
    before = log.time < log.time[chosen].min()
    share = chosen.sum() / max(1, log.n - int(before.sum()))
    by_chance = (1 - share) ** int(before.sum())
    return before if by_chance < _BY_CHANCE else np.zeros(log.n, np.bool_)
