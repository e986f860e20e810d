"""Recorded rewards from a file: pandas reads, this module asks whether it was read right."""

import bz2
import gzip
import io
import lzma
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import require

if TYPE_CHECKING:
    import pandas

__all__ = ["read_columns"]

Decimal = Literal[".", ","]
Text = NDArray[np.object_]

_MISSING = {"", "na", "n/a", "nan", "none", "null", "-", "#n/a", "<na>"}
_WORDS = {"true": 1.0, "false": 0.0, "inf": np.inf, "infinity": np.inf}
_SEPARATORS = ",;\t|"
_PACKED: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": gzip.decompress,
    b"BZh": bz2.decompress,
    b"\xfd7zXZ": lzma.decompress,
}
"""How packed files begin."""
_REFUSED = {
    b"\x28\xb5\x2f\xfd": "a zstd file: unpack it first",
    b"PK": "a zip file or a workbook: save one sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old workbook: save one sheet as CSV",
    b"SQLite": "a database: export a table as CSV",
    b"{": "JSON: save it as CSV or Parquet",
    b"[": "JSON: save it as CSV or Parquet",
}
"""How files that are something else begin."""
_FILLING = dict.fromkeys(map(ord, " '’\u00a0\u2009\u202f"), "") | {ord("−"): "-"}
_SHAPES: dict[str, re.Pattern[str]] = {
    mark: re.compile(
        rf"[+-]?(?=[\d.,]*\d)(?:\d+|\d{{1,3}}(?:{other}\d{{2,3}})*{other}\d{{3}})?(?:{point}\d*)?(?:[eE][+-]?\d+)?"
    )
    for mark, point, other in ((".", r"\.", ","), (",", ",", r"\."))
}
"""Numbers with a point or a comma as the decimal mark, and the other between thousands."""
_CURRENCY = re.compile(r"[$€£¥₹₩₽]|\b(?:USD|EUR|GBP|JPY|CHF|INR)\b|^(?:USD|EUR|GBP|JPY|CHF|INR)")


def read_columns(
    file: Path, reward: str, arm: str | None = None, *, decimal: Decimal | None = None
) -> tuple[NDArray[np.float64], list[str] | None]:
    """Read rewards, NaN where missing, and arms, if a column of them is named, from a file.

    Parquet and separated values are told apart by how they begin, as are packed files (gzip, bz2,
    xz); separator, encoding, decimal mark, thousands marks and currency signs are found in
    the file. Where two readings are possible, both are named and neither is taken.

    Parameters
    ----------
    file : Path
        ``-`` is the standard input.
    reward, arm : str
        Names of columns.
    decimal : "." or ",", optional
        The decimal mark, where the rewards leave it open.
    """
    require(decimal in (None, ".", ","), "decimal", "a point or a comma", decimal)
    name = "the standard input" if str(file) == "-" else file.name
    raw = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    for mark, found in _REFUSED.items():
        if raw.startswith(mark):
            raise ValueError(f"{name} must be separated values or Parquet, got {found}")
    wanted = [reward] if arm is None else [reward, arm]
    read: Callable[..., pandas.DataFrame] = _parquet if raw.startswith(b"PAR1") else _separated
    table = read(raw, name, {"reward": reward} | ({} if arm is None else {"arm": arm}))
    column = table[reward]
    if column.dtype.kind in "biuf":
        rewards = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        rewards = _numbers(column.to_numpy(dtype=object), reward, decimal)
    if arm is None:
        return rewards, None
    names = [_cell(cell) for cell in table[wanted[1]].to_numpy(dtype=object).tolist()]
    empty = [row for row, text in enumerate(names, start=1) if text.lower() in _MISSING]
    if empty:
        raise ValueError(
            f"{arm} must name an arm in every row, got {len(empty)} without one, "
            f"in row {', '.join(map(str, empty[:3]))}"
        )
    return rewards, names


def _cell(value: Any) -> str:
    return "" if value is None or value != value else str(value).strip()


def _check_names(known: list[str], wanted: dict[str, str], name: str) -> None:
    for option, column in wanted.items():
        rule = f"one of the columns {', '.join(known)} of {name}"
        require(column in known, option, rule, column)
        times = known.count(column)
        require(times == 1, option, f"the name of one column of {name}", f"{column}, {times} times")


def _parquet(raw: bytes, name: str, wanted: dict[str, str]) -> "pandas.DataFrame":
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ValueError(
            f"{name} must be separated values, or pyarrow be there to read it: "
            "pip install 'tailproof[parquet]'"
        ) from None
    try:
        source = pyarrow.parquet.ParquetFile(io.BytesIO(raw))
        _check_names(source.schema_arrow.names, wanted, name)
        table = source.read(columns=list(wanted.values()))
    except pyarrow.ArrowException as error:
        raise ValueError(f"{name} must be a whole Parquet file, got {error}") from None
    frame: pandas.DataFrame = table.to_pandas(ignore_metadata=True)
    kind = frame[wanted["reward"]].dtype.kind
    require(kind in "biufO", wanted["reward"], "a column of numbers", f"one of type {kind!r}")
    return frame


