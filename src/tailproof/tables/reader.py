"""From the columns of a source to `Records`: every row is checked, or refused by its line."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import array, number, require
from tailproof.formatting import natural_key
from tailproof.tables import cells, moments
from tailproof.tables.cells import Column, Decimal, Spelling
from tailproof.tables.checked import Records
from tailproof.tables.columns import (
    ROUNDING,
    by_stratum,
    check_all,
    check_chosen,
    distinct,
    feature_names,
    listed,
    of_mappings,
    varies,
)
from tailproof.tables.how import Reading
from tailproof.tables.refusals import Refusals
from tailproof.tables.sources import Arrays, Source, named
from tailproof.typing import Array, Index

__all__ = ["ALSO", "Reader", "finished"]

ALSO = {"unit": ("decision", "hold"), "time": ("at", "asked"), "status": ("fate",)}
"""Other names that a column may have if none is asked for."""
_FAR = 20 * 366 * 86_400.0
"""A time further than so many seconds from the usual time is wrong, such as 1970 or 9999."""
_OPEN = ("pending", "kept")
"""The status of a row that still waits for its reward."""

Flags = NDArray[np.bool_]


class Reader:
    """Reads one source into `Records`.

    Parameters
    ----------
    source : Source
    asked : mapping
        The name of a column, or an array, for each option; None: it is not used.
    features : sequence of str or array, optional
    reading : Reading
        How, see `tailproof.Reading`.
    also : mapping, optional
        Other names that a column may have if none is asked for.
    """

    def __init__(
        self,
        source: Source,
        asked: dict[str, Any],
        features: Any,
        reading: Reading,
        also: Mapping[str, Sequence[str]] = ALSO,
    ) -> None:
        arms = reading.get("arms")
        self.source, self.features, self.also = source, features, also
        self.arms = None if arms is None else tuple(map(str, arms))
        self.decimal: Decimal | None = reading.get("decimal")
        self.spelling: Spelling = reading.get("spelling", "ask")
        self.zone = reading.get("zone")
        self.complete, self.offered = reading.get("missing") == "refuse", reading.get("offered")
        asked = asked | {"status": reading.get("status", "status")}
        self.shares = asked["propensities"] = reading.get("propensities")
        if source.journal and isinstance(asked["group"], str) and asked["group"] == "group":
            asked["group"] = None  # in a journal "group" says who chose the arm
        self.refusals = Refusals(source.where, skip=reading.get("skip_bad", False))
        self.wanted = self._wanted(asked)
        self.columns = self._load(asked)
        self.notes: list[str] = []
        self.n = len(next(iter(self.columns.values()), ()))
        for option, column in self.columns.items():
            require(len(column) == self.n, option, f"of shape {(self.n,)}", (len(column),))
        if not self.n:
            raise ValueError(f"{source.name} has no rows")

    def _wanted(self, asked: dict[str, Any]) -> dict[str, str]:
        """Return the column of each option; a default that is not there is left out."""
        names = {option: name for option, name in asked.items() if isinstance(name, str)}
        self.source.prefer([name for option, name in names.items() if name != option])
        known, column_of = self.source.names, {}
        for option, name in names.items():
            defaults = [name, *(self.also.get(option, ()) if name == option else ())]
            if option == "status" == name and not self.source.journal:
                defaults = ["fate"]  # the status of an order is another matter
            there = named(defaults, known, exact=name != option)
            needed = name != option or (option == "reward" and not isinstance(self.source, Arrays))
            if there is not None or needed:
                column_of[option] = there or name
        also = ["propensities", *(["offer", "shares"] if self.source.journal else [])]
        column_of |= {name: name for name in also if name in known and asked.get(name) is None}
        self._check_twice(column_of)
        columns = [name for name in self.source.names if name.startswith("p:")]
        if self.features is None:
            columns += [name for name in self.source.names if name.startswith("x:")]
        elif _are_names(self.features):
            columns += self.features
        return column_of | {f"features[{name}]": name for name in columns}

    def _check_twice(self, column_of: dict[str, str]) -> None:
        """Raise ``ValueError`` if two options, one of which takes numbers, name the same column."""
        features = self.features if _are_names(self.features) else ()
        named = [*column_of.items(), *(("features", name) for name in features)]
        for place, (option, name) in enumerate(named):
            for other, same in named[place + 1 :]:
                if same == name and {"reward", "features"} & {option, other}:
                    raise ValueError(f"{option} and {other} name the same column, {name}")

    def _load(self, asked: dict[str, Any]) -> dict[str, Column]:
        self.source.check(self.wanted)
        loaded = self.source.load(list(dict.fromkeys(self.wanted.values())), self.refusals)
        columns = {option: loaded[name] for option, name in self.wanted.items()}
        for option, values in asked.items():
            if values is not None and not isinstance(values, str) and option != "propensities":
                given = values if hasattr(values, "dtype") else np.array(values, dtype=object)
                require(np.ndim(given) == 1, option, "an array of one axis", np.shape(given))
                columns[option] = Column.of(np.asarray(given))
        if isinstance(self.source, Arrays) and "reward" not in columns:
            raise ValueError("reward is needed: pass a table, or reward= as an array")
        return columns

    def read(self) -> Records:
        """Return the rows that can be read."""
        arms, arm = self._arms()
        unit, time = self._codes("unit"), self._time()
        self._check_ids()
        chosen, full, possible = self._propensities(arms, arm)
        possible = self._offered(possible if self.offered is None else self.offered, arms, arm)
        names, features, vectors = self._features(arms)
        records = Records(
            arms=arms,
            arm=arm,
            reward=self._reward(),
            unit=unit,
            time=time,
            propensity=chosen,
            propensities=full,
            offered=possible,
            features=features,
            names=names,
            vectors=vectors,
            group=self._texts("group"),
            status=self._texts("status"),
            weight=self._number("weight", "count") if "weight" in self.columns else None,
        )
        self.kept = self.refusals.kept(self.n)
        if len(self.kept) < self.n:
            records = records.take(self.kept)
        return replace(records, notes=tuple(filter(None, [self.refusals.sentence, *self.notes])))

    def _reward(self) -> Array:
        """Return the rewards; zeros if there are none to read."""
        if "reward" not in self.columns:
            return np.zeros(self.n)
        name = self._name("reward")
        rewards = cells.numbers(self.columns["reward"], name, self.refusals, self.decimal)
        if self.complete and "status" not in self.columns:  # which says why there is none
            missing = np.flatnonzero(np.isnan(rewards))
            self.refusals.rows(missing, f"column {name} has no reward")
        return rewards + 0.0  # so that zeros have no sign

    def _time(self) -> Array | None:
        if "time" not in self.columns:
            return None
        name = self._name("time")
        self.moments = moments.times(self.columns["time"], name, self.refusals, self.zone)
        times = self.moments.seconds
        self.notes.append(self.moments.note)
        self.refusals.rows(np.flatnonzero(np.isnan(times)), f"column {name} has no time")
        usual = float(np.nanmedian(times)) if len(times) else 0.0
        with np.errstate(invalid="ignore"):
            far = np.flatnonzero((np.abs(times - usual) > _FAR) & (usual > _FAR))
        reason = f"column {name} has a time 20 years from the others"
        self.refusals.rows(far, reason)
        return times

    def _name(self, option: str) -> str:
        """Return the name of the column of an option."""
        return self.wanted.get(option, option)

    def _labels(self, option: str, spelling: Spelling = "keep") -> cells.Labels | None:
        if option not in self.columns:
            return None
        labels = cells.labels(self.columns[option], self._name(option), spelling)
        self.notes.append(labels.merged)
        return labels

    def _arms(self) -> tuple[tuple[str, ...], Index]:
        """Return the names of the arms, in natural order unless given, and each row's."""
        labels = self._labels("arm", self.spelling)
        if labels is None:
            return ("",), np.zeros(self.n, np.int64)
        column = f"column {self._name('arm')}"
        self.refusals.rows(np.flatnonzero(labels.codes < 0), f"{column} names no arm")
        arms = self.arms or tuple(self._offers(labels.names))
        require(len(set(arms)) == len(arms) > 0, "arms", "names that differ", list(arms))
        number_of = {name: i for i, name in enumerate(arms)}
        place = np.array([*(number_of.get(name, -1) for name in labels.names), -1])
        unknown = np.flatnonzero((place[labels.codes] < 0) & (labels.codes >= 0))
        self.refusals.refuse(
            {int(row): repr(labels.names[labels.codes[row]]) for row in unknown},
            f"{column} must be one of {', '.join(arms)}, got",
        )
        return arms, np.maximum(place[labels.codes], 0)

    def _offers(self, seen: Sequence[str]) -> list[str]:
        """Return the arms that were seen, or offered by a journal, in natural order."""
        names = set(seen)
        if "offer" in self.columns:
            names.update(*map(tuple, listed(self.columns["offer"])))
        return sorted(names, key=natural_key)

    def _texts(self, option: str) -> NDArray[Any] | None:
        """Return a column as text, empty where it is missing; None if it is missing everywhere."""
        labels = self._labels(option, self.spelling if option == "group" else "keep")
        if labels is None or (labels.codes < 0).all():
            return None
        return np.array([*labels.names, ""], dtype=object)[labels.codes]

    def _codes(self, option: str) -> Index | None:
        """Return the number of each row's unit, in the order of their first rows."""
        if option not in self.columns:
            return None
        codes = self.columns[option].units(self._name(option))
        missing = np.flatnonzero(codes < 0)
        self.refusals.rows(missing, f"column {self._name(option)} names no {option}")
        return codes

    @cached_property
    def units(self) -> NDArray[Any]:
        """The name of each row's unit."""
        labels = cells.labels(self.columns["unit"], "unit")
        return np.array([*labels.names, ""], dtype=object)[labels.codes]

    def _check_ids(self) -> None:
        """Refuse the second and later rows of an id."""
        ids = self._labels("id")
        if ids is None:
            return
        _, first = np.unique(ids.codes, return_index=True)
        again = np.setdiff1d(np.flatnonzero(ids.codes >= 0), first)
        first_row = dict(zip(ids.codes[first].tolist(), first.tolist(), strict=True))
        self.refusals.refuse(
            {
                int(row): f"{ids.names[code]!r} ({self.source.where(first_row[code])})"
                for row, code in zip(again, ids.codes[again].tolist(), strict=True)
            },
            f"column {self._name('id')} repeats",
        )

    def _number(self, option: str, reason: str) -> Array:
        """Return a column of numbers, none of which is missing."""
        name = self._name(option)
        values = cells.numbers(self.columns[option], name, self.refusals, self.decimal)
        bad = self.columns[option].blank
        self.refusals.rows(np.flatnonzero(bad), f"column {name} has no {reason}")
        return values

    def _propensities(
        self, arms: tuple[str, ...], arm: Index
    ) -> tuple[Array | None, Array | None, Flags | None]:
        """Return propensities of the chosen arm and of all arms, and which were offered."""
        full, possible = self._of_all(arms), None
        if full is not None:
            full, possible = check_all(full, arms, self.n, self.refusals)
        elif "offer" in self.columns:  # a journal: units that came back have no propensities
            possible = self._on_offer(arms)
        if "propensity" in self.columns:
            chosen = self._number("propensity", "propensity")
        elif full is not None:
            chosen = full[np.arange(self.n), arm]
        else:
            return None, None, None
        return check_chosen(chosen, full, arm, self.refusals), full, possible

    def _on_offer(self, arms: tuple[str, ...]) -> Flags | None:
        """Return which arms the offers of a journal have; None if each has all."""
        offers = listed(self.columns["offer"])
        kinds = {tuple(offer): np.isin(arms, offer) for offer in offers}
        offered = np.array([kinds[tuple(offer)] for offer in offers], dtype=np.bool_)
        return None if offered.all() else offered

    def _of_all(self, arms: tuple[str, ...]) -> Array | None:
        """Return the propensities of all arms as they were given, NaN where there is none."""
        if self.shares is not None and not isinstance(self.shares, str):
            return of_mappings(self.shares, arms)
        keys = [f"features[p:{name}]" for name in arms]
        if self.shares is None and any(key in self.columns for key in keys):
            missing = np.full(self.n, np.nan)
            return np.column_stack(
                [
                    cells.numbers(self.columns[key], key[9:-1], self.refusals, self.decimal)
                    if key in self.columns
                    else missing
                    for key in keys
                ]
            )
        if "propensities" in self.columns:
            return of_mappings(listed(self.columns["propensities"]), arms)
        if {"offer", "shares"} <= self.columns.keys():
            shares = listed(self.columns["shares"])
            if any(row is None for row in shares):
                return None
            pairs = zip(listed(self.columns["offer"]), shares, strict=True)
            return of_mappings([dict(zip(*pair, strict=True)) for pair in pairs], arms)
        return None

    def _offered(self, given: Any, arms: tuple[str, ...], arm: Index) -> Flags | None:
        if given is None:
            return None
        offered: Flags = np.asarray(given, dtype=np.bool_)
        shape = (self.n, len(arms))
        require(offered.shape == shape, "offered", f"of shape {shape}", offered.shape)
        without = np.flatnonzero(~offered[np.arange(self.n), arm])
        chosen = {int(row): arms[arm[row]] for row in without}
        self.refusals.refuse(chosen, "the arm was not offered:")
        return offered

    def _features(
        self, arms: tuple[str, ...]
    ) -> tuple[tuple[str, ...], Array | None, Array | None]:
        """Return names and values of the features; of every arm, if each has its own."""
        given = self.features
        if given is not None and not _are_names(given):
            x = array("features", given)
            ok = x.ndim == 2 and len(x) == self.n
            require(ok, "features", f"of shape ({self.n}, d)", x.shape)
            names = tuple(map(str, getattr(given, "columns", ()))) or tuple(
                f"x{i}" for i in range(x.shape[-1])
            )
            return names, self._finite(x, names), None
        chosen, dim = (given, 0) if given else feature_names(self.source.names, arms)
        if not chosen:
            return (), None, None
        if dim:  # 0 for an arm that is not on offer
            columns = [self.columns[f"features[{name}]"] for name in chosen]
            read = [
                cells.numbers(x, name, self.refusals)
                for x, name in zip(columns, chosen, strict=True)
            ]
            vectors = np.nan_to_num(np.column_stack(read), nan=0.0).reshape(self.n, len(arms), dim)
            return *distinct(vectors, arms), vectors
        values = [self._number(f"features[{name}]", "number") for name in chosen]
        names = tuple(name.removeprefix("x:") for name in chosen)
        return names, self._finite(np.column_stack(values), names), None

    def _finite(self, x: Array, names: tuple[str, ...]) -> Array | None:
        bad = ~np.isfinite(x)
        shown = {}
        for row in np.flatnonzero(bad.any(axis=1)).tolist():
            at = int(bad[row].argmax())
            shown[row] = f"{x[row, at]} for {names[at]}"
        self.refusals.refuse(shown, "features must be finite, got")
        return x if x.shape[1] else None


