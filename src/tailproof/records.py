"""Read recorded rewards from a file, and refuse files that can be read in two ways."""

import bz2
import gzip
import io
import lzma
import re
import sys
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailproof.checks import require
from tailproof.extras import install_command
from tailproof.typing import Array

if TYPE_CHECKING:
    import pandas

__all__ = ["Records", "read_columns", "read_log"]

Decimal = Literal[".", ","]

_MISSING = {"", "na", "n/a", "nan", "none", "null", "-", "#n/a", "<na>"}
_WORDS = {"true": 1.0, "false": 0.0, "inf": np.inf, "infinity": np.inf}
_SEPARATORS = ",;\t|"
_COMPRESSED: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": gzip.decompress,
    b"BZh": bz2.decompress,
    b"\xfd7zXZ": lzma.decompress,
}
"""The first bytes of compressed files."""
_UNSUPPORTED = {
    b"\x28\xb5\x2f\xfd": "a zstd file: decompress it first",
    b"PK": "a zip archive or a damaged workbook: unpack it, or save it as CSV",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook: save it as .xlsx or CSV",
    b"SQLite": "a SQLite database: export a table as CSV",
    b"{": "JSON: save it as CSV or Parquet",
    b"[": "JSON: save it as CSV or Parquet",
}
"""The first bytes of files that are not supported, and of Excel workbooks, which are archives."""
_STRIPPED = dict.fromkeys(map(ord, " '’\u00a0\u2009\u202f"), "") | {ord("−"): "-"}
_SHAPES: dict[str, re.Pattern[str]] = {
    mark: re.compile(
        rf"[+-]?(?=[\d.,]*\d)(?:\d+|\d{{1,3}}(?:{other}\d{{2,3}})*{other}\d{{3}})?(?:{point}\d*)?(?:[eE][+-]?\d+)?"
    )
    for mark, point, other in ((".", r"\.", ","), (",", ",", r"\."))
}
"""Numbers with a point or a comma as decimal mark, and the other as thousands separator."""
_CURRENCY = re.compile(r"[$€£¥₹₩₽]|\b(?:USD|EUR|GBP|JPY|CHF|INR)\b|^(?:USD|EUR|GBP|JPY|CHF|INR)")


class Records(NamedTuple):
    """Rewards, NaN if missing; the arm of each; and features of visitors, of shape (n, d)."""

    rewards: Array
    arms: list[str] | None
    features: Array | None


def read_columns(
    file: Path,
    reward: str,
    arm: str | None = None,
    features: Sequence[str] = (),
    *,
    decimal: Decimal | None = None,
) -> Records:
    """Read a column of rewards, and optionally columns of arms and features, from a file.

    CSV, Parquet, Excel and compressed files (gzip, bz2, xz) are recognised by their first bytes;
    separator, encoding, decimal mark, thousands separators and currency signs by their content. An
    ambiguous file raises an error that names both readings. Of a workbook, the sheet that has the
    columns is read.

    Parameters
    ----------
    file : Path
        ``-`` is the standard input.
    reward, arm, features : str
        Names of columns. Features are numbers, and none may be missing.
    decimal : "." or ",", optional
        The decimal mark, if the rewards are ambiguous.
    """
    wanted = {"reward": reward} | ({} if arm is None else {"arm": arm})
    wanted |= {f"features[{place}]": column for place, column in enumerate(features)}
    table = _Table(file, wanted, decimal)
    rewards = table.numbers(reward)
    contexts = np.column_stack([table.filled(name) for name in features]) if features else None
    return Records(rewards, None if arm is None else table.texts(arm), contexts)


def read_log(
    file: Path,
    *,
    arm: str,
    reward: str,
    propensity: str | None = None,
    features: Sequence[str] = (),
    group: str | None = None,
    unit: str | None = None,
    at: str | None = None,
    decimal: Decimal | None = None,
) -> dict[str, Any]:
    """Read the columns of a log of decisions, as `tailproof.judging.Log.of` takes them.

    Columns named ``p:ARM`` are propensities of all arms. Times are seconds since 1970 if all are
    numbers, else text. Everything else is as in `read_columns`.
    """
    texts = {"arm": arm, "group": group, "unit": unit}
    wanted = {"reward": reward} | {name: column for name, column in texts.items() if column}
    wanted |= {} if propensity is None else {"propensity": propensity}
    wanted |= {} if at is None else {"at": at}
    wanted |= {f"features[{place}]": column for place, column in enumerate(features)}
    table = _Table(file, wanted, decimal, lambda name: name.startswith("p:"))
    found: dict[str, Any] = {"reward": table.numbers(reward)}
    found |= {name: table.texts(column) if column else None for name, column in texts.items()}
    found["propensity"] = None if propensity is None else table.filled(propensity)
    if table.more:
        found["arms"] = [name.removeprefix("p:") for name in table.more]
        found["propensities"] = np.column_stack([table.filled(name) for name in table.more])
    if at is not None:
        found["at"] = table.times(at)
    if features:
        import pandas

        found["features"] = pandas.DataFrame({name: table.filled(name) for name in features})
    return found


