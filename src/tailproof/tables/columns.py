"""Columns that belong together: propensities of all arms, features of visitors and of arms."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import array, require
from tailproof.tables.cells import Column
from tailproof.tables.checked import numbered
from tailproof.tables.refusals import Refusals
from tailproof.typing import Array, Index

__all__ = [
    "ROUNDING",
    "by_stratum",
    "check_all",
    "check_chosen",
    "distinct",
    "feature_names",
    "listed",
    "of_mappings",
    "varies",
]

ROUNDING = 1e-6
"""By how much the sum of probabilities in a file may differ from one."""
_DISAGREE = 1e-3
"""Two columns with the propensity of the same arm differ by more than rounding beyond this."""
_FEATURE = "x:"
"""How the names of columns of features begin."""


def listed(column: Column) -> list[Any]:
    """Return a column of lists or mappings, which a file may have as JSON."""
    if column.raw is not None:
        return [json.loads(cell) if isinstance(cell, str) else cell for cell in column.raw]
    require(column.codes is not None, "propensities", "lists or mappings, or JSON", "numbers")
    assert column.codes is not None
    values = [json.loads(text) if text.strip() else None for text in column.texts]
    return [None if code < 0 else values[code] for code in column.codes.tolist()]


def of_mappings(rows: Sequence[Any], arms: tuple[str, ...]) -> Array:
    """Return the propensity of every arm in each row, NaN where it has none."""
    if len(rows) and isinstance(rows[0], Mapping):
        return np.array([[float(row.get(name, math.nan)) for name in arms] for row in rows])
    return array("propensities", rows)


def check_all(
    full: Array, arms: tuple[str, ...], n: int, refusals: Refusals
) -> tuple[Array, NDArray[np.bool_] | None]:
    """Return propensities of all arms, of shape (n, K), and which arms have one if not all."""
    require(full.shape == (n, len(arms)), "propensities", f"of shape {n, len(arms)}", full.shape)
    offered = ~np.isnan(full)
    full = np.where(offered, full, 0.0)
    off = np.abs(full.sum(axis=1) - 1) > ROUNDING * max(len(arms), 10)
    bad = np.flatnonzero(off | ((full < 0) | (full > 1 + ROUNDING)).any(axis=1))
    refusals.refuse(
        {int(row): str(full[row].tolist()) for row in bad},
        "propensities must be at least 0 and add up to 1, got",
    )
    return full, None if offered.all() else offered


def check_chosen(chosen: Array, full: Array | None, arm: Index, refusals: Refusals) -> Array:
    """Return the propensity of the chosen arms, at most one."""
    bad = np.flatnonzero(~((chosen > 0) & (chosen <= 1 + ROUNDING)))
    if len(bad):
        first = float(chosen[bad[0]])
        if first == 0:
            hint = "an arm without a chance cannot have been chosen"
        elif 1 < first <= 100:
            hint = "is it in per cent?"
        else:
            hint = "without the column they are estimated from counts, if arms were random"
        refusals.refuse(
            {int(row): f"{chosen[row]:g}" for row in bad},
            f"propensity must be above 0 and at most 1 ({hint}), got",
        )
    if full is not None:
        of_arm = full[np.arange(len(arm)), arm]
        refusals.refuse(
            {
                int(row): f"{chosen[row]:g} and {of_arm[row]:g}"
                for row in np.flatnonzero(np.abs(of_arm - chosen) > _DISAGREE)
            },
            "propensity and propensities disagree:",
        )
    return np.minimum(chosen, 1.0)


def feature_names(known: Sequence[str], arms: tuple[str, ...]) -> tuple[list[str], int]:
    """Return the columns ``x:…`` and how many features each arm has; 0 if visitors have them.

    >>> feature_names(["arm", "x:age"], ("a", "b")), feature_names(["x:a:0", "x:b:0"], ("a", "b"))
    ((['x:age'], 0), (['x:a:0', 'x:b:0'], 1))
    """
    given = [name for name in known if name.startswith(_FEATURE)]
    by_arm = [[name for name in given if name.startswith(f"{_FEATURE}{arm}:")] for arm in arms]
    dim = len(by_arm[0]) if by_arm else 0
    if dim and all(len(some) == dim for some in by_arm) and len(given) == dim * len(arms):
        return [name for some in by_arm for name in some], dim
    return given, 0


def distinct(vectors: Array, arms: tuple[str, ...]) -> tuple[tuple[str, ...], Array | None]:
    """Return names and values of the features of arms that vary, each once."""
    flat = vectors.reshape(len(vectors), -1)
    dim = vectors.shape[2]
    some = np.flatnonzero((flat != flat[0]).any(axis=0))
    if not len(some):
        return (), None
    _, first = np.unique(flat[:, some], axis=1, return_index=True)
    chosen = some[np.sort(first)]
    return tuple(f"{arms[at // dim]}:{at % dim}" for at in chosen), flat[:, chosen]


def varies(propensity: Array, arm: Index, group: NDArray[Any] | None) -> bool:
    """Return whether the propensity of an arm differs between rows of the same group."""
    same = by_stratum(propensity, arm, int(arm.max()) + 1, group)[np.arange(len(arm)), arm]
    return not np.allclose(same, propensity, rtol=ROUNDING, atol=0)


def by_stratum(propensity: Array, arm: Index, k: int, group: NDArray[Any] | None) -> Array:
    """Return the propensities of all arms by group, in which they are constant; zero if unseen."""
    strata = np.zeros(len(arm), np.int64) if group is None else numbered(group)
    cells = np.zeros((int(strata.max()) + 1, k))
    cells[strata, arm] = propensity
    return np.asarray(cells[strata])