def _are_names(features: Any) -> bool:
    return isinstance(features, Sequence) and all(isinstance(name, str) for name in features)


def finished(records: Records, source: Source, reading: Reading) -> Records:
    """Return the records in the order of time, with rewards of silence.

    A journal is adaptive. Any table may be adaptive in which the propensity of an arm varies within
    a group.
    """
    adaptive, floor = reading.get("adaptive"), reading.get("floor")
    records = _with_silence(records, source, reading.get("silence"))
    if adaptive is None and source.journal:
        adaptive = True
    elif adaptive is None and records.propensity is not None:
        adaptive = None if varies(records.propensity, records.arm, records.group) else False
    if records.propensities is None and records.propensity is not None and adaptive is False:
        assignment = (records.propensity, records.arm, len(records.arms), records.group)
        records = replace(records, propensities=by_stratum(*assignment))
    floor = None if floor is None else number("floor", floor, above=0, at_most=1)
    if floor is not None and records.propensity is not None:
        least = float(records.propensity.min())
        if least < floor * (1 - ROUNDING):
            raise ValueError(f"floor is {floor:g}, but a propensity is {least:g}")
    return _in_time(replace(records, adaptive=adaptive, floor=floor), reading.get("wait"))


def _with_silence(records: Records, source: Source, silence: float | None) -> Records:
    """Return the records with a reward of silence, and without rows that still wait for theirs.

    With the waiting rows, quick rewards would stand for slow ones.
    """
    status, counts = records.status, source.silence if silence is None else silence
    if counts is not None:
        blank = np.isnan(records.reward)
        if silence is None and status is not None:
            blank &= status != "lost"  # a lost reward stays unknown
        records = records.filled(np.where(blank, number("silence", counts), records.reward))
    if status is None or (counts is None and "silent" not in status):
        return records
    closed = np.flatnonzero(~np.isin(status.astype(str), _OPEN))
    if not len(closed):
        raise ValueError("every row is still waiting for its reward: nothing to judge")
    return records.take(closed)


def _in_time(records: Records, wait: float | None) -> Records:
    if records.time is None:
        if wait is not None:
            raise ValueError("wait needs the time of each row: pass time=")
        return records
    rows = np.argsort(records.time, kind="stable")
    if wait is not None:
        latest = records.time.max() - number("wait", wait, at_least=0)
        rows = rows[records.time[rows] <= latest]
        if not len(rows):
            raise ValueError(f"wait={wait:g} leaves no row: the table is younger than that")
    return records if len(rows) == records.n and (np.diff(rows) > 0).all() else records.take(rows)
