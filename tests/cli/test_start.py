"""What is imported when, what is public, and what a missing package costs: one sentence."""

import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import import_module
from itertools import chain
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tailproof
from tailproof.cli import app

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
NEEDED = chain(PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
OURS = {re.match(r"[\w-]+", text)[0].replace("-", "_") for text in NEEDED}  # type: ignore[index]
LIBRARY = {"numpy", "scipy"}
SWEEPS = {"joblib", "threadpoolctl"}
COMMAND = "import sys; sys.argv = ['tailproof', {}]; from tailproof.__main__ import main; main()"


def loaded(code: str) -> set[str]:
    """Return the installed packages that a new interpreter has imported after the code."""
    report = """
import atexit, sys
from importlib.metadata import packages_distributions
names = set(packages_distributions()) - set(sys.modules)
atexit.register(lambda: print(*names & {name.partition(".")[0] for name in sys.modules}))
"""
    words = [sys.executable, "-c", report + code]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split()) - {"tailproof"}


def test_importing_the_library_imports_nothing_else() -> None:
    assert loaded("import tailproof") == set()


@pytest.mark.parametrize(
    ("code", "allowed"),
    [
        ("from tailproof import OFUL, Filtered, calibrate, noise", LIBRARY),
        ("from tailproof import bestarm, guests, live, testing", LIBRARY),
        ("from tailproof import *", LIBRARY | SWEEPS),
    ],
)
def test_a_package_is_imported_when_it_is_used(code: str, allowed: set[str]) -> None:
    assert loaded(code) & OURS <= allowed


@pytest.mark.parametrize("command", ["--help", "--version", "simulate --help", "serve --help"])
def test_help_needs_no_numbers(command: str) -> None:
    words = ", ".join(map(repr, command.split()))
    assert loaded(COMMAND.format(words)) & OURS <= {"rich", "typer"}


def test_completion_shows_what_is_public() -> None:
    shown = dir(tailproof)
    assert shown == sorted(tailproof.__all__)
    assert {"live", "guests", "figures", "gauntlet", "testing", "OFUL", "simulate"} <= set(shown)
    assert all(hasattr(tailproof, name) for name in shown)
    with pytest.raises(AttributeError, match="module 'tailproof' has no attribute 'nonsense'"):
        tailproof.nonsense  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("name", sorted(set(tailproof._MODULES) - {"hosts"}))
def test_completion_of_a_module_shows_what_is_public(name: str) -> None:
    module = getattr(tailproof, name)
    shown = dir(module)
    assert shown == sorted(module.__all__)
    assert all(hasattr(module, name) for name in shown)


def test_type_checkers_know_what_is_public() -> None:
    """What a star imports from each room is what the library finds there, under one name each."""
    source = Path(str(tailproof.__file__)).read_text()
    rooms = [import_module(f"tailproof.{room}") for room in tailproof._ROOMS]
    for room in rooms:
        assert f"    from {room.__name__} import *\n" in source
    public = [name for room in rooms for name in room.__all__]
    assert len(public) == len(set(public))


@pytest.mark.parametrize(
    ("package", "command", "extra"),
    [
        ("uvicorn", "demo", "serve"),
        ("fastapi", "serve shop.toml", "serve"),
        ("psycopg", "log postgresql://me@localhost/x", "postgres"),
        ("pyarrow", "log shop.db --out new.parquet", "parquet"),
        ("pyarrow", "calibrate r.parquet --reward x", "parquet"),
        ("openpyxl", "calibrate r.xlsx --reward x", "excel"),
    ],
)
def test_a_missing_package_names_its_extra(
    package: str, command: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.parquet").write_bytes(b"PAR1")
    with zipfile.ZipFile("r.xlsx", "w") as book:
        book.writestr("xl/workbook.xml", "")
    monkeypatch.setitem(sys.modules, package, None)
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == 2, done.exception
    words = rf"tailproof: .*{package}.*: pip install .*{package}.*, or in a clone .*\n"
    assert re.fullmatch(words, done.output)
    assert f"pip install '.[{extra}]'" in done.output
