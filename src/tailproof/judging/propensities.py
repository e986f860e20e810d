"""Records whose propensities are known, or estimated from counts."""

from dataclasses import replace

import numpy as np

from tailproof.tables import Records
from tailproof.tables.checked import numbered
from tailproof.typing import Array

__all__ = ["with_propensities"]


def with_propensities(found: Records) -> Records:
    """Return records in which every row has a propensity.

    Without any, they are the shares of the arms, within each group if there are groups: right if
    arms were drawn at random. Choices that followed rewards need the true ones.
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


def _shares(found: Records) -> Array:
    """Return the share of each arm, within the group of each row."""
    k = len(found.arms)
    stratum = np.zeros(found.n, np.int64) if found.group is None else numbered(found.group)
    counts = np.bincount(stratum * k + found.arm, minlength=(int(stratum.max()) + 1) * k)
    shares = counts.reshape(-1, k) / np.bincount(stratum)[:, None]
    return np.asarray(shares[stratum])
