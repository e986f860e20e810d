"""Columns of a log, checked: arms, groups, propensities and features."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import array, require
from tailproof.typing import Array, Index

if TYPE_CHECKING:
    import pandas

__all__ = [
    "ROUNDING",
    "all_propensities",
    "arm_features",
    "arm_numbers",
    "constant",
    "distinct",
    "feature_table",
    "listed",
    "numbered",
    "own_propensity",
    "text",
    "varies",
]

_FEATURE = "x:"
"""How the names of columns of features begin."""
ROUNDING = 1e-6
"""Probabilities that were written to a file add up to one up to this."""


def arm_numbers(given: Any, arms: Sequence[Any] | None, n: int) -> tuple[tuple[str, ...], Index]:
    """Return the names of the arms and the number of each row's."""
    if given is None:
        raise ValueError("log has no arms: pass arm=")
    names = text("arm", given, n)
    assert names is not None
    if arms is None:
        import pandas

        codes, found = pandas.factorize(names)
        order = np.argsort(found.astype(str), kind="stable")
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return tuple(map(str, found[order])), rank[codes]
    known = tuple(map(str, arms))
    require(len(set(known)) == len(known) > 0, "arms", "names that differ", list(known))
    place = {name: i for i, name in enumerate(known)}
    unknown = set(names) - place.keys()
    require(not unknown, "arm", f"one of {', '.join(known)}", next(iter(unknown), None))
    return known, np.fromiter((place[name] for name in names), dtype=np.int64, count=n)


def text(option: str, given: Any, n: int) -> NDArray[Any] | None:
    """Return a column as text; None if there is none."""
    if given is None:
        return None
    values = np.asarray(given, dtype=object)
    require(values.shape == (n,), option, f"of shape {(n,)}", values.shape)
    missing = np.fromiter((v is None or v != v for v in values), dtype=np.bool_, count=n)
    if missing.any():
        if option == "group":  # of visitors without one
            return None if missing.all() else np.where(missing, "", values.astype(str))
        raise ValueError(f"{option} is missing in row {int(missing.argmax()) + 1}")
    if np.asarray(given).dtype.kind in "US":
        return values
    return np.array([str(value) for value in values], dtype=object)


def numbered(option: str, given: Any, n: int) -> Index | None:
    """Return the number of each row's unit, in the order of their first rows."""
    if given is None:
        return None
    import pandas

    values = np.asarray(given)
    require(values.shape == (n,), option, f"of shape {(n,)}", values.shape)
    codes: Index = pandas.factorize(values)[0].astype(np.int64)
    if len(codes) and codes.min() < 0:
        raise ValueError(f"{option} is missing in row {int((codes < 0).argmax()) + 1}")
    return codes


def listed(column: Any) -> list[Any]:
    """Return a column of lists, which a file may have as JSON."""
    return [json.loads(cell) if isinstance(cell, str) else cell for cell in column]


def all_propensities(
    given: Any, frame: "pandas.DataFrame | None", arms: tuple[str, ...], n: int
) -> tuple[Array | None, NDArray[np.bool_] | None]:
    """Return the propensities of all arms, of shape (n, K), and which arms have one if not all."""
    if frame is not None and (given is None or isinstance(given, str)):
        columns = [f"p:{name}" for name in arms]
        if given is None and any(name in frame.columns for name in columns):
            given = frame.reindex(columns=columns).to_numpy(dtype=np.float64)
        elif (given or "propensities") in frame.columns:
            given = frame[given or "propensities"].to_numpy()
        elif given is None and {"offer", "shares"} <= set(frame.columns):
            if frame["shares"].isna().any():
                return None, None
            pairs = zip(listed(frame["offer"]), listed(frame["shares"]), strict=True)
            given = [dict(zip(*pair, strict=True)) for pair in pairs]
    if given is None:
        return None, None
    if isinstance(given, str):
        raise ValueError(f"log has no column {given!r} for propensities")
    if len(given) and isinstance(given[0], Mapping):
        given = np.array([[float(row.get(name, math.nan)) for name in arms] for row in given])
    full = array("propensities", given)
    require(full.shape == (n, len(arms)), "propensities", f"of shape {n, len(arms)}", full.shape)
    offered = ~np.isnan(full)
    full = np.where(offered, full, 0.0)
    total = full.sum(axis=1)
    ok = bool(np.all((full >= 0) & (full <= 1 + ROUNDING)))
    ok = ok and bool(np.all(np.abs(total - 1) <= ROUNDING * max(len(arms), 10)))
    if not ok:
        bad = int((~(np.abs(total - 1) <= ROUNDING * max(len(arms), 10))).argmax())
        raise ValueError(
            f"propensities must be at least 0 and add up to 1, got {full[bad].tolist()} "
            f"in row {bad + 1}"
        )
    return full, None if offered.all() else offered


