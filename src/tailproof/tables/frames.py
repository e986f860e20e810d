"""Columns of data frames: pandas, polars, Arrow and whatever else narwhals reads."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tailproof.extras import install_command
from tailproof.tables.cells import LONG, Column, Gatherer
from tailproof.tables.refusals import Refusals
from tailproof.tables.sources import Source

if TYPE_CHECKING:
    import narwhals

__all__ = ["Frame", "arrow_table", "gathered", "is_frame"]


def is_frame(table: Any) -> bool:
    """Return whether narwhals reads it."""
    import narwhals as nw

    wrapped = nw.from_native(table, pass_through=True)
    return isinstance(wrapped, nw.DataFrame | nw.LazyFrame)


def arrow_table(table: Any) -> Any:
    """Return a table of Arrow from whatever hands its columns over in that form."""
    try:
        import pyarrow
    except ImportError:
        hint = install_command("parquet")
        raise ValueError(f"reading {type(table).__name__} requires pyarrow: {hint}") from None
    try:
        return pyarrow.table(table)
    except (TypeError, ValueError):
        raise ValueError(f"table must have columns, got {type(table).__name__}") from None


class Frame(Source):
    """A data frame."""

    def __init__(self, table: Any) -> None:
        import narwhals as nw

        if nw.dependencies.is_pandas_dataframe(table):  # whose columns may have any name
            rows = [name for name in table.index.names if name not in (None, *table.columns)]
            table = table.reset_index(level=rows)
            table = table.set_axis([str(name) for name in table.columns], axis=1)
        wrapped = nw.from_native(table)
        frame = wrapped.collect() if isinstance(wrapped, nw.LazyFrame) else wrapped
        self._frame: narwhals.DataFrame[Any] = frame
        self.names = self._frame.columns

    def load(self, wanted: Sequence[str], refusals: Refusals) -> dict[str, Column]:
        """Return some columns."""
        return {name: _column(self._frame[name]) for name in wanted}


def _column(series: "narwhals.Series[Any]") -> Column:
    gatherer = Gatherer()
    gatherer.add(_values(series), zoned=_zoned(series))
    return gatherer.column()


def gathered(wanted: Sequence[str], batches: Iterable[Any]) -> dict[str, Column]:
    """Return columns from batches of Arrow."""
    import narwhals as nw
    import pyarrow

    gatherers = {name: Gatherer() for name in wanted}
    for batch in batches:
        frame = nw.from_native(pyarrow.Table.from_batches([batch]), eager_only=True)
        for name, gatherer in gatherers.items():
            gatherer.add(_values(frame[name]), zoned=_zoned(frame[name]))
    return {name: gatherer.column() for name, gatherer in gatherers.items()}


def _zoned(series: "narwhals.Series[Any]") -> bool:
    """Return whether a column has times with a time zone."""
    return getattr(series.dtype, "time_zone", None) is not None


def _values(series: "narwhals.Series[Any]") -> Any:
    """Return numbers as an array of floats, dates as one of dates, and all else as a list."""
    import narwhals as nw

    kind = series.dtype
    if kind.is_integer() and max(series.max() or 0, -(series.min() or 0)) >= LONG:
        return series.to_list() if series.is_null().any() else series.to_numpy()
    if kind == nw.Boolean:
        return series.to_list() if series.is_null().any() else series.to_numpy()
    if kind.is_numeric():
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    if kind == nw.Date:
        series = series.cast(nw.Datetime("us"))
    if isinstance(series.dtype, nw.Datetime):
        stamps = series.dt.timestamp("us").cast(nw.Float64).to_numpy()
        whole = np.nan_to_num(stamps, nan=np.iinfo(np.int64).min).astype(np.int64)
        return whole.view("datetime64[us]")
    return series.to_list()
