"""How long files, functions and commands of the library may be."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tailproof

SOURCE = Path(tailproof.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
LONGEST_FILE, LONGEST_FUNCTION, LONGEST_COMMAND = 600, 60, 40
"""In lines, with signature and docstring: what fits on a screen or two, and can be read at once."""


def name_of(file: Path) -> str:
    return file.relative_to(SOURCE).as_posix()


def functions(file: Path) -> Iterator[tuple[str, int]]:
    """The functions of a file, and how many lines each has."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def is_command(file: Path, function: str) -> bool:
    return file.parent.name == "cli" and function.endswith("_command")


def test_no_file_is_long() -> None:
    lengths = {name_of(file): len(file.read_text(encoding="utf-8").splitlines()) for file in FILES}
    assert not {name for name, lines in lengths.items() if lines > LONGEST_FILE}


@pytest.mark.parametrize("rule", ["functions", "commands"])
def test_no_function_is_long(rule: str) -> None:
    most, wanted = (LONGEST_COMMAND, True) if rule == "commands" else (LONGEST_FUNCTION, False)
    found = {
        f"{name_of(file)}:{name}"
        for file in FILES
        for name, lines in functions(file)
        if lines > most and is_command(file, name) == wanted
    }
    assert not found
