"""Files as people have them: read right, or refused in a sentence."""

import gzip
import io
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tailproof.cli import app
from tailproof.records import read_columns

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
        ('"revenue","variant"\n"1","a"\n', [1], "a"),
    ],
)
def test_what_is_read(tmp_path: Path, content: Any, rewards: list[float], arms: str) -> None:
    found, names = read_columns(write(tmp_path, content), "revenue", "variant")
    np.testing.assert_array_equal(found, rewards)
    assert names == list(arms)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    file = write(tmp_path, "größe;variant\n1;Grün\n".encode(encoding))
    assert read_columns(file, "größe", "variant")[1] == ["Grün"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "reward must be one of the columns  of r.csv, got 'revenue'"),
        ("price,variant\n1,a\n", "reward must be one of the columns price, variant of r.csv"),
        ("revenue,colour\n1,a\n", "arm must be one of the columns revenue, colour of r.csv"),
        ("revenue,variant,revenue\n1,a,2\n", "reward must be the name of one column of r.csv"),
        ("revenue,variant\n1,\n2, \n3,a\n4,NA\n", "got 3 without one, in row 1, 2, 4"),
        ("revenue,variant\n1\n2,b\n", "variant must name an arm in every row, got 1 without"),
        ("revenue,variant\nx,a\n1,a\ny,a\nz,b\nw,b\n", "got 4 cells that are none: 'x' in row 1, "),
        ("revenue,variant\n12%,a\n0x10,c\n1_000,b\n", "got 3 cells that are none: '12%' in row 1"),
        ("revenue,variant\n$1,151.70,a\n$3,b\n", "got more in 1, first in row 1: a comma inside"),
        ("revenue,variant\n1,a\n2,a,b,c,d\n", "r.csv must have rows as long as its header"),
        ('revenue,variant\n1,"a\n2,b\n', "r.csv must have rows as long as its header"),
        ("revenue,variant\n$1,a\n€3,b\n", "revenue must be in one currency, got $, €"),
        ('revenue,variant\n1.5,a\n"2,5",b\n', "'.' before their decimals, got 1 cells"),
        ("revenue;variant\n1,234;a\n12;b\n", "is '1,234' in the thousands, decimal='.', or not"),
        (
            gzip.compress(b"revenue,variant\n1,a\n", mtime=0)[:-5],
            "r.csv must be a whole packed file",
        ),
        (b"PK\x03\x04", "got a zip file or a workbook: save one sheet as CSV"),
        (b"PAR1 and no more", "r.csv must be a whole Parquet file"),
        (b"\x00\x01\x02", "r.csv must be text in UTF-8, UTF-16 or Windows-1252"),
        ('[{"revenue": 1}]', "got JSON: save it as CSV or Parquet"),
    ],
)
def test_what_is_refused(tmp_path: Path, content: Any, words: str) -> None:
    file = write(tmp_path, content)
    with pytest.raises(ValueError, match=re.escape(words)):
        read_columns(file, "revenue", "variant")
    output = run(f"calibrate {file} --reward revenue --arm variant", code=2)
    assert output.startswith("tailproof: ")
    assert "Traceback" not in output


def test_unclear_commas_can_be_told(tmp_path: Path) -> None:
    file = write(tmp_path, "revenue;variant\n1,234;a\n12;b\n1.234;b\n")
    for mark, expected in ((".", [1234, 12, 1.234]), (",", [1.234, 12, 1234])):
        rewards, _ = read_columns(file, "revenue", decimal=mark)  # type: ignore[arg-type]
        np.testing.assert_array_equal(rewards, expected)
    with pytest.raises(ValueError, match="decimal must be a point or a comma, got ';'"):
        read_columns(file, "revenue", decimal=";")  # type: ignore[arg-type]


def test_the_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"revenue\n1\n2\n"))
    monkeypatch.setattr(sys, "stdin", stdin)
    np.testing.assert_array_equal(read_columns(Path("-"), "revenue")[0], [1, 2])


def test_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns: dict[str, Any] = {
        "revenue": [1.0, None, 3.0],
        "variant": ["a", "b", "a"],
        "price": ["$1", "2", None],
    }
    columns["day"] = np.array(["2026-01-01"] * 3, dtype="datetime64[s]")
    file = tmp_path / "without-a-suffix"
    parquet.write_table(pyarrow.table(columns), file)
    rewards, arms = read_columns(file, "revenue", "variant")
    np.testing.assert_array_equal(rewards, [1, NAN, 3])
    assert arms == ["a", "b", "a"]
    np.testing.assert_array_equal(read_columns(file, "price")[0], [1, 2, NAN])
    with pytest.raises(ValueError, match="day must"):
        read_columns(file, "day")
    with pytest.raises(ValueError, match="reward must be one of the columns revenue, variant, "):
        read_columns(file, "cost")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ValueError, match=r"pip install 'tailproof\[parquet\]'"):
        read_columns(file, "revenue")


def run(command: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, shlex.split(command), env={"COLUMNS": "200", "TERM": "dumb"})
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())
