"""Records whose propensities are known, or estimated from counts."""

from dataclasses import replace

import numpy as np

from tailproof.stats.periods import Moved, days_of, moved, seconds_of
from tailproof.tables import Records
from tailproof.tables.checked import numbered
from tailproof.typing import Array, Index

__all__ = ["drift", "with_propensities"]

_LEAST = 50
"""Rows for each arm that the days of a stratum should have."""


def with_propensities(found: Records) -> Records:
    """Return records in which every row has a propensity.

    Without any, they are the shares of the arms, within each group if there are groups, and within
    days if there are times and shares moved: right if arms were drawn at random. Choices that
    followed rewards need the true ones.
    """
    if found.arms == ("",):
        raise ValueError("the records have no arms: pass arm=")
    if found.propensity is not None:
        return found
    if found.adaptive:
        raise ValueError(
            "propensities are needed: this log is adaptive, so counts cannot stand for them"
        )
    own = _shares(found)
    return replace(
        found,
        propensity=own[np.arange(found.n), found.arm],
        propensities=own,
        estimated=True,
        adaptive=False,
    )


def drift(found: Records) -> Moved:
    """Return whether shares of arms and rewards moved along the rows; without times, by order."""
    return moved(found.arm, np.nan_to_num(found.reward), len(found.arms), _days(found))


def _days(found: Records) -> Index | None:
    if found.time is None or not found.n:
        return None
    day = days_of(seconds_of(found.time))
    return day if day.max() else None


def _shares(found: Records) -> Array:
    """Return the share of each arm, within the group of each row, and the days if shares moved."""
    k, day = len(found.arms), _days(found)
    stratum = np.zeros(found.n, np.int64) if found.group is None else numbered(found.group)
    if day is not None and drift(found).shares:
        length = int(np.ceil(_LEAST * k * (int(day.max()) + 1) / found.n))
        parts = day // length
        stratum = numbered(stratum * (int(parts.max()) + 1) + parts)
    counts = np.bincount(stratum * k + found.arm, minlength=(int(stratum.max()) + 1) * k)
    shares = counts.reshape(-1, k) / np.bincount(stratum)[:, None]
    return np.asarray(shares[stratum])
