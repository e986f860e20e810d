"""Recorded rewards from a file."""

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import require

__all__ = ["read_columns"]

_MISSING = {"", "na", "nan", "n/a", "none", "null"}


def read_columns(
    file: Path, reward: str, arm: str | None = None
) -> tuple[NDArray[np.float64], Any]:
    """Read rewards, NaN where missing, and arms, if a column of them is named, from a file.

    A file that ends in ``.parquet`` is read by pyarrow, any other as comma-separated values.
    """
    parquet = file.suffix.lower() == ".parquet"
    columns = _parquet_columns(file) if parquet else _csv_columns(file)
    for option, name in (("reward", reward), ("arm", arm)):
        if name is not None:
            known = ", ".join(columns)
            require(name in columns, option, f"one of the columns {known} of {file.name}", name)
    values = np.array(
        [_number(text, reward, row) for row, text in enumerate(columns[reward], start=1)]
    )
    return values, None if arm is None else np.array([str(name) for name in columns[arm]])


def _number(text: Any, column: str, row: int) -> float:
    if text is None or str(text).strip().lower() in _MISSING:
        return math.nan
    try:
        return float(text)
    except (TypeError, ValueError):
        raise ValueError(f"{column} must hold numbers, got {text!r} in row {row}") from None


_MARKS = {
    b"\x1f\x8b": "a gzip file: unpack it first",
    b"PK": "a zip file or a workbook: save a sheet as CSV first",
    b"\xff\xfe": "UTF-16 text: save it as UTF-8",
    b"\xfe\xff": "UTF-16 text: save it as UTF-8",
}
"""How files that are something else begin."""


def _csv_columns(file: Path) -> dict[str, list[Any]]:
    rule = f"{file.name} must be comma-separated values in UTF-8"
    with file.open("rb") as binary:
        begin = binary.read(2)
    if begin in _MARKS:
        raise ValueError(f"{rule}, got {_MARKS[begin]}")
    with file.open(newline="", encoding="utf-8-sig") as stream:
        try:
            header, *rows = [row for row in csv.reader(stream) if row] or [[]]
        except csv.Error as error:
            raise ValueError(f"{rule}, got {error}") from None
        except UnicodeDecodeError:
            found = "other bytes, perhaps of latin-1: save it as UTF-8"
            raise ValueError(f"{rule}, got {found}") from None
    cells = [row + [""] * (len(header) - len(row)) for row in rows]
    return {name: [row[place] for row in cells] for place, name in enumerate(header)}


def _parquet_columns(file: Path) -> dict[str, list[Any]]:
    try:
        import pyarrow.parquet
    except ImportError:
        raise ValueError(
            f"{file.name} must be a CSV file, or pyarrow be there to read it: "
            "pip install 'tailproof[parquet]'"
        ) from None
    columns: dict[str, list[Any]] = pyarrow.parquet.read_table(file).to_pydict()
    return columns
