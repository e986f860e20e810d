"""Columns of files: CSV in any local form, Excel, Parquet, and folders of Parquet."""

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
import sys
import warnings
import zipfile
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from tailproof.extras import install_command
from tailproof.tables.cells import Column, Gatherer
from tailproof.tables.frames import gathered
from tailproof.tables.refusals import Refusals
from tailproof.tables.sources import Source

__all__ = ["open_file"]

_SEPARATORS = ",;\t|"
_TITLE = 20
"""How many lines are searched for the header, if the first line is not the header."""
_BATCH = 1 << 16
"""Rows that are turned into columns at once, so that the file's cells are never all in memory."""
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*')
"""The line above the header in which Excel names the separator."""
_MARKS = {b"\xff\xfe\0\0": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
"""Byte order marks."""
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


def open_file(file: Path, sheet: str | None = None) -> Source:
    """Return a file as a source of columns; its kind is recognised by its first bytes.

    Parameters
    ----------
    file : Path
        ``-`` is the standard input; a folder is one of Parquet.
    sheet : str, optional
        The sheet of a workbook; by default the sheet that has the columns.
    """
    if file.is_dir():
        return _Parquet(file, file.name)
    name = "the standard input" if str(file) == "-" else file.name
    if str(file) != "-" and not file.exists():
        raise ValueError(f"table must be a file that exists, got {str(file)!r}")
    raw = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    if raw.startswith(b"PAR1"):
        return _Parquet(io.BytesIO(raw) if str(file) == "-" else file, name)
    if _is_workbook(raw):
        return _Excel(raw, name, sheet)
    if sheet is not None:
        raise ValueError(f"sheet is for Excel workbooks, and {name} is none")
    if file.suffix == ".toml":
        raise ValueError(f"{name} is the file of a service: name a journal, such as shop.db")
    for mark, kind in _UNSUPPORTED.items():
        if raw.startswith(mark):
            raise ValueError(f"{name} is not CSV, Parquet or Excel but {kind}")
    return _Csv(raw, name)


class _Csv(Source):
    """A text file with a separator; the header says which."""

    def __init__(self, raw: bytes, name: str) -> None:
        self.name = name
        for mark, decompress in _COMPRESSED.items():
            if raw.startswith(mark):
                try:
                    raw = decompress(raw)
                except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
                    raise ValueError(f"cannot decompress {name}: {error}") from None
        self._raw, self._encoding = raw, _encoding(raw, name)
        first = next((line for line in self._lines() if line.strip()), "")
        separator = _SEPARATOR_LINE.fullmatch(first)
        outside = "".join(first.split('"')[::2])  # not within quotation marks
        self._separator = separator[1] if separator else max(_SEPARATORS, key=outside.count)
        self._header = 1 if separator else 0
        """Which of the lines that are not empty has the names."""
        row: list[str] = next(islice(filter(None, self._reader()), self._header, None), [])
        self.names = [cell.strip() for cell in row] if any(map(str.strip, row)) else []
        if len(self.names) > 1 and not self.names[-1]:  # a separator at the end of each line
            self.names.pop()
        self._starts = array("q")

    def _lines(self) -> io.TextIOWrapper:
        return io.TextIOWrapper(io.BytesIO(self._raw), self._encoding, newline="")

    def _reader(self) -> Any:
        return csv.reader(
            self._lines(), delimiter=self._separator, strict=True, skipinitialspace=True
        )

    def load(self, wanted: Sequence[str], refusals: Refusals) -> dict[str, Column]:
        """Return some columns; rows with too many cells are refused."""
        gatherers = {name: Gatherer() for name in wanted}
        places = [self.names.index(name) for name in wanted]
        odd: dict[int, str] = {}
        for rows in self._batches(odd):
            for place, gatherer in zip(places, gatherers.values(), strict=True):
                gatherer.strings([row[place] for row in rows])
        refusals.refuse(odd, f"{self.name} cannot be read as CSV:")
        return {name: gatherer.column() for name, gatherer in gatherers.items()}

    def _batches(self, odd: dict[int, str]) -> Iterator[list[list[str]]]:
        """Yield the rows that are as long as the header, and note the others."""
        self._starts = array("q")
        reader, width, batch, line = self._reader(), len(self.names), list[list[str]](), 0
        above = self._header + 1
        while True:
            try:
                row = next(reader)
            except StopIteration:
                break
            except csv.Error as error:
                odd[len(self._starts)] = f"{error}"
                row = [""]
            start, line = line + 1, reader.line_num
            if not row:
                continue
            if above:
                above -= 1
                continue
            if len(row) != width:
                if any(cell.strip() for cell in row[width:]):
                    odd[len(self._starts)] = (
                        f"{len(row)} cells separated by {self._separator!r} instead of {width}, "
                        "so quote numbers with a comma,"
                    )
                row = (row + [""] * width)[:width]
            self._starts.append(start)
            batch.append(row)
            if len(batch) == _BATCH:
                yield batch
                batch = []
        yield batch

    def check(self, wanted: dict[str, str]) -> None:
        """Raise ``ValueError`` unless every column is here; say if the header is further down."""
        reader = self._reader()
        with suppress(csv.Error):
            for row in islice(reader, _TITLE):
                _check_title(self, row, wanted, f"line {reader.line_num}")
        super().check(wanted)

    def where(self, row: int) -> str:
        """Return the line of a row in the file."""
        return f"line {self._starts[row]}"


def _check_title(source: Source, row: Sequence[str], wanted: dict[str, str], place: str) -> None:
    """Raise ``ValueError`` if this row, and not the first row, names the columns."""
    needed = {*wanted.values()}
    if not needed <= {*source.names} and needed <= {cell.strip() for cell in row}:
        raise ValueError(
            f"the columns of {source.name} are named in {place}: remove the lines above"
        )


def _encoding(raw: bytes, name: str) -> str:
    """Return the encoding: by the byte order mark, UTF-8 if the text is valid, or Windows-1252."""
    for mark, known in _MARKS.items():
        if raw.startswith(mark):
            return known
    for encoding in ("utf-8-sig", "cp1252"):
        decoder = codecs.getincrementaldecoder(encoding)()
        try:
            for start in range(0, len(raw), 1 << 20):
                decoder.decode(raw[start : start + (1 << 20)])
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            continue
        if b"\x00" not in raw:
            return encoding
    raise ValueError(f"cannot decode {name}: it is not text in UTF-8, UTF-16 or Windows-1252")


class _Parquet(Source):
    """A Parquet file, or a folder of them, read in batches."""

    def __init__(self, file: Path | io.BytesIO, name: str) -> None:
        self.name = name
        try:
            import pyarrow
            import pyarrow.dataset
            import pyarrow.parquet
        except ImportError:
            hint = install_command("parquet")
            raise ValueError(f"reading {name} as Parquet requires pyarrow: {hint}") from None
        self._errors: type[Exception] = pyarrow.ArrowException
        self._keys = pyarrow.dataset.get_partition_keys
        try:
            self._is_folder = isinstance(file, Path) and file.is_dir()
            if self._is_folder:
                self._data = pyarrow.dataset.dataset(file, format="parquet", partitioning="hive")
                self.names = list(self._data.schema.names)
            else:
                self._data = pyarrow.parquet.ParquetFile(file)
                self.names = list(self._data.schema_arrow.names)
        except (self._errors, OSError) as error:
            raise ValueError(f"cannot read {name} as Parquet: {error}") from None

    def check(self, wanted: dict[str, str]) -> None:
        """Raise ``ValueError`` unless every column is in every file."""
        super().check(wanted)
        for part in self._data.get_fragments() if self._is_folder else ():
            folders = self._keys(part.partition_expression)
            missing = {*wanted.values()} - {*part.physical_schema.names, *folders}
            if missing:
                raise ValueError(
                    f"{part.path} has no column {min(missing)}, which other files have"
                )

    def load(self, wanted: Sequence[str], refusals: Refusals) -> dict[str, Column]:
        """Return some columns."""
        read = getattr(self._data, "iter_batches", None) or self._data.to_batches
        try:
            batches = (batch for batch in read(columns=list(wanted), batch_size=_BATCH))
            return gathered(wanted, batches)
        except self._errors as error:
            raise ValueError(f"cannot read {self.name} as Parquet: {error}") from None


def _is_workbook(raw: bytes) -> bool:
    """Return whether this is an Excel workbook, an archive with a certain entry."""
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except zipfile.BadZipFile:
        return False


class _Excel(Source):
    """A sheet of a workbook."""

    def __init__(self, raw: bytes, name: str, sheet: str | None) -> None:
        import pandas

        self.name = name
        try:
            import openpyxl  # noqa: F401
        except ImportError:
            hint = install_command("excel")
            raise ValueError(f"reading {name} as Excel requires openpyxl: {hint}") from None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about styles, which are not read
                self._sheets = pandas.read_excel(
                    io.BytesIO(raw), sheet_name=None, header=None, dtype=object, engine="openpyxl"
                )
        except Exception as error:  # a damaged workbook may raise anything
            raise ValueError(f"cannot read {name} as Excel: {error}") from None
        self._headers = {
            title: [_header(cell) for cell in rows.iloc[0]] if len(rows) else []
            for title, rows in self._sheets.items()
        }
        self._title = max(self._headers, key=lambda title: len(self._headers[title]))
        self._chosen = sheet is not None
        if sheet is not None:
            if sheet not in self._headers:
                names = ", ".join(self._headers)
                raise ValueError(f"sheet must be one of {names} of {name}, got {sheet!r}")
            self._title = sheet

    @property
    def names(self) -> list[str]:  # type: ignore[override]
        """The columns of the sheet."""
        return self._headers[self._title]

    def prefer(self, wanted: Sequence[str]) -> None:
        """Take the sheet that has the columns; an error if there are two."""
        fitting = [title for title, names in self._headers.items() if {*wanted} <= {*names}]
        if len(fitting) > 1 and not self._chosen:
            raise ValueError(
                f"{self.name} has these columns in the sheets {', '.join(fitting)}: name one of "
                "them with sheet= (--sheet)"
            )
        if fitting and not self._chosen:
            self._title = fitting[0]

    def check(self, wanted: dict[str, str]) -> None:
        """Raise ``ValueError`` unless every column is here; say if the header is further down."""
        for place, row in enumerate(self._sheets[self._title].head(_TITLE).to_numpy(), start=1):
            _check_title(self, [_header(cell) for cell in row], wanted, f"row {place}")
        super().check(wanted)

    def load(self, wanted: Sequence[str], refusals: Refusals) -> dict[str, Column]:
        """Return some columns."""
        rows = self._sheets[self._title].iloc[1:]
        columns = {name: rows.iloc[:, self.names.index(name)] for name in wanted}
        return {name: Column.of(cells.to_numpy(dtype=object)) for name, cells in columns.items()}

    def where(self, row: int) -> str:
        """Return the row of the sheet."""
        return f"row {row + 2}"


def _header(cell: Any) -> str:
    return "" if cell is None or cell != cell else str(cell).strip()