class _Table:
    """The columns that are wanted of a file, and others whose names are `also` wanted."""

    def __init__(
        self,
        file: Path,
        wanted: dict[str, str],
        decimal: Decimal | None,
        also: Callable[[str], bool] = lambda name: False,
    ) -> None:
        require(decimal in (None, ".", ","), "decimal", "'.' or ','", decimal)
        self.decimal = decimal
        name = "the standard input" if str(file) == "-" else file.name
        raw = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        read = _parquet if raw.startswith(b"PAR1") else _excel if _is_workbook(raw) else _csv
        for mark, found in _UNSUPPORTED.items():
            if raw.startswith(mark) and read is _csv:
                raise ValueError(f"{name} is not CSV, Parquet or Excel but {found}")
        self.columns = read(raw, name, wanted, also)
        self.more = [column for column in self.columns.columns if also(column)]

    def numbers(self, column: str) -> Array:
        """Return a column as numbers, NaN if missing."""
        cells = self.columns[column]
        if cells.dtype.kind in "biuf":
            found: Array = cells.to_numpy(dtype=np.float64, na_value=np.nan)
            return found
        return _numbers(cells.to_numpy(dtype=object), column, self.decimal)

    def filled(self, column: str) -> Array:
        """Return a column as numbers, none of which is missing."""
        try:
            found = self.numbers(column)
        except ValueError as error:
            raise ValueError(f"{error}; write text as columns of 0 and 1") from None
        if np.isnan(found).any():
            row = int(np.isnan(found).argmax()) + 1
            raise ValueError(f"column {column} has no number in row {row}: fill it in")
        return found

    def times(self, column: str) -> Any:
        """Return a column as numbers if all cells are, else as it is."""
        import pandas

        cells = self.columns[column]
        found = pandas.to_numeric(cells, errors="coerce") if cells.dtype.kind == "O" else cells
        return cells if found.dtype.kind == "M" or found.isna().any() else found

    def texts(self, column: str) -> list[str]:
        """Return a column as text, none of which is missing."""
        names = [_cell(cell) for cell in self.columns[column].to_numpy(dtype=object).tolist()]
        empty = [str(row) for row, text in enumerate(names, start=1) if text.lower() in _MISSING]
        if empty:
            rows = ", ".join(empty[:3])
            raise ValueError(f"column {column} names no arm in row {rows} ({len(empty)} in all)")
        return names


def _cell(value: Any) -> str:
    return "" if value is None or value != value else str(value).strip()


def _check_names(known: list[str], wanted: dict[str, str], name: str) -> None:
    if not known:
        raise ValueError(f"{name} is empty")
    for option, column in wanted.items():
        rule = f"one of the columns {', '.join(known)} of {name}"
        require(column in known, option, rule, column)
        if (times := known.count(column)) > 1:
            raise ValueError(f"{name} has {times} columns named {column}: rename all but one")


def _parquet(
    raw: bytes, name: str, wanted: dict[str, str], also: Callable[[str], bool]
) -> "pandas.DataFrame":
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        hint = install_command("parquet")
        raise ValueError(f"reading {name} as Parquet requires pyarrow: {hint}") from None
    try:
        source = pyarrow.parquet.ParquetFile(io.BytesIO(raw))
        _check_names(source.schema_arrow.names, wanted, name)
        more = [column for column in source.schema_arrow.names if also(column)]
        table = source.read(columns=list(dict.fromkeys([*wanted.values(), *more])))
    except pyarrow.ArrowException as error:
        raise ValueError(f"cannot read {name} as Parquet: {error}") from None
    frame: pandas.DataFrame = table.to_pandas(ignore_metadata=True)
    dtype = frame[wanted["reward"]].dtype
    if dtype.kind not in "biufO":
        raise ValueError(f"column {wanted['reward']} must contain numbers, got type {dtype}")
    return frame


