"""The documentation names every public thing, and what it shows can be typed."""

import ast
import doctest
import io
import re
import shlex
import subprocess
import sys
import tomllib
from codeop import compile_command
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from typer.testing import CliRunner

import tailproof
from tailproof import gauntlet, recipes
from tailproof.cli import app

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "docs"))

import api_pages  # noqa: E402
import command_line  # noqa: E402
import excerpts  # noqa: E402
import policy_tables  # noqa: E402
import verdict_pages  # noqa: E402

DOCS = sorted((ROOT / "docs").rglob("*.md"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def listed(folder: Path) -> Iterator[str]:
    """Yield the names listed on the API pages, each with its module."""
    for page in folder.glob("*.rst"):
        module = name = ""
        for line in page.read_text().splitlines():
            if found := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = found[1]
            elif found := re.match(r"\.\. py:data:: (\S+)", line):
                name = found[1]
            elif found := re.match(r"   :module: (\S+)", line):
                yield f"{found[1]}.{name}"
            elif module and (found := re.fullmatch(r"   (\w+)", line)):
                yield f"{module}.{found[1]}"


def test_every_public_name_has_one_page(tmp_path: Path) -> None:
    api_pages.write(tmp_path)
    names = list(listed(tmp_path))
    assert len(names) == len(set(names))
    assert set(names) == set(api_pages.public_names())
    pages = "".join(page.read_text() for page in tmp_path.glob("*.rst"))
    for name in set(tailproof.__all__) - {"__version__"}:
        if isinstance(getattr(tailproof, name), ModuleType):
            assert pages.count(f".. automodule:: tailproof.{name}\n") == 1, name
        else:
            assert f"tailproof.{name}" in names


def test_every_policy_is_in_a_table() -> None:
    page, kinds = [(ROOT / "docs" / "algorithms.md").read_text()], policy_tables.tables()
    for kind in kinds:
        assert page[0].count(f"<!-- policies: {kind} -->") == 1, kind
    policy_tables.fill(None, "algorithms", page)
    assert "<!-- policies" not in page[0]
    for policy in recipes.names("policy").values():
        assert f"| {{py:obj}}`{policy.__name__} <" in page[0]


@pytest.mark.parametrize("command", command_line.commands())
def test_the_reference_has_every_option(command: str) -> None:
    told = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    sections = command_line.page().split("## tailproof ")
    (section,) = (text for text in sections if text.split("\n")[0] == command)
    (_, table) = told.output.split(" Options ")
    options = set(re.findall(r"--[a-z][a-z-]+", table)) - {"--help"}
    assert "--help" in table
    for option in options:
        assert f"`{option}`" in section


def test_the_reference_has_every_command() -> None:
    told = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200", "TERM": "dumb"}).output
    for name in [str(command.name) for command in app.registered_commands]:
        assert name in told
        assert f"## tailproof {name}\n" in command_line.page()


@pytest.mark.parametrize("tool", [excerpts, policy_tables, verdict_pages])
def test_the_examples_of_the_tools_are_right(tool: ModuleType) -> None:
    failed, tried = doctest.testmod(tool)
    assert tried
    assert not failed


def test_every_extra_is_explained() -> None:
    page = (ROOT / "docs" / "reference" / "extras.md").read_text()
    for extra in PROJECT["optional-dependencies"]:
        assert f"| `{extra}` |" in page


def test_the_version_is_the_same_everywhere() -> None:
    assert f"version: {PROJECT['version']}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"{{{PROJECT['version']}}}" in (ROOT / "docs" / "reference" / "citing.md").read_text()
    assert f"\n## {PROJECT['version']}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_readme_is_short_and_counts_right() -> None:
    readme = (ROOT / "README.md").read_text()
    assert readme.count("\n") <= 150
    assert f"| {len(gauntlet.problems('report'))} problems" in readme


PYTHON = re.compile(
    r"^```(?:\{code-cell\} python3|python)\n(?:---\n.*?^---\n)?(.*?)^```", re.S | re.M
)


def pasted(page: str) -> Iterator[list[str]]:
    """Yield the lines of each block of Python, as the button copies them."""
    for block in PYTHON.findall(page):
        lines = [line for line in block.splitlines() if not re.match("[:%!]", line)]
        prompts = [line[4:] for line in lines if line.startswith((">>>", "..."))]
        yield prompts if ">>>" in block else lines


@pytest.mark.parametrize("page", DOCS, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_can_be_pasted_into_a_plain_prompt(page: Path) -> None:
    """There a blank line ends a class, and only a blank line ends a loop."""
    for lines in pasted(page.read_text()):
        typed: list[str] = []
        for line in [*lines, ""]:
            typed.append(line)
            if compile_command("\n".join(typed), symbol="single") is not None:
                typed = []
        assert not typed


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_files_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]+`", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        assert target.startswith("http") or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_that_measure_exist(page: Path) -> None:
    """The target, or the file with its options and the names of its parts."""
    for command in re.findall(r"`((?:make|python|pytest) [\w ./=,-]+)`", page.read_text()):
        program, *words = command.split()
        if program == "make":
            assert re.search(rf"^{words[0]}:", (ROOT / "Makefile").read_text(), re.M), command
            continue
        (file,) = (word for word in words if word.endswith(".py"))
        named = set(words) - {file, "-m"}
        script = "slow" if program == "pytest" else (ROOT / file).read_text()
        assert (ROOT / file).exists(), command
        for word in named - {word for word in named if word.isdigit() or "/" in word}:
            assert word in script, command


def typed(tutorial: str) -> list[str]:
    """Return the cells of a tutorial, but for the first one, which is for notebooks."""
    text = (ROOT / "docs" / "tutorials" / tutorial).read_text()
    cells = re.findall(r"```\{code-cell\} python3\n(.*?)```", text, re.DOTALL)
    cells = [cell for cell in cells if not cell.startswith(":tags: [remove-cell]")]
    return [re.sub(r"\A---\n.*?\n---\n", "", cell, flags=re.DOTALL) for cell in cells]


def shown(cell: str, names: dict[str, Any]) -> Any:
    """Run a cell, and return what a notebook would show below it."""
    lines = ast.parse(cell)
    last = lines.body.pop() if isinstance(lines.body[-1], ast.Expr) else None
    exec(compile(lines, "cell", "exec"), names)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return None


def test_the_first_tutorial_works_when_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every cell runs; a tenth of the pulls and paths is enough for that."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for cell in typed("first-bandit.md"):
        exec(re.sub(r"(\b[1-9][\d_]*)00\b", r"\g<1>0", cell), names)
    assert isinstance(names["figure"], Figure)
    assert (tmp_path / "regret.png").stat().st_size > 10_000


def test_the_tutorial_on_judging_says_what_its_text_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for cell in typed("what-would-have-been.md"):
        if not cell.startswith("!"):
            shown(cell, names)
    found = names["found"]
    assert [own.verdict for own in found.values.values()] == ["trust"] * 6
    assert found["B on phones"].to_control.low > 0
    assert names["learned"]["RevenueUCB from scratch"].to_control.low > 0


@pytest.mark.slow
def test_the_month_in_a_shop_ends_as_its_text_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    printed: list[str] = []

    names: dict[str, Any] = {}
    for cell in typed("a-month-in-a-shop.md"):
        if cell.startswith("!"):
            command = f"{shlex.quote(sys.executable)} -m {cell[1:]}"
            done = subprocess.run(command, capture_output=True, text=True, check=True, shell=True)
            printed.append(done.stdout)
        else:
            shown(cell, names)
    advice, _, learned, paid, _ = printed
    assert "capped_mean(0.99): sale leads, and that is sure" in advice
    assert 'recipe = "lin_revenue_ucb()"' in advice
    assert "100000 of 100000 rows learned" in learned
    assert paid.startswith("It paid")
    assert names["found"]["exploring"]["words"].startswith("Exploring cost ")
    assert names["found"]["sound"]["fine"] is True
    judged = names["judged"]
    assert [own.verdict for own in judged.values.values()] == ["trust"] * 4
    assert judged["sale on phones"].to_control.low > 0
    assert tailproof.live.Agent(tailproof.LinRevenueUCB(), "checkout.db").verify().ok


def test_the_live_tutorial_shows_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pyplot.switch_backend("agg")
    names: dict[str, Any] = {}
    first, told, again, _, last_three, statuses, _, checked = (
        shown(cell, names) for cell in typed("live.md")
    )
    assert first.id == "visit 1"
    assert first.arm in names["middle"]
    assert told == ("kept", "duplicate", "unknown")
    assert again is True
    assert list(last_three["ticket"]) == [f"visit {visit}" for visit in (3997, 3998, 3999)]
    assert set(statuses.index) == {"told", "pending", "lost"}
    assert statuses.sum() == 4000
    frame = names["log"].frame
    assert (frame["events"] == 0).mean() == pytest.approx(0.2, abs=0.04)
    assert checked == (True, 4000, names["agent"].journal.outcome_count())
    told_of = frame[frame["status"] == "told"]["arm"].value_counts()
    assert told_of["green"] > told_of.sum() / 2  # green has the largest median
    pyplot.close("all")
    names["agent"].close()


def test_the_readme_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks of Python in one go, as they are pasted; after each comes what it prints."""
    monkeypatch.chdir(tmp_path)
    readme = (ROOT / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", readme, re.DOTALL)
    assert len(blocks) == readme.count("```python") == 3
    names: dict[str, Any] = {}
    for code, output in blocks:
        with redirect_stdout(io.StringIO()) as said:
            exec(code, names)
        assert said.getvalue() == output
    names["agent"].close()
    assert not (tmp_path / "shop.db").exists()  # which is the journal of shop.toml, written above


def test_the_readme_says_what_the_verdicts_say() -> None:
    """`make paper` fills in all three; until then none may be changed by hand."""
    said = [verdict_pages.count((ROOT / "docs/paper-tables.md").read_text(encoding="utf-8"))]
    for page in ("README.md", "docs/paper.md"):
        text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
        assert verdict_pages.SAID.findall(text) == said, page
