"""Files as people spoil them: read right and said, or refused in a sentence; never changed unsaid.

Each case has what is asked with it, and either the words of the refusal or the rewards and a note.
"""

import gzip
import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tailproof import records
from tailproof.cli import app

NAN = np.nan


class Case(NamedTuple):
    """A file, options, and what becomes of it."""

    text: str
    options: dict[str, Any]
    refused: str = ""
    rewards: tuple[float, ...] = ()
    note: str = ""


SKIP: dict[str, Any] = {"skip_bad": True}
CASES = {
    "a typo by case and blank": Case(
        "1,bold\n2,Bold \n3,bold\n4,classic\n",
        {},
        "column arm has 'Bold' once beside 'bold' 2 times: did you mean 'bold'?",
    ),
    "the same, merged": Case(
        "1,bold\n2,Bold \n3,bold\n4,classic\n",
        {"spelling": "merge"},
        rewards=(1, 2, 3, 4),
        note="'Bold' (once) was read as 'bold'.",
    ),
    "the same, kept": Case("1,bold\n2,BOLD\n", {"spelling": "keep"}, rewards=(1, 2)),
    "a blank within a name": Case("1,new page\n2,newpage\n2,new page\n", {}, "did you mean"),
    "a dollar among plain numbers": Case(
        "5,a\n$12.50,b\n7,a\n", {}, "beside 2 plain numbers it has '$12.50' in line 3"
    ),
    "the same, skipped": Case("5,a\n$12.50,b\n7,a\n", SKIP, rewards=(5, 7), note="line 3"),
    "points that may separate thousands": Case(
        "950,a\n1.234,b\n", {}, "'1.234' in column reward is ambiguous: pass decimal=','"
    ),
    "the same, told": Case("950,a\n1.234,b\n", {"decimal": ","}, rewards=(950, 1234)),
    "points beside four digits": Case("1950,a\n1.234,b\n", {}, rewards=(1950, 1.234)),
    "points after zero": Case("950,a\n0.234,b\n", {}, rewards=(950, 0.234)),
    "zeros without a sign": Case("0,a\n$12.50,b\n$0,a\n", {}, rewards=(0, 12.5, 0)),
    "two currencies": Case("€5,a\n£6,b\n€7,a\n", {}, "beside 2 with € it has '£6' in line 3"),
    "words among numbers": Case(
        "5,a\nfree,b\n7,a\n", {}, "must contain numbers, got 'free' in line 3: mend it"
    ),
    "a word among prices": Case("$5,a\nfree,b\n", {}, "must contain numbers, got 'free' in line 3"),
    "words, skipped": Case(
        "5,a\nfree,b\n7,a\n\nx,b\n",
        SKIP,
        rewards=(5, 7),
        note="left out: column reward must contain numbers, got 'free' in line 3, 'x' in line 6.",
    ),
    "every row bad": Case("x,a\ny,b\n", SKIP, "no row can be read. 2 rows were left out"),
    "a comma within a number": Case("1,234,a\n5,b\n", {}, "3 cells separated by ',' instead of 2"),
    "the same, skipped ": Case("1,234,a\n5,b\n", SKIP, rewards=(5,), note="quote numbers"),
    "a quotation mark never closed": Case('5,a\n"6,b\n7,a\n', {}, "unexpected end of data in line"),
    "missing rewards counted": Case("5,a\n,b\nn/a,a\n", {}, rewards=(5, NAN, NAN)),
    "missing rewards refused": Case(
        "5,a\n,b\nn/a,a\n", {"missing": "refuse"}, "has no reward in line 3, line 4 (2 in all)"
    ),
    "missing arms": Case("5,a\n6,\n7,NULL\n", {}, "names no arm in line 3, line 4 (2 in all)"),
    "missing arms, skipped": Case("5,a\n6,\n7,b\n", SKIP, rewards=(5, 7), note="line 3"),
    "a total at the end": Case("5,a\n7,b\n12,\n", {}, "names no arm in line 4"),
    "per cent": Case("5%,a\n6%,b\n", {}, "must contain numbers, got '5%' in line 2"),
    "hexadecimal": Case("0x10,a\n6,b\n", {}, "got '0x10' in line 2"),
    "two decimal marks": Case('1.5,a\n"2,5",b\n', {}, "got '2,5' in line 3"),
    "brackets for losses": Case("(5),a\n6,b\n", {}, rewards=(-5, 6)),
    "a typographic minus": Case("−5,a\n6,b\n", {}, rewards=(-5, 6)),
    "thin spaces": Case("1\u202f234.5,a\n6,b\n", {}, rewards=(1234.5, 6)),
    "infinite rewards": Case("inf,a\n-inf,b\n", {}, rewards=(np.inf, -np.inf)),
    "an overflow": Case("1e999,a\n6,b\n", {}, rewards=(np.inf, 6)),
    "a sign that nobody sees": Case("1,a\u200b\n2,a\n3,a\n4,b\n", {}, "did you mean 'a'?"),
    "a Cyrillic letter": Case(
        "1,A\n2,\u0410\n3,A\n4,b\n",
        {},
        "has '\u0410' once beside 'A' 2 times, one of them in Cyrillic letters: did you mean 'A'?",
    ),
    "Cyrillic names": Case(
        "1,\u0432\n2,\u0412\n3,\u0432\n4,\u0431\n", {}, "beside '\u0432' 2 times"
    ),
    "two ways to write an accent": Case(
        "1,cafe\u0301\n2,caf\u00e9\n3,caf\u00e9\n4,b\n", {}, "did you mean 'caf\u00e9'?"
    ),
    "numbers with a zero more": Case("1,1\n2,1\n3,1.0\n4,01\n", {}, "has '1.0' once beside '1'"),
    "a header in the middle": Case("1,a\nreward,arm\n2,b\n", {}, "got 'reward' in line 3"),
    "an error of a sheet": Case("#DIV/0!,a\n2,b\n", {}, "got '#DIV/0!' in line 2"),
    "a minus behind": Case("5-,a\n6,b\n", {}, "got '5-' in line 2"),
    "crowns": Case('"1 234,50 kr",a\n"-20,00 kr",b\n', {}, rewards=(1234.5, -20)),
    "reais": Case('"R$ 1.234,50",a\n"-R$ 20,00",b\n', {}, rewards=(1234.5, -20)),
    "dollars of a country": Case('"US$1,234.50",a\n"US$20",b\n', {}, rewards=(1234.5, 20)),
    "dollars of two countries": Case("US$5,a\nCA$6,b\nUS$7,a\n", {}, "it has 'CA$6' in line 3"),
    "a word that holds a code": Case("5 PLNX,a\n6 PLNX,b\n", {}, "got '5 PLNX' in line 2"),
    "a suffix for thousands": Case("1.2k,a\n6,b\n", {}, "got '1.2k' in line 2"),
    "two codes of currencies": Case("5 USD,a\n6 EUR,b\n7 USD,a\n", {}, "it has '6 EUR' in line 3"),
    "apostrophes": Case("1'234.50,a\n2'000.00,b\n", {}, rewards=(1234.5, 2000)),
    "digits of other scripts": Case("\u0661\u0662,a\n\uff11,b\n", {}, rewards=(12, 1)),
    "lakh and crore": Case('"12,34,567.50",a\n"1,00,000",b\n', {}, rewards=(1234567.5, 100000)),
    "a formula": Case("=1+1,a\n6,b\n", {}, "got '=1+1' in line 2"),
    "a date for a price": Case("12. Mai,a\n6,b\n", {}, "got '12. Mai' in line 2"),
    "separators at the end": Case("5,a,,\n6,b,,\n", {}, rewards=(5, 6)),
    "blank lines": Case("5,a\n\n\n6,b\n  \n", {}, "names no arm in line 6"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_spoiled_file(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    file = tmp_path / "r.csv"
    file.write_text(f"reward,arm\n{case.text}", encoding="utf-8")
    options = "".join(
        f" --{option.replace('_', '-')}{'' if value is True else f' {value}'}"
        for option, value in case.options.items()
    )
    if case.refused:
        with pytest.raises(ValueError, match=re.escape(case.refused)):
            records(file, **case.options)
        said = run(f"calibrate {file}{options}")
        assert said.startswith("tailproof: ")
        assert "Traceback" not in said
        return
    found = records(file, **case.options)
    np.testing.assert_array_equal(found.reward, case.rewards)
    assert case.note in " ".join(found.notes)
    assert bool(found.notes) == bool(case.note)
    assert "Traceback" not in run(f"calibrate {file}{options}")


def run(command: str) -> str:
    done = CliRunner().invoke(app, shlex.split(command), env={"COLUMNS": "400", "TERM": "dumb"})
    assert done.exit_code in (0, 2), done.output
    return done.output


WHOLE: dict[str, tuple[bytes, str]] = {
    "a title above the header": (
        b"Sales\n\nreward,arm\n1,a\n",
        "named in line 3: remove the lines",
    ),
    "a comment above it": (b"# of May\nreward,arm\n1,a\n", "named in line 2: remove the lines"),
    "blank lines alone": (b"\n \n", "is empty"),
    "a page of the web": (b"<html><td>reward</td></html>", "must be one of the columns <html>"),
    "UTF-16 without its mark": ("reward,arm\n1,a\n".encode("utf-16-le"), "cannot decode"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "cannot decode"),
    "compressed twice": (gzip.compress(gzip.compress(b"reward\n1\n")), "cannot decode"),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_spoiled_file_as_a_whole(name: str, tmp_path: Path) -> None:
    file = tmp_path / "r.csv"
    content, words = WHOLE[name]
    file.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(words)):
        records(file)
    assert run(f"calibrate {file}").startswith("tailproof: ")


@pytest.mark.parametrize(
    "content",
    [
        b"sep=;\r\nreward;arm\r\n1,5;a\r\n2;b\r\n",
        "reward,arm\n1.5,a\n2,b\n".encode("utf-32"),
        b"Reward,ARM\n1.5,a\n2,b\n",
        "reward\u00a0,\u00a0arm\n1.5,a\n2,b\n".encode(),
    ],
)
def test_unusual_files_that_are_read(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "r.csv"
    file.write_bytes(content)
    found = records(file)
    assert (found.reward.tolist(), found.arms) == ([1.5, 2.0], ("a", "b"))
    file.write_bytes(content.replace(b"2", b"x"))
    if not content.startswith(b"\xff"):
        with pytest.raises(ValueError, match=f"line {3 + content.startswith(b'sep')}"):
            records(file)


def test_a_folder_whose_files_differ(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pd.DataFrame({"reward": [1.0], "arm": ["a"]}).to_parquet(tmp_path / "1.parquet")
    pd.DataFrame({"revenue": [2.0], "arm": ["b"]}).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"2\.parquet has no column reward, which other files"):
        records(tmp_path)


def test_times_in_other_units_than_seconds() -> None:
    seconds = 1767225600 + 86400 * np.arange(4)
    for factor, unit in ((10**3, "milli"), (10**6, "micro"), (10**9, "nano")):
        found = records(arm=list("abab"), reward=[1, 2, 3, 4], time=seconds * factor)
        assert found.time == pytest.approx(seconds)
        assert found.notes == (f"Column time was read as {unit}seconds since 1970.",)
    assert records(arm=list("abab"), reward=[1, 2, 3, 4], time=seconds).notes == ()


def test_times_that_stand_for_none() -> None:
    given: dict[str, Any] = {"arm": list("aba"), "reward": [1.0, 2.0, 3.0]}
    for odd in (0, 253402300799):
        with pytest.raises(ValueError, match="column time has a time 20 years from the others in"):
            records(time=[1767225600, odd, 1767225601], **given)
    assert records(time=[0, 1, 2], **given).n == 3


def test_the_index_of_a_data_frame_and_a_sheet_with_lines_above(tmp_path: Path) -> None:
    frame = pd.DataFrame({"reward": [1.0, 2.0, 3.0], "arm": list("aba")})
    assert records(frame.set_index("arm")).arms == ("a", "b")
    frame.to_excel(tmp_path / "r.xlsx", index=False, startrow=3)
    with pytest.raises(
        ValueError, match=r"columns of r\.xlsx are named in row 4: remove the lines"
    ):
        records(tmp_path / "r.xlsx")


def test_cells_of_unusual_kinds() -> None:
    frame = pd.DataFrame({"reward": [True, False], "arm": [b"a", b"b"], "unit": [True, False]})
    found = records(frame)
    assert (found.reward.tolist(), found.arms) == ([1.0, 0.0], ("a", "b"))
    days = pd.DataFrame({"reward": [1, 2], "arm": pd.to_datetime(["2026-01-01", "2026-01-02"])})
    assert records(days).arms == ("2026-01-01", "2026-01-02")
    with pytest.raises(ValueError, match="must contain numbers, got lists"):
        records(pd.DataFrame({"reward": [[1.0], [2.0]], "arm": ["a", "b"]}))


def test_a_second_row_of_an_id(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"reward": [1, 2, 3, 4], "arm": list("abab"), "order": ["x", "y", "x", "x"]}
    )
    with pytest.raises(ValueError, match=r"repeats 'x' \(row 1\) in row 3"):
        records(frame, id="order")
    found = records(frame, id="order", skip_bad=True)
    assert found.reward.tolist() == [1, 2]
    assert found.notes[0].startswith(
        "2 rows were left out: column order repeats 'x' (row 1) in row 3"
    )


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            {"time": ["yesterday", "2026-01-01"]},
            "must have times as in .* got 'yesterday' in row 1",
        ),
        ({"time": ["01/02/2026", "03/04/2026"]}, "is the day first or the month"),
        ({"time": ["2026-01-01", None]}, "column time has no time in row 2"),
        ({"time": ["2026-01-01T09:00", "2026-01-01T09:00Z"]}, "with a time zone beside"),
        ({"time": [46023.25, 46024.5]}, "46023.25, which may be a day of a spreadsheet"),
        ({"unit": ["7", "7.0"]}, "column unit has '7.0' beside '7'"),
        ({"unit": ["u", "1.23457E+15"]}, "number without its last digits, so customers are mixed"),
        ({"unit": ["u", None]}, "column unit names no unit in row 2"),
        ({"propensity": [0.5, 0.0]}, r"cannot have been chosen\), got 0 in row 2"),
        ({"propensity": [50, 50]}, "is it in per cent"),
        ({"propensity": ["half", 0.5]}, "must contain numbers, got 'half' in row 1"),
        ({"features": [[1.0], [np.inf]]}, "features must be finite, got inf for x0 in row 2"),
        ({"arms": ["a", "c"]}, "must be one of a, c, got 'b' in row 2"),
        ({"reward": [[1, 2], [3, 4]]}, "reward must be an array of one axis"),
        ({"reward": [pd.Timestamp("2026-01-01")] * 2}, "must contain numbers"),
        ({"colour": ["a", "b"]}, "colour is no option here: these are: arm, reward, unit"),
        ({"rewards": [1, 2]}, "rewards is no option here: did you mean reward"),
        ({"skip_bad": "yes"}, "skip_bad must be True or False"),
        ({"missing": "drop"}, "missing must be 'count' or 'refuse'"),
    ],
)
def test_bad_columns_are_told(columns: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"arm": ["a", "b"], "reward": [1.0, 2.0]}
    with pytest.raises(ValueError, match=words):
        records(**(given | columns))


def test_local_dates_that_can_be_read_in_one_way() -> None:
    given: dict[str, Any] = {"arm": ["a", "b"], "reward": [1.0, 2.0]}
    day = pd.Timestamp("2026-12-31", tz="UTC").timestamp()
    for texts in (
        ["31.12.2026", "1.1.2027"],
        ["31/12/2026", "1/1/2027"],
        ["12/31/2026", "1/1/2027"],
    ):
        time = records(time=texts, **given).time
        assert time is not None
        assert time.tolist() == [day, day + 86400]


def test_a_missing_extra_is_named_with_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    pd.DataFrame({"reward": [1.0], "arm": ["a"]}).to_excel(tmp_path / "r.xlsx", index=False)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ValueError, match=r"pip install 'openpyxl>=3.1.5'"):
        records(tmp_path / "r.xlsx")