def _is_workbook(raw: bytes) -> bool:
    """Return whether this is an Excel workbook, an archive with a certain entry."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except zipfile.BadZipFile:
        return False


def _excel(
    raw: bytes, name: str, wanted: dict[str, str], also: Callable[[str], bool]
) -> "pandas.DataFrame":
    import pandas

    try:
        import openpyxl  # noqa: F401
    except ImportError:
        hint = install_command("excel")
        raise ValueError(f"reading {name} as Excel requires openpyxl: {hint}") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles, which are not read
            sheets = pandas.read_excel(
                io.BytesIO(raw), sheet_name=None, header=None, dtype=object, engine="openpyxl"
            )
    except Exception as error:  # a damaged workbook may raise anything
        raise ValueError(f"cannot read {name} as Excel: {error}") from None
    headers = {
        title: [_cell(cell) for cell in sheet.iloc[0]] if len(sheet) else []
        for title, sheet in sheets.items()
    }
    fitting = [title for title in sheets if {*wanted.values()} <= {*headers[title]}]
    if len(fitting) > 1:
        raise ValueError(
            f"{name} has these columns in the sheets {', '.join(fitting)}: save one of them as CSV"
        )
    title = fitting[0] if fitting else max(headers, key=lambda one: len(headers[one]))
    _check_names(headers[title], wanted, name)
    columns = list(dict.fromkeys([*wanted.values(), *filter(also, headers[title])]))
    places = [headers[title].index(column) for column in columns]
    return sheets[title].iloc[1:, places].set_axis(columns, axis=1)


def _csv(
    raw: bytes, name: str, wanted: dict[str, str], also: Callable[[str], bool]
) -> "pandas.DataFrame":
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
        raise ValueError(f"cannot parse {name}: {str(error).strip()}") from None
    beyond = table[len(known)].to_numpy(dtype=object).tolist()
    longer = [str(row) for row, cell in enumerate(beyond, start=1) if cell != "" and _cell(cell)]
    if longer:
        raise ValueError(
            f"expected {len(known)} cells separated by {separator!r}, got more in row "
            f"{', '.join(longer[:3])} of {name} ({len(longer)} in all): quote numbers with a comma"
        )
    columns = list(dict.fromkeys([*wanted.values(), *filter(also, known)]))
    return table[[known.index(column) for column in columns]].set_axis(columns, axis=1)


def _text(raw: bytes, name: str) -> str:
    """Decompress and decode: UTF-16 with a byte order mark, UTF-8 if valid, or Windows-1252."""
    for mark, decompress in _COMPRESSED.items():
        if raw.startswith(mark):
            try:
                raw = decompress(raw)
            except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
                raise ValueError(f"cannot decompress {name}: {error}") from None
    marked = raw.startswith((b"\xff\xfe", b"\xfe\xff"))
    for encoding in ["utf-16"] if marked else ["utf-8-sig", "cp1252"]:
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\x00" not in text:
            return text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\n")
    raise ValueError(f"cannot decode {name}: it is not text in UTF-8, UTF-16 or Windows-1252")


def _numbers(cells: NDArray[np.object_], column: str, decimal: Decimal | None) -> Array:
    """Convert cells to numbers, NaN if missing; pandas converts plain numbers."""
    import pandas

    plain = pandas.to_numeric(pandas.Series(cells), errors="coerce")
    rewards: Array = plain.to_numpy(dtype=np.float64, copy=True)
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
        marked = f" with decimal mark {mark!r}" if mark in "".join(bare.values()) else ""
        raise ValueError(
            f"column {column} must contain numbers{marked}, got {first} ({len(bad)} in all)"
        )
    return rewards


def _bare(text: str, sign: str) -> str:
    """Remove the currency sign, spaces and apostrophes; turn brackets into a minus."""
    bare = text.replace(sign, "").translate(_STRIPPED)
    bracketed = bare.startswith("(") and bare.endswith(")")
    return f"-{bare[1:-1]}" if bracketed else bare


def _decimal_mark(texts: Iterable[str], column: str) -> Decimal:
    """Return the decimal mark: that of the first number that can be read in only one way."""
    unclear = None
    for text in texts:
        as_point, as_comma = (bool(_SHAPES[mark].fullmatch(text)) for mark in (".", ","))
        if as_point != as_comma:
            return "." if as_point else ","
        if as_point and "," in text:
            unclear = text
    if unclear is not None:
        raise ValueError(
            f"{unclear!r} in column {column} is ambiguous: pass decimal='.' if its comma separates "
            "thousands, decimal=',' if it marks decimals"
        )
    return "."