def _separated(raw: bytes, name: str, wanted: dict[str, str]) -> "pandas.DataFrame":
    import pandas

    text = _text(raw, name)
    header = re.sub(r'"[^"]*"', "", text.partition("\n")[0])
    separator = max(_SEPARATORS, key=header.count)

    def read(**more: Any) -> pandas.DataFrame:
        return pandas.read_csv(
            io.StringIO(text),
            sep=separator,
            header=None,
            dtype=object,
            keep_default_na=False,
            index_col=False,
            skipinitialspace=True,
            on_bad_lines="error",
            **more,
        )

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            known = [_cell(cell) for cell in read(nrows=1).iloc[0]] if text.strip() else []
            _check_names(known, wanted, name)
            table = read(skiprows=1, names=range(len(known) + 1))
    except (pandas.errors.ParserError, pandas.errors.ParserWarning) as error:
        words = str(error).strip()
        raise ValueError(f"{name} must have rows as long as its header, got {words}") from None
    beyond = table[len(known)].to_numpy(dtype=object).tolist()
    longer = [row for row, cell in enumerate(beyond) if cell != "" and _cell(cell)]
    if longer:
        rows = ", ".join(str(row + 1) for row in longer[:3])
        raise ValueError(
            f"{name} must have {len(known)} cells separated by {separator!r} in each row, got more "
            f"in {len(longer)}, first in row {rows}: a comma inside a number needs quotes"
        )
    places = [known.index(column) for column in wanted.values()]
    return table[places].set_axis(list(wanted.values()), axis=1)


def _text(raw: bytes, name: str) -> str:
    """Unpack and decode: UTF-8 or UTF-16 where it says so or fits, otherwise Windows' letters."""
    for mark, unpack in _PACKED.items():
        if raw.startswith(mark):
            try:
                raw = unpack(raw)
            except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
                raise ValueError(f"{name} must be a whole packed file, got {error}") from None
    encodings = (
        ["utf-16"] if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else ["utf-8-sig", "cp1252"]
    )
    for encoding in encodings:
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\x00" not in text:
            return text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\n")
    raise ValueError(f"{name} must be text in UTF-8, UTF-16 or Windows-1252, got other bytes")


def _numbers(cells: Text, column: str, decimal: Decimal | None) -> NDArray[np.float64]:
    """Turn cells into numbers, NaN where missing; plain numbers are left to pandas."""
    import pandas

    plain = pandas.to_numeric(pandas.Series(cells), errors="coerce")
    rewards: NDArray[np.float64] = plain.to_numpy(dtype=np.float64, copy=True)
    texts = [_cell(cell) for cell in cells.tolist()]
    odd = [row for row in np.flatnonzero(np.isnan(rewards)) if texts[row].lower() not in _MISSING]
    if not odd and decimal != ",":
        return rewards
    signs = {sign for row in odd for sign in _CURRENCY.findall(texts[row])}
    if len(signs) > 1:
        raise ValueError(f"{column} must be in one currency, got {', '.join(sorted(signs))}")
    sign = signs.pop() if signs else ""
    bare = {
        row: _bare(text, sign) for row, text in enumerate(texts) if text.lower() not in _MISSING
    }
    mark = decimal or _decimal_mark(bare.values(), column)
    other: Decimal = "." if mark == "," else ","
    shape, bad = _SHAPES[mark], []
    for row, text in bare.items():
        if shape.fullmatch(text):
            rewards[row] = float(text.replace(other, "").replace(mark, "."))
        elif text.lower().lstrip("+-") in _WORDS:
            value = _WORDS[text.lower().lstrip("+-")]
            rewards[row] = -value if text.startswith("-") else value
        else:
            bad.append(row)
    if bad:
        first = ", ".join(f"{texts[row]!r} in row {row + 1}" for row in bad[:3])
        marks = f" with {mark!r} before their decimals" if mark in "".join(bare.values()) else ""
        raise ValueError(
            f"{column} must hold numbers{marks}, got {len(bad)} cells that are none: {first}"
        )
    return rewards


def _bare(text: str, sign: str) -> str:
    """Take off a currency sign, spaces and apostrophes between digits, and brackets for minus."""
    bare = text.replace(sign, "").translate(_FILLING)
    bracketed = bare.startswith("(") and bare.endswith(")")
    return f"-{bare[1:-1]}" if bracketed else bare


def _decimal_mark(texts: Iterable[str], column: str) -> Decimal:
    """Find which of point and comma marks decimals, by the first cell that leaves no choice."""
    unclear = None
    for text in texts:
        as_point, as_comma = (bool(_SHAPES[mark].fullmatch(text)) for mark in (".", ","))
        if as_point != as_comma:
            return "." if as_point else ","
        if as_point and "," in text:
            unclear = text
    if unclear is not None:
        raise ValueError(
            f"{column} must say what its commas are: is {unclear!r} in the thousands, "
            "decimal='.', or not, decimal=','?"
        )
    return "."