def own_propensity(
    given: Any, full: Array | None, arm: Index, k: int, group: NDArray[Any] | None
) -> tuple[Array, Array | None, bool]:
    """Return the propensity of the chosen arms, those of all if known, and if it is estimated."""
    n = len(arm)
    if given is None and full is None:
        stratum = numbered("group", group, n) if group is not None else np.zeros(n, np.int64)
        assert stratum is not None
        counts = np.bincount(stratum * k + arm, minlength=(int(stratum.max()) + 1) * k)
        shares = counts.reshape(-1, k) / np.bincount(stratum)[:, None]
        return shares[stratum, arm], shares[stratum], True
    own = (
        full[np.arange(n), arm]
        if given is None and full is not None
        else array("propensity", given)
    )
    require(own.shape == (n,), "propensity", f"of shape {(n,)}", own.shape)
    bad = ~((own > 0) & (own <= 1 + ROUNDING))
    if bad.any():
        row = int(bad.argmax())
        if own[row] == 0:
            hint = "an arm without a chance cannot have been chosen"
        elif 1 < own[row] <= 100:
            hint = "is it in per cent?"
        else:
            hint = "without the column they are estimated from counts, if arms were random"
        raise ValueError(
            f"propensity must be above 0 and at most 1, got {own[row]:g} in row {row + 1}; {hint}"
        )
    if full is not None and np.abs(full[np.arange(n), arm] - own).max() > 1e-3:
        row = int(np.abs(full[np.arange(n), arm] - own).argmax())
        raise ValueError(
            f"propensity and propensities disagree in row {row + 1}: {own[row]:g} and "
            f"{full[row, arm[row]]:g}"
        )
    return np.minimum(own, 1.0), full, False


def feature_table(
    given: Any, frame: "pandas.DataFrame | None", n: int
) -> tuple[tuple[str, ...], Array | None]:
    """Return the names of the features and their values."""
    if given is None and frame is not None:
        given = [name for name in frame.columns if str(name).startswith(_FEATURE)] or None
    if given is None:
        return (), None
    if isinstance(given, Sequence) and len(given) and isinstance(given[0], str):
        if frame is None or any(name not in frame.columns for name in given):
            missing = [name for name in given if frame is None or name not in frame.columns]
            raise ValueError(f"log has no column {missing[0]!r} for features")
        names = tuple(name.removeprefix(_FEATURE) for name in given)
        x = array("features", frame[list(given)].to_numpy())
    else:
        x = array("features", given)
        names = tuple(map(str, getattr(given, "columns", ())))
        names = names or tuple(f"x{i}" for i in range(x.shape[-1]))
    require(x.ndim == 2 and len(x) == n, "features", f"of shape ({n}, d)", x.shape)
    bad = ~np.isfinite(x)
    if bad.any():
        row, place = (int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"features must be finite, got {x[row, place]} for {names[place]} in row {row + 1}"
        )
    return names, x if x.shape[1] else None


def arm_features(frame: "pandas.DataFrame | None", arms: tuple[str, ...]) -> Array | None:
    """Return the features of every arm, of shape (n, K, d), if the columns are ``x:ARM:NAME``.

    They are 0 for an arm that is not on offer.
    """
    columns = [] if frame is None else [str(one) for one in frame.columns]
    given = [name for name in columns if name.startswith(_FEATURE)]
    own = [[name for name in given if name.startswith(f"{_FEATURE}{arm}:")] for arm in arms]
    dim = len(own[0])
    ok = dim > 0 and all(len(some) == dim for some in own) and len(given) == dim * len(arms)
    if not ok or frame is None:
        return None
    found = array("features", frame[[name for some in own for name in some]].to_numpy())
    return np.asarray(np.nan_to_num(found, nan=0.0).reshape(len(frame), len(arms), dim))


def distinct(vectors: Array, arms: tuple[str, ...]) -> tuple[tuple[str, ...], Array | None]:
    """Return names and values of what varies in the features of arms, each of them once."""
    flat = vectors.reshape(len(vectors), -1)
    dim = vectors.shape[2]
    some = np.flatnonzero((flat != flat[0]).any(axis=0))
    if not len(some):
        return (), None
    _, first = np.unique(flat[:, some], axis=1, return_index=True)
    places = some[np.sort(first)]
    return tuple(f"{arms[place // dim]}:{place % dim}" for place in places), flat[:, places]


def varies(propensity: Array, arm: Index, group: NDArray[Any] | None) -> bool:
    """Return whether the propensity of an arm differs between rows of the same group."""
    return not np.allclose(
        constant(propensity, arm, int(arm.max()) + 1, group)[np.arange(len(arm)), arm],
        propensity,
        rtol=ROUNDING,
        atol=0,
    )


def constant(propensity: Array, arm: Index, k: int, group: NDArray[Any] | None) -> Array:
    """Return the propensities of all arms, if each has one for each group; zero if never seen."""
    strata = np.zeros(len(arm), np.int64) if group is None else numbered("group", group, len(arm))
    assert strata is not None
    cells = np.zeros((int(strata.max()) + 1, k))
    cells[strata, arm] = propensity
    return np.asarray(cells[strata])
