"""Files as people have them: read right, or refused in a sentence."""

import bz2
import gzip
import io
import lzma
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tailproof.cli import app
from tailproof.tables import records

NAN = np.nan


def write(folder: Path, content: str | bytes) -> Path:
    file = folder / "r.csv"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


@pytest.mark.parametrize(
    ("content", "rewards", "arms"),
    [
        ("revenue,variant\n1,a\n2.5,b\n,a\nNaN,b\n", [1, 2.5, NAN, NAN], "abab"),
        ("\n\nrevenue,variant\n1,a\n\n2,b\n", [1, 2], "ab"),
        ("revenue,variant\r\n1,a\r\n2,b\r\n", [1, 2], "ab"),
        ("revenue,variant,\n1,a,\n2, b,\n", [1, 2], "ab"),
        ("id;variant;revenue\n7;a;1,5\n8;b;2,25\n9;a;1.234,5\n", [1.5, 2.25, 1234.5], "aba"),
        ("revenue\tvariant\n1\ta\n-2e3\tb\n", [1, -2000], "ab"),
        ("revenue|variant\n1|a\n", [1], "a"),
        ('revenue,variant\n"$1,151.70",a\n$3,b\n-$3,b\n($4),a\n', [1151.7, 3, -3, -4], "abba"),
        ("revenue;variant\n1.151,70 €;a\n3 €;b\n", [1151.7, 3], "ab"),
        ("revenue;variant\nCHF 1’151.70;a\n", [1151.7], "a"),
        ("revenue,variant\ntrue,a\nFalse,b\ninf,a\n-Infinity,b\n", [1, 0, np.inf, -np.inf], "abab"),
        (gzip.compress(b"revenue,variant\n1,a\n", mtime=0), [1], "a"),
        (bz2.compress(b"revenue,variant\n1,a\n"), [1], "a"),
        (lzma.compress(b"revenue,variant\n1,a\n"), [1], "a"),
        ('"revenue","variant"\n"1","a"\n', [1], "a"),
        ('revenue;"a, b, c, d";variant\n1;x;a\n', [1], "a"),
        ("revenue;variant\r1,234,567.5;a\r", [1234567.5], "a"),
        ("revenue;variant\n₹1,23,456.50;a\n", [123456.5], "a"),
        ("revenue,variant\n-,a\n1,b\n", [NAN, 1], "ab"),
        ("revenue,variant\n1,a \n2,a\n", [1, 2], "aa"),
    ],
)
def test_what_is_read(tmp_path: Path, content: Any, rewards: list[float], arms: str) -> None:
    found = records(write(tmp_path, content), reward="revenue", arm="variant")
    np.testing.assert_array_equal(found.reward, rewards)
    assert [found.arms[arm] for arm in found.arm] == list(arms)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    file = write(tmp_path, "größe;variant\n1;Grün\n".encode(encoding))
    assert records(file, reward="größe", arm="variant").arms == ("Grün",)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "r.csv is empty"),
        ("price,variant\n1,a\n", "reward must be one of the columns price, variant of r.csv"),
        ("revenue,colour\n1,a\n", "arm must be one of the columns revenue, colour of r.csv"),
        (
            "revenue,variant,revenue\n1,a,2\n",
            "r.csv has 2 columns named revenue: rename all but one",
        ),
        (
            "revenue,variant\n1,\n2, \n3,a\n4,NA\n",
            "column variant names no arm in line 2, line 3, line 5 (3 in all): mend them",
        ),
        ("revenue,variant\n1\n2,b\n", "column variant names no arm in line 2: mend it, or leave"),
        (
            "revenue,variant\nx,a\n1,a\ny,a\nz,b\nw,b\n",
            "numbers, got 'x' in line 2, 'y' in line 4, ",
        ),
        ("revenue,variant\nx,a\n1,a\ny,a\nz,b\nw,b\n", "'z' in line 5 (4 in all)"),
        ("revenue,variant\n12%,a\n0x10,c\n1_000,b\n", "must contain numbers, got '12%' in line 2"),
        (
            "revenue,variant\n$1,151.70,a\n$3,b\n",
            "3 cells separated by ',' instead of 2, so quote numbers with a comma, in line 2",
        ),
        ("revenue,variant\n1,a\n2,a,b,c,d\n", "r.csv cannot be read as CSV: 5 cells"),
        (
            'revenue,variant\n1,"a\n2,b\n',
            "r.csv cannot be read as CSV: unexpected end of data in line 2",
        ),
        (
            "revenue,variant\n$1,a\n€3,b\n",
            "revenue must be in one currency; beside 1 with $ it has '€3' in line 3",
        ),
        ('revenue,variant\n1.5,a\n"2,5",b\n', "must contain numbers with decimal mark '.', got"),
        ("revenue;variant\n1,234;a\n12;b\n", "'1,234' in column revenue is ambiguous: pass"),
        (
            gzip.compress(b"revenue,variant\n1,a\n", mtime=0)[:-5],
            "cannot decompress r.csv",
        ),
        (
            b"PK\x03\x04",
            "r.csv is not CSV, Parquet or Excel but a zip archive or a damaged workbook",
        ),
        (b"PAR1 and no more", "cannot read r.csv as Parquet"),
        (b"\x00\x01\x02", "r.csv: it is not text in UTF-8, UTF-16 or Windows-1252"),
        ('[{"revenue": 1}]', "r.csv is not CSV, Parquet or Excel but JSON: save it as CSV"),
    ],
)
def test_what_is_refused(tmp_path: Path, content: Any, words: str) -> None:
    file = write(tmp_path, content)
    with pytest.raises(ValueError, match=re.escape(words)):
        records(file, reward="revenue", arm="variant")
    output = run(f"calibrate {file} --reward revenue --arm variant", code=2)
    assert output.startswith("tailproof: ")
    assert "Traceback" not in output


