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


def with_propensities(records: Records) -> Records:
    """Return records in which every row has a propensity.

    Without any, they are the shares of the arms, within each group if there are groups, and within
    days if there are times and shares moved: right if arms were drawn at random. Choices that
    followed rewards need the true propensities.
    """
    if records.arms == ("",):
        raise ValueError("the records have no arms: pass arm=")
    if records.propensity is not None:
        return records
    if records.adaptive:
        raise ValueError(
            "propensities are needed: this log is adaptive, so counts cannot stand for them"
        )
    shares = _shares(records)
    return replace(
        records,
        propensity=shares[np.arange(records.n), records.arm],
        propensities=shares,
        estimated=True,
        adaptive=False,
    )


def drift(records: Records) -> Moved:
    """Return whether shares of arms and rewards moved along the rows; without times, by order."""
    return moved(records.arm, np.nan_to_num(records.reward), len(records.arms), _days(records))


def _days(records: Records) -> Index | None:
    if records.time is None or not records.n:
        return None
    day = days_of(seconds_of(records.time))
    return day if day.max() else None


def _shares(records: Records) -> Array:
    """Return the share of each arm, within the group of each row, and the days if shares moved."""
    k, day = len(records.arms), _days(records)
    stratum = np.zeros(records.n, np.int64) if records.group is None else numbered(records.group)
    if day is not None and drift(records).shares:
        length = int(np.ceil(_LEAST * k * (int(day.max()) + 1) / records.n))
        parts = day // length
        stratum = numbered(stratum * (int(parts.max()) + 1) + parts)
    counts = np.bincount(stratum * k + records.arm, minlength=(int(stratum.max()) + 1) * k)
    shares = counts.reshape(-1, k) / np.bincount(stratum)[:, None]
    return np.asarray(shares[stratum])
