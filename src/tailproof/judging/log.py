"""What was decided and earned: the rows that are judged."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import array, number, require
from tailproof.typing import Array, Index

if TYPE_CHECKING:
    import pandas

__all__ = ["Log"]

_ROUNDING = 1e-6
"""Probabilities that were written to a file add up to one up to this."""
_UNITS = ("unit", "decision", "hold")
_GROUPS = 20
"""The most groups that a model tells apart."""
_OPEN = ("pending", "kept")
"""The fates of rows that wait for a reward, or for others of the same decision."""
_TIMES = ("at", "asked")


@dataclass(frozen=True, eq=False, kw_only=True)
class Log:
    """A log of decisions and their rewards, in the order of time. `Log.of` makes and checks one.

    Attributes
    ----------
    arms : tuple of str
        The names of the K arms.
    arm : array of shape (n,)
        The number of the chosen arm.
    reward : array of shape (n,)
        NaN if it is not known.
    propensity : array of shape (n,)
        The probability with which the chosen arm was chosen.
    propensities : array of shape (n, K), optional
        The same for every arm, if it was given or is the same in all rows of a group.
    estimated : bool
        Whether propensities were estimated from counts.
    offered : array of shape (n, K), optional
        Which arms could have been chosen; all if it is None.
    features : array of shape (n, d), optional
    names : tuple of str
        The names of the features.
    group : array of shape (n,), optional
        The group of each visitor, as text.
    unit : array of shape (n,), optional
        Rows with the same number were decided together.
    adaptive : bool, optional
        Whether propensities depend on earlier rewards; None if that is not known.
    floor : float, optional
        The least propensity that an offered arm can have.

    Examples
    --------
    >>> log = Log.of(arm=["A", "B", "A"], reward=[0, 3.5, np.nan], propensity=[0.8, 0.2, 0.8])
    >>> log.arms, log.arm.tolist(), log.unknown
    (('A', 'B'), [0, 1, 0], 0.3333333333333333)

    Source: our own. Differences: none.
    """

    arms: tuple[str, ...]
    arm: Index
    reward: Array
    propensity: Array
    propensities: Array | None = None
    estimated: bool = False
    offered: NDArray[np.bool_] | None = None
    features: Array | None = None
    names: tuple[str, ...] = ()
    group: NDArray[Any] | None = None
    unit: Index | None = None
    adaptive: bool | None = None
    floor: float | None = None

    @classmethod
    def of(
        cls,
        table: Any = None,
        *,
        arm: Any = "arm",
        reward: Any = "reward",
        propensity: Any = "propensity",
        propensities: Any = None,
        arms: Sequence[Any] | None = None,
        offered: Any = None,
        features: Any = None,
        group: Any = "group",
        unit: Any = None,
        at: Any = None,
        wait: float | None = None,
        silence: float | None = None,
        adaptive: bool | None = None,
        floor: float | None = None,
    ) -> "Log":
        """Return a checked log, from a table or from arrays.

        Parameters
        ----------
        table : DataFrame, journal or Log, optional
            A table with a row for each decision, or anything that has one: `tailproof.live.read`.
            A journal is adaptive. Left out if all columns are given as arrays.
        arm, reward, propensity, group, unit, at : str or array
            The name of a column, or the values. Where a name is a default, the column may be
            missing, except for ``arm`` and ``reward``. Without propensities they are estimated
            from counts, within each group if there are groups; this needs a log in which arms
            were drawn at random. Units are rows that were decided together: all rewards of one
            decision, or of one visitor (default: a column unit, decision or hold). ``at`` is the
            time (default: a column at or asked); rows are sorted by it.
        propensities : array of shape (n, K) or str, optional
            Of every arm, in the order of ``arms``; or a column of mappings. Default: the columns
            ``p:NAME``, a column ``propensities``, or those of a journal (``offer``, ``shares``).
        arms : sequence, optional
            The names of all arms; default: those that occur.
        offered : array of bool of shape (n, K), optional
            Default: all arms but those whose propensity is missing (NaN) in a row.
        features : sequence of str or array of shape (n, d), optional
            Columns of numbers. Default: the columns ``x:NAME``.
        wait : float, optional
            Leave out all rows that are younger than this, known or not, in the unit of ``at``
            (seconds if it is a date): quick rewards must not stand for slow ones.
        silence : float, optional
            The reward of a row that has none; default: that of the journal, if it has one. If
            there is a column ``fate``, all rows whose time is not over are then left out, known
            or not: those that are "pending" or "kept".
        adaptive, floor
            See `Log`. By default a log with propensities that vary for one arm and group may be
            adaptive, and is treated with care.
        """
        if isinstance(table, Log):
            return table
        journal = table is not None and not hasattr(table, "columns")
        frame = _frame(table)

        def column(name: Any, option: str, *, needed: bool = False) -> Any:
            if not isinstance(name, str):
                return name
            if frame is not None and name in frame.columns:
                return frame[name].to_numpy()
            if needed or (frame is not None and name != option):
                known = "none" if frame is None else ", ".join(map(str, frame.columns))
                raise ValueError(f"log has no column {name!r} for {option}; its columns: {known}")
            return None

        def first(name: Any, option: str, defaults: Sequence[str]) -> Any:
            if name is not None or frame is None:
                return column(name, option)
            return column(next((own for own in defaults if own in frame.columns), None), option)

        rewards = array("reward", column(reward, "reward", needed=True)).astype(np.float64)
        n = len(rewards)
        if rewards.ndim != 1:
            raise ValueError(f"reward must have one axis, got shape {rewards.shape}")
        if not n:
            raise ValueError("log has no rows: there is nothing to judge")
        known, codes = _codes(column(arm, "arm", needed=True), arms, n)
        silence = getattr(table, "silence", None) if silence is None else silence
        if silence is not None:
            rewards = np.where(np.isnan(rewards), number("silence", silence), rewards)
        full, possible = _all_propensities(propensities, frame, known, n)
        groups = _text("group", column(group, "group"), n)
        own, full, estimated = _propensity(
            column(propensity, "propensity"), full, codes, len(known), groups
        )
        if estimated and (adaptive or journal):
            raise ValueError(
                "propensities are needed: this log is adaptive, so counts cannot stand for them"
            )
        possible = possible if offered is None else np.asarray(offered, dtype=np.bool_)
        if possible is not None:
            require(
                possible.shape == (n, len(known)),
                "offered",
                f"of shape {n, len(known)}",
                possible.shape,
            )
            if not possible[np.arange(n), codes].all():
                row = int((~possible[np.arange(n), codes]).argmax()) + 1
                raise ValueError(f"row {row} chose {known[codes[row - 1]]}, which was not offered")
        names, contexts = _features(features, frame, n)
        if adaptive is None:
            adaptive = True if journal else None if _varies(own, codes, groups) else False
        if full is None and adaptive is False:
            full = _constant(own, codes, len(known), groups)
        log = cls(
            arms=known,
            arm=codes,
            reward=rewards,
            propensity=own,
            propensities=full,
            estimated=estimated,
            offered=possible,
            features=contexts,
            names=names,
            group=groups,
            unit=_numbered("unit", first(unit, "unit", _UNITS), n),
            adaptive=adaptive,
            floor=None if floor is None else number("floor", floor, above=0, at_most=1),
        )
        if log.floor is not None and own.min() < log.floor * (1 - _ROUNDING):
            raise ValueError(f"floor is {floor:g}, but a propensity is {own.min():g}")
        times = first(at, "at", _TIMES)
        fate = column("fate", "fate")
        if silence is not None and fate is not None:  # quick rewards would stand for slow ones
            closed = np.flatnonzero(~np.isin(fate.astype(str), _OPEN))
            if not len(closed):
                raise ValueError("every row is still waiting for its reward: nothing to judge")
            log, times = log.take(closed), None if times is None else np.asarray(times)[closed]
        return log._in_time(times, wait)

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.arm)

    @property
    def unknown(self) -> float:
        """The share of rows whose reward is not known."""
        return float(np.isnan(self.reward).mean())

    @cached_property
    def contexts(self) -> tuple[tuple[str, ...], Array | None]:
        """Names and values of what models see: features, and whether a visitor is of a group."""
        parts = [] if self.features is None else [self.features]
        names = self.names
        if self.group is not None:
            known, place = np.unique(self.group.astype(str), return_inverse=True)
            often = np.argsort(-np.bincount(place), kind="stable")[:_GROUPS]
            some = often[: len(known) - 1]  # the last one is all others
            parts.append((place[:, None] == some).astype(np.float64))
            names += tuple(f"group {known[i]}" for i in some)
        return names, np.concatenate(parts, axis=1) if parts else None

    @property
    def samples(self) -> list[Array]:
        """The known rewards of each arm that has some."""
        known = ~np.isnan(self.reward)
        found = [self.reward[known & (self.arm == a)] for a in range(len(self.arms))]
        return [sample for sample in found if len(sample)]

    def take(self, rows: Any) -> "Log":
        """Return the log with some of its rows."""
        parts = ("arm", "reward", "propensity", "propensities", "offered", "features", "group")
        found: dict[str, Any] = {
            name: value[rows] for name in parts if (value := getattr(self, name)) is not None
        }
        if self.unit is not None:
            found["unit"] = _numbered("unit", self.unit[rows], len(found["arm"]))
        return replace(self, **found)

    def filled(self, reward: Array) -> "Log":
        """Return the log with other rewards."""
        return replace(self, reward=reward)

    def _in_time(self, at: Any, wait: float | None) -> "Log":
        if at is None:
            if wait is not None:
                raise ValueError("wait needs the time of each row: pass at=")
            return self
        times = np.asarray(at)
        require(times.shape == (self.n,), "at", f"of shape {(self.n,)}", times.shape)
        if times.dtype.kind == "M":
            times = times.astype("datetime64[us]").astype(np.int64) / 1e6
        times = array("at", times)
        require(not np.isnan(times).any(), "at", "a time in every row", math.nan)
        rows = np.argsort(times, kind="stable")
        if wait is not None:
            rows = rows[times[rows] <= times.max() - number("wait", wait, at_least=0)]
            if not len(rows):
                raise ValueError(f"wait={wait:g} leaves no row: the log is younger than that")
        return self if len(rows) == self.n and (np.diff(rows) > 0).all() else self.take(rows)


def _frame(table: Any) -> "pandas.DataFrame | None":
    """Return the table, or that of a journal."""
    if table is None or hasattr(table, "columns"):
        return table
    if callable(getattr(table, "to_frame", None)):
        return table.to_frame()
    if hasattr(getattr(table, "frame", None), "columns"):
        return table.frame
    raise ValueError(f"log must be a table, a journal or a Log, got {table!r}")


def _codes(given: Any, arms: Sequence[Any] | None, n: int) -> tuple[tuple[str, ...], Index]:
    """Return the names of the arms and the number of each row's."""
    if given is None:
        raise ValueError("log has no arms: pass arm=")
    names = _text("arm", given, n)
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


