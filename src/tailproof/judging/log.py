"""What was decided and earned: the rows that are judged."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import array, number, require
from tailproof.judging.columns import (
    ROUNDING,
    all_propensities,
    arm_features,
    arm_numbers,
    constant,
    distinct,
    feature_table,
    listed,
    numbered,
    own_propensity,
    text,
    varies,
)
from tailproof.typing import Array, Index

if TYPE_CHECKING:
    import pandas

__all__ = ["Log"]

_UNITS = ("unit", "decision", "hold")
_GROUPS = 20
"""The most groups that a model tells apart."""
_OPEN = ("pending", "kept")
"""The fates of rows that wait for a reward, or for others of the same decision."""
_TIMES = ("at", "asked")
_EXPORT = {"ticket", "arm", "ends", "shares"}
"""Columns that together are those of an exported journal."""


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
    vectors : array of shape (n, K, d), optional
        The features of each arm, if arms have their own; `features` are then what varies in them.
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
    vectors: Array | None = None
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
            A journal, and a table that was exported from one, is adaptive; its column group says
            who chose, so that it is not a group of visitors; its imported rows are left out if they
            have no propensity. Left out if all columns are given as arrays.
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
            Columns of numbers. Default: the columns ``x:NAME``, or ``x:ARM:NAME`` if every arm
            has its own.
        wait : float, optional
            Leave out all rows that are younger than this, known or not, in the unit of ``at``
            (seconds if it is a date): quick rewards must not stand for slow ones.
        silence : float, optional
            The reward of a row that has none. If silence is a reward, as it may be in a journal,
            and there is a column ``fate``, all rows whose time is not over are left out, known or
            not: those that are "pending" or "kept".
        adaptive, floor
            See `Log`. By default a log with propensities that vary for one arm and group may be
            adaptive, and is treated with care.
        """
        if isinstance(table, Log):
            return table
        frame = _frame(table)
        journal = table is not None and not hasattr(table, "columns")
        if frame is not None and (journal or set(frame.columns) >= _EXPORT):
            journal, frame = True, _of_journal(frame)
            group = None if isinstance(group, str) and group == "group" else group
            if arms is None and "offer" in frame.columns:
                arms = sorted({*frame["arm"], *(name for own in frame["offer"] for name in own)})

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
        known, codes = arm_numbers(column(arm, "arm", needed=True), arms, n)
        fate = column(_status(frame), "status")
        given, silence = silence, getattr(table, "silence", None) if silence is None else silence
        if silence is not None:
            blank = np.isnan(rewards)
            if given is None and fate is not None:
                blank &= fate != "lost"  # of what was given up, nothing is known
            rewards = np.where(blank, number("silence", silence), rewards)
        ends = silence is not None or (fate is not None and "silent" in fate)
        full, possible = all_propensities(propensities, frame, known, n)
        groups = text("group", column(group, "group"), n)
        own, full, estimated = own_propensity(
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
        vectors = arm_features(frame, known) if features is None else None
        if vectors is None:
            names, contexts = feature_table(features, frame, n)
        else:
            names, contexts = distinct(vectors, known)
        if adaptive is None:
            adaptive = True if journal else None if varies(own, codes, groups) else False
        if full is None and adaptive is False:
            full = constant(own, codes, len(known), groups)
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
            vectors=vectors,
            group=groups,
            unit=numbered("unit", first(unit, "unit", _UNITS), n),
            adaptive=adaptive,
            floor=None if floor is None else number("floor", floor, above=0, at_most=1),
        )
        if log.floor is not None and own.min() < log.floor * (1 - ROUNDING):
            raise ValueError(f"floor is {floor:g}, but a propensity is {own.min():g}")
        times = first(at, "at", _TIMES)
        if ends and fate is not None:  # quick rewards would stand for slow ones
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
        own = ("arm", "reward", "propensity", "group")
        parts = (*own, "propensities", "offered", "features", "vectors")
        found: dict[str, Any] = {
            name: value[rows]
            for name in (*parts, "group")
            if (value := getattr(self, name)) is not None
        }
        if self.unit is not None:
            found["unit"] = numbered("unit", self.unit[rows], len(found["arm"]))
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
        if times.dtype.kind in "OUST":  # text, such as 2026-01-05T09:00:00+00:00
            import pandas

            times = pandas.to_datetime(times, utc=True, format="ISO8601").tz_localize(None)
            times = times.to_numpy()
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


def _of_journal(frame: "pandas.DataFrame") -> "pandas.DataFrame":
    """Return the table of a journal, with a unit in each row.

    Imported rows of unknown propensity are left out, and tickets that were cancelled.
    """
    status = _status(frame)
    if status is not None:
        frame = frame[frame[status] != "cancelled"]
    if "propensity" in frame.columns and "group" in frame.columns:
        frame = frame[frame["propensity"].notna() | (frame["group"] != "history")]
    found = frame.copy(deep=False)
    if "offer" in frame.columns:
        found["offer"] = listed(frame["offer"])
        escaped = frame["arm"].astype(str).str.startswith("'")  # a formula for spreadsheets
        if escaped.any():
            bare = frame["arm"].astype(str).str[1:]
            known = [arm in own for arm, own in zip(bare, found["offer"], strict=True)]
            found["arm"] = frame["arm"].where(~(escaped & np.array(known)), bare)
    if "unit" in frame.columns:
        own = frame["unit"].astype(object).where(frame["unit"].notna(), None)
        decisions = frame["hold"] if "hold" in frame.columns else range(len(frame))
        found["unit"] = [
            f"decision {decision}" if unit is None else f"unit {unit}"
            for decision, unit in zip(decisions, own, strict=True)
        ]
    return found


def _status(frame: "pandas.DataFrame | None") -> str | None:
    """Return the column that says what became of a row; "fate" in exports of 0.3."""
    names = () if frame is None else frame.columns
    return next((name for name in ("status", "fate") if name in names), None)


def _frame(table: Any) -> "pandas.DataFrame | None":
    """Return the table, or that of a journal."""
    if table is None or hasattr(table, "columns"):
        return table
    if callable(getattr(table, "to_frame", None)):
        return table.to_frame()
    if hasattr(getattr(table, "frame", None), "columns"):
        return table.frame
    raise ValueError(f"log must be a table, a journal or a Log, got {table!r}")