def test_unclear_commas_can_be_told(tmp_path: Path) -> None:
    file = write(tmp_path, "revenue;variant\n1,234;a\n12;b\n1.234;b\n")
    for mark, expected in ((".", [1234, 12, 1.234]), (",", [1.234, 12, 1234])):
        found = records(file, reward="revenue", decimal=mark)  # type: ignore[arg-type]
        np.testing.assert_array_equal(found.reward, expected)
    whole = write(tmp_path, "revenue\n1.234\n5.678\n")
    np.testing.assert_array_equal(
        records(whole, reward="revenue", decimal=",").reward, [1234, 5678]
    )
    with pytest.raises(ValueError, match=r"decimal must be '\.' or ',', got ';'"):
        records(file, reward="revenue", decimal=";")  # type: ignore[arg-type]


def test_the_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"revenue\n1\n2\n"))
    monkeypatch.setattr(sys, "stdin", stdin)
    np.testing.assert_array_equal(records("-", reward="revenue").reward, [1, 2])


def test_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns: dict[str, Any] = {
        "revenue": [1.0, None, 3.0],
        "variant": ["a", "b", "a"],
        "price": ["$1", "$2", None],
    }
    columns["day"] = np.array(["2026-01-01"] * 3, dtype="datetime64[s]")
    file = tmp_path / "without-a-suffix"
    parquet.write_table(pyarrow.table(columns), file)
    found = records(file, reward="revenue", arm="variant")
    np.testing.assert_array_equal(found.reward, [1, NAN, 3])
    assert found.arm.tolist() == [0, 1, 0]
    np.testing.assert_array_equal(records(file, reward="price").reward, [1, 2, NAN])
    with pytest.raises(ValueError, match="day must contain numbers"):
        records(file, reward="day")
    with pytest.raises(ValueError, match="reward must be one of the columns revenue, variant, "):
        records(file, reward="cost")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ValueError, match=r"pip install 'pyarrow>=16'"):
        records(file, reward="revenue")


def workbook(file: Path, **sheets: list[list[Any]]) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(file)
    return file


def test_excel(tmp_path: Path) -> None:
    sales: list[list[Any]] = [
        ["variant", "revenue", 7],
        ["a", 1.5, 1],
        ["b", None, 2],
        [3, 2, 3],
        ["a", True, 4],
    ]
    file = workbook(tmp_path / "sales", notes=[["of May"]], empty=[], sales=sales)
    found = records(file, reward="revenue", arm="variant", features=["7"])
    np.testing.assert_array_equal(found.reward, [1.5, NAN, 2, 1])
    assert [found.arms[arm] for arm in found.arm] == ["a", "b", "3", "a"]
    np.testing.assert_array_equal(found.features, [[1], [2], [3], [4]])
    with pytest.raises(ValueError, match="reward must be one of the columns variant, revenue, 7"):
        records(file, reward="cost")
    twice = workbook(tmp_path / "twice", May=sales, June=sales)
    with pytest.raises(ValueError, match="these columns in the sheets May, June: name one of"):
        records(twice, reward="revenue")
    with pytest.raises(ValueError, match="blank is empty"):
        records(workbook(tmp_path / "blank", only=[]), reward="revenue")
    (tmp_path / "cut").write_bytes(file.read_bytes()[:-9])
    with pytest.raises(ValueError, match="a zip archive or a damaged workbook"):
        records(tmp_path / "cut", reward="revenue")


def run(command: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, shlex.split(command), env={"COLUMNS": "200", "TERM": "dumb"})
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


def test_the_file_of_a_service_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "shop.toml").write_text('[experiments.shop]\narms = ["A", "B"]\n')
    with pytest.raises(ValueError, match=r"shop.toml is the file of a service: name a journal"):
        records(tmp_path / "shop.toml", arm="arm", reward="reward")