def _text(option: str, given: Any, n: int) -> NDArray[Any] | None:
    """Return a column as text; None if there is none."""
    if given is None:
        return None
    values = np.asarray(given, dtype=object)
    require(values.shape == (n,), option, f"of shape {(n,)}", values.shape)
    missing = np.fromiter((v is None or v != v for v in values), dtype=np.bool_, count=n)
    if missing.any():
        raise ValueError(f"{option} is missing in row {int(missing.argmax()) + 1}")
    if np.asarray(given).dtype.kind in "US":
        return values
    return np.array([str(value) for value in values], dtype=object)


def _numbered(option: str, given: Any, n: int) -> Index | None:
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


def _all_propensities(
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
            pairs = zip(frame["offer"], frame["shares"], strict=True)
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
    ok = bool(np.all((full >= 0) & (full <= 1 + _ROUNDING)))
    ok = ok and bool(np.all(np.abs(total - 1) <= _ROUNDING * max(len(arms), 10)))
    if not ok:
        bad = int((~(np.abs(total - 1) <= _ROUNDING * max(len(arms), 10))).argmax())
        raise ValueError(
            f"propensities must be at least 0 and add up to 1, got {full[bad].tolist()} "
            f"in row {bad + 1}"
        )
    return full, None if offered.all() else offered


def _propensity(
    given: Any, full: Array | None, arm: Index, k: int, group: NDArray[Any] | None
) -> tuple[Array, Array | None, bool]:
    """Return the propensity of the chosen arms, those of all if known, and if it is estimated."""
    n = len(arm)
    if given is None and full is None:
        stratum = _numbered("group", group, n) if group is not None else np.zeros(n, np.int64)
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
    bad = ~((own > 0) & (own <= 1 + _ROUNDING))
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


def _features(
    given: Any, frame: "pandas.DataFrame | None", n: int
) -> tuple[tuple[str, ...], Array | None]:
    """Return the names of the features and their values."""
    if given is None and frame is not None:
        given = [name for name in frame.columns if str(name).startswith("x:")] or None
    if given is None:
        return (), None
    if isinstance(given, Sequence) and len(given) and isinstance(given[0], str):
        if frame is None or any(name not in frame.columns for name in given):
            missing = [name for name in given if frame is None or name not in frame.columns]
            raise ValueError(f"log has no column {missing[0]!r} for features")
        names = tuple(name.removeprefix("x:") for name in given)
        x = array("features", frame[list(given)].to_numpy())
    else:
        x = array("features", given)
        names = tuple(f"x{i}" for i in range(x.shape[-1]))
    require(x.ndim == 2 and len(x) == n, "features", f"of shape ({n}, d)", x.shape)
    bad = ~np.isfinite(x)
    if bad.any():
        row, place = (int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"features must be finite, got {x[row, place]} for {names[place]} in row {row + 1}"
        )
    return names, x if x.shape[1] else None


def _varies(propensity: Array, arm: Index, group: NDArray[Any] | None) -> bool:
    """Return whether the propensity of an arm differs between rows of the same group."""
    return not np.allclose(
        _constant(propensity, arm, int(arm.max()) + 1, group)[np.arange(len(arm)), arm],
        propensity,
        rtol=_ROUNDING,
        atol=0,
    )


def _constant(propensity: Array, arm: Index, k: int, group: NDArray[Any] | None) -> Array:
    """Return the propensities of all arms, if each has one for each group; zero if never seen."""
    strata = np.zeros(len(arm), np.int64) if group is None else _numbered("group", group, len(arm))
    assert strata is not None
    cells = np.zeros((int(strata.max()) + 1, k))
    cells[strata, arm] = propensity
    return np.asarray(cells[strata])
