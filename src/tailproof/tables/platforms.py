"""What experiment platforms export: which columns they have, and which rows are exposures."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from tailproof.tables.cells import Column, labels
from tailproof.tables.refusals import Refusals
from tailproof.tables.sources import Source
from tailproof.typing import Index

__all__ = ["NAMES", "Part", "exposures_of"]

_ARMS = (
    "variation_id",  # GrowthBook
    "variation_name",
    "experiment_group",  # Statsig
    "group_name",
    "group_id",
    "$feature_flag_response",  # PostHog
    "properties.$feature_flag_response",
)
NAMES = {
    "arm": _ARMS,
    "unit": ("unit_id", "user_id", "person_id", "distinct_id", "anonymous_id", "stable_id"),
    "time": ("timestamp", "first_exposure_utc", "first_exposure", "at"),
    "reward": (
        *("value", "revenue", "amount", "event_value"),
        *("properties.value", "properties.revenue", "properties.amount"),
    ),
}
"""What GrowthBook, Statsig and PostHog call these columns."""
_NOT_IN = ("false", "", "null", "none")
"""PostHog's answers for users who are in no arm."""
_EXPERIMENTS = (
    "experiment_id",
    "experiment_name",
    "experiment",
    "$feature_flag",
    "properties.$feature_flag",
)
_EXPOSURE = "$feature_flag_called"
"""The event of exposures in PostHog's exports, which hold all kinds of events."""
_BAG = "properties"
"""The column in which PostHog has the properties of an event, as JSON."""


class Part(Source):
    """Some rows of a source, with its properties as columns ``properties.KEY``."""

    def __init__(self, source: Source) -> None:
        self.source, self.name = source, source.name
        self.names = list(source.names)
        self.rows: Index | None = None
        self.notes: tuple[str, ...] = ()
        self._bags: list[Any] | None = None
        if _BAG in self.names:
            keys = dict.fromkeys(key for bag in self._properties() for key in bag)
            self.names += [f"{_BAG}.{key}" for key in keys]

    def _properties(self) -> list[Any]:
        """Return the properties of each row."""
        if self._bags is None:
            (column,) = self.source.load([_BAG], Refusals(self.source.where, skip=True)).values()
            if column.raw is not None:
                self._bags = [row or {} for row in column.raw]
            else:
                bags = [_bag(text) for text in column.texts]
                codes = np.full(len(column), -1) if column.codes is None else column.codes
                self._bags = [bags[code] if code >= 0 else {} for code in codes.tolist()]
        return self._bags

    def load(self, wanted: Sequence[str], refusals: Refusals) -> dict[str, Column]:
        """Return some columns of these rows."""
        stored = [name for name in wanted if name in self.source.names]
        columns = self.source.load(stored, refusals) if stored else {}
        for name in wanted:
            if name not in columns:
                key = name.removeprefix(f"{_BAG}.")
                columns[name] = Column.of([bag.get(key) for bag in self._properties()])
        if self.rows is None:
            return columns
        return {name: column.take(self.rows) for name, column in columns.items()}

    def where(self, row: int) -> str:
        """Return where the row is in the source."""
        place = self.source.where(row if self.rows is None else int(self.rows[row]))
        return f"{place} of {self.name}" if place.startswith("line") else place

    def keep(self, column: str, value: str) -> None:
        """Keep the rows that have this value in a column."""
        labels = self._labels(column)
        rows = np.flatnonzero(labels.codes == labels.names.index(value))
        self.rows = rows if self.rows is None else self.rows[rows]

    def leave_out(self) -> None:
        """Leave out users who were in no arm of a feature flag."""
        column = next((name for name in _ARMS if name in self.names), "")
        if "$feature_flag_response" not in column:
            return
        labels = self._labels(column)
        none = [name.lower() in _NOT_IN for name in labels.names] + [True]
        inside = ~np.array(none)[labels.codes]
        rows = np.arange(len(inside)) if self.rows is None else self.rows
        if not inside.all():
            count = int((~inside).sum())
            calls = "1 call" if count == 1 else f"{count:,} calls"
            verb = "was" if count == 1 else "were"
            self.notes = (f"{calls} of the feature flag without an arm {verb} left out.",)
            self.rows = rows[inside]

    def values(self, column: str) -> tuple[str, ...]:
        """Return the distinct values of a column."""
        names: tuple[str, ...] = self._labels(column).names
        return names

    def _labels(self, column: str) -> Any:
        loaded = self.load([column], Refusals(self.where, skip=True))
        return labels(loaded[column], column)


def _bag(text: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def exposures_of(source: Source, experiment: str | None) -> Part:
    """Return the rows that are exposures to one experiment; an error if there are several."""
    part = Part(source)
    if "event" in part.names and _EXPOSURE in part.values("event"):
        part.keep("event", _EXPOSURE)
    statsig = "experiment_group" in part.names  # in Statsig's exports "name" names the experiment
    columns = (*_EXPERIMENTS, *(["name"] if statsig else []))
    column = next((name for name in columns if name in part.names), None)
    if column is not None:
        _keep_one(part, column, experiment)
    elif experiment is not None:
        raise ValueError(
            f"experiment needs one of the columns {', '.join(_EXPERIMENTS)}, which "
            f"{part.name} has not"
        )
    part.leave_out()
    return part


def _keep_one(part: Part, column: str, experiment: str | None) -> None:
    """Keep the rows of one experiment."""
    values = part.values(column)
    if experiment is None and len(values) > 1:
        raise ValueError(
            f"{part.name} has {len(values)} experiments in the column {column}: pass experiment=, "
            f"one of {', '.join(values[:5])}"
        )
    if experiment is not None:
        if experiment not in values:
            raise ValueError(f"experiment must be one of {', '.join(values)}, got {experiment!r}")
        part.keep(column, experiment)
