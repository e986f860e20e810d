"""The paper's figures, the folder they are kept in, and the report."""

import json
import re
import shlex
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from tailproof.cli import app
from tailproof.research.paper import SIZES, STUDIES, reproduction, select
from tailproof.research.paper.claims import Claim, Part, Share, below, judge_claims, ratio
from tailproof.research.paper.references import compare
from tailproof.research.paper.reproduction import Reproduction
from tailproof.research.report import KINDS, _plain, write_report
from tailproof.results.files import locked
from tailproof.results.regret import Result
from tailproof.simulation.cells import Cell
from tailproof.simulation.sweeps import sweep

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.xdist_group("paper")  # one run of all figures serves every test


def run(command: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, shlex.split(command), env={"COLUMNS": "120", "TERM": "dumb"})
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All figures at their smallest size, as the command leaves them."""
    out = tmp_path_factory.mktemp("paper") / "run"
    output = run(f"reproduce --size smoke --engine serial --out {out}")
    assert str(out / "report.html") in output
    return out


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two figures alone."""
    out = tmp_path_factory.mktemp("two") / "run"
    run(f"reproduce 1 7 --size smoke --engine serial --out {out}")
    return out


@pytest.fixture
def small(two: Path, tmp_path: Path) -> Path:
    """A copy of the folder with two figures, to change."""
    return Path(shutil.copytree(two, tmp_path / "small"))


@pytest.fixture
def _blank_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw nothing, for tests of what is around the pictures: drawing is most of a small run."""

    def blank(figure: Figure, file: Any, **settings: Any) -> None:
        if isinstance(file, Path):
            file.write_bytes(b"blank")
        else:
            file.write(b"blank")

    monkeypatch.setattr(Figure, "savefig", blank)


blank_pictures = pytest.mark.usefixtures("_blank_pictures")


def stamps(out: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in (out / "cells").glob("*.cell")}


def test_all_nine_figures_and_four_warnings_are_there() -> None:
    numbers = [int(n) for name in STUDIES for n in name.split("-") if n.isdigit()]
    assert sorted(numbers) == list(range(1, 10))
    assert {"pulls", "bonus", "shrinkage", "defects"} <= set(STUDIES)
    for study in STUDIES.values():
        assert set(study.SETTINGS) == set(SIZES)


def test_every_picture_is_drawn_and_every_claim_names_its_source(folder: Path) -> None:
    drawn = {path.name for path in (folder / "figures").iterdir()}
    names = [f"figure-{n}" for n in range(1, 10)]
    names += ["overview", "statements", "pulls", "bonus", "shrinkage", "defects"]
    names += ["choices", "best-arm", "decision-set"]
    names += ["guarantee-filter", "guarantee-sets", "guarantee-arms"]
    assert drawn == {f"{name}.{kind}" for name in names for kind in ("png", "svg")}
    kept = Reproduction.load(folder)
    for name, study in STUDIES.items():
        results = kept.results(name)
        for claim in study.check_claims(results):
            assert claim.text.endswith(".")
            assert claim.whose.startswith(("the paper, ", "the public scripts", "our question"))
            assert claim.parts


class Page(HTMLParser):
    """Collect the images, links and anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.images: list[dict[str, str | None]] = []
        self.links: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "img":
            self.images.append(given)
        self.links += [value for key, value in attrs if key in ("src", "href") and value]
        if given.get("id"):
            self.places.add(str(given["id"]))


def test_the_report_works_offline_and_describes_every_picture(folder: Path) -> None:
    text = (folder / "report.html").read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    assert len(page.images) == 21
    for image in page.images:
        assert len(image["alt"] or "") > 40
        assert "nan" not in str(image["alt"])
    for link in page.links:
        assert link.startswith("data:") or link.removeprefix("#") in page.places
    assert not re.search(r"@import|url\(|<script|<link rel=.stylesheet", text)
    assert page.places >= set(STUDIES)
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text
    first = text.index("Verdicts")
    assert first < min(text.index(f'<section id="{name}"') for name in STUDIES)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
def test_the_report_opens_in_a_browser(folder: Path, tmp_path: Path) -> None:
    options = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking"
    options += " --disable-component-update --disable-sync --enable-logging=stderr --dump-dom"
    page = (folder / "report.html").resolve().as_uri()
    done = subprocess.run(
        ["chromium", *options.split(), f"--user-data-dir={tmp_path}", page],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.count("<section") == len(STUDIES)
    assert "CONSOLE" not in done.stderr
    assert "Failed to load resource" not in done.stderr


def test_the_report_shows_the_reference_and_the_verdicts(folder: Path) -> None:
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert text.count("difference in s.e.") == 1
    assert '<figcaption class="soft">Figure 1: Five densities (left)' in text
    assert "Settings: 300 pulls a path; 3 (df = 3, 1.02, 1, 0.5) paths; 3 paths of the" in text
    assert "tailproof reproduce overview 1 2-3" in text
    words = (folder / "verdicts.md").read_text(encoding="utf-8")
    for name, study in STUDIES.items():
        assert study.TITLE in words
        for judged in judge_claims(study.check_claims(Reproduction.load(folder).results(name))):
            claim = f"{_plain(judged.claim.text)} ({_plain(judged.claim.whose)})"
            caveat = f", {judged.caveat}" if judged.caveat else ""
            assert f"| {claim} | **{judged.verdict}**{caveat} |" in words
            assert all(
                f"| {_plain(text)} | {found} |" in words for text, found, *_ in judged.rows()
            )


@blank_pictures
def test_the_report_starts_with_a_tally_and_folds_the_rest(folder: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(folder, tmp_path / "run"))
    sections = write_report(out)
    verdicts = Counter(judged.kind for section in sections for judged in section.claims)
    text = (out / "report.html").read_text(encoding="utf-8")
    tally = text[text.index('<table class="tally">') : text.index("</table>")]
    counts = [int(count) for count in re.findall(r">(\d+)</td>", tally)]
    for word, own, papers in zip(KINDS, counts[5:], counts[:5], strict=True):
        assert own + papers == verdicts[word]
    folded = re.sub(r"<details.*?</details>", "", text, flags=re.S)
    assert folded.count("<tr>") == 3  # the tally
    assert "Differences" not in folded


@blank_pictures
def test_a_finished_study_is_not_run_again(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def again(*args: object) -> None:
        raise AssertionError("it was finished")

    monkeypatch.setattr(STUDIES["7"], "run", again)
    run(f"reproduce 7 --size smoke --engine serial --out {small}")
    next((small / "results" / "7").iterdir()).write_bytes(b"damaged")
    with pytest.raises(AssertionError, match=r"1 == 0|finished"):
        run(f"reproduce 7 --size smoke --engine serial --out {small}")


def test_what_is_finished_is_not_simulated_again(small: Path) -> None:
    before = stamps(small)
    page, record = (small / "report.html").read_bytes(), (small / "run.json").read_bytes()
    lost = small / "results" / "7" / "regret-df-1.npz"
    content = lost.read_bytes()
    lost.unlink()
    damaged = next((small / "cells").glob("*.cell"))
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:-1])
    run(f"reproduce 7 --size smoke --engine serial --out {small}")
    after = stamps(small)
    assert {name for name in before if after[name] != before[name]} == {damaged.name}
    assert damaged.read_bytes() == whole
    assert lost.read_bytes() == content
    assert (small / "report.html").read_bytes() == page
    assert (small / "run.json").read_bytes() == record


def test_the_report_is_drawn_from_results_alone(small: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(small, copy, ignore=shutil.ignore_patterns("cells", "figures", "*.html"))
    assert "What holds" in run(f"report {copy}")
    assert (copy / "report.html").read_bytes() == (small / "report.html").read_bytes()
    assert (copy / "figures" / "figure-7.svg").exists()
    assert not (copy / "cells").exists()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            "reproduce 12 --size smoke",
            "figure '12' is unknown; choose all, or some of overview, 1, 2-3, ",
        ),
        ("reproduce 1 --size huge", "size must be one of smoke, quick, paper, got 'huge'"),
        (
            "reproduce 1 --size smoke --seed 1",
            "out .* holds results of seed 0, not 1; choose a new folder",
        ),
        ("reproduce 1 --size quick", "out .* holds results of size smoke, not quick; choose a new"),
        (
            "reproduce 7 --size smoke --engine x",
            "engine must be one of serial, processes, dask, ray, compiled, cuda",
        ),
        ("reproduce 7 --size smoke --workers -1", "workers must be a whole number of at least 0"),
    ],
)
def test_bad_input_is_one_sentence(folder: Path, command: str, words: str) -> None:
    before = stamps(folder)
    output = run(f"{command} --out {folder}", code=2)
    assert re.search(words, output.replace("\n", " ")), output
    assert "Traceback" not in output
    assert stamps(folder) == before


def test_a_foreign_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    for command in ("reproduce 1 --size smoke --out", "report"):
        output = run(f"{command} {tmp_path}", code=2)
        assert "out must be a folder written by tailproof reproduce" in output
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
    (tmp_path / "run.json").write_text("[]")
    assert "out must be" in run(f"report {tmp_path}", code=2)
    assert run("reproduce 1 --size smoke --out /dev/null/x", code=2).startswith("tailproof: ")
    run(f"reproduce 7 --size smoke --engine spark --out {tmp_path / 'new'}", code=2)
    assert not (tmp_path / "new").exists()
    assert run(f"report {tmp_path / 'absent'}", code=2).startswith("tailproof: ")


@blank_pictures
def test_a_folder_of_other_versions_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(f"reproduce 1 --size smoke --out {tmp_path / 'r'}")
    monkeypatch.setattr(reproduction, "provenance", lambda: {"numpy": "1.0"})
    words = r"holds results of numpy \d\S+, not 1.0; choose a new folder"
    output = run(f"reproduce 1 --size smoke --out {tmp_path / 'r'}", 2)
    assert re.search(words, output.replace("\n", " "))


@blank_pictures
def test_a_stopped_run_keeps_finished_studies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "r"
    whole = sweep

    def stopped(plans: object, **more: object) -> object:
        if "df = 3" in plans:  # type: ignore[operator]
            raise KeyboardInterrupt
        return whole(plans, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(reproduction, "sweep", stopped)
    assert "stopped" in run(f"reproduce 7 pulls --size smoke --engine serial --out {out}", 130)
    assert list(json.loads((out / "run.json").read_text())["seconds"]) == ["7"]
    assert len(stamps(out)) == 17
    assert "│ 7 " in run(f"report {out}")


@blank_pictures
def test_a_finished_best_arm_study_is_not_simulated_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = f"reproduce best-arm --size smoke --engine serial --out {tmp_path / 'r'}"
    run(command)
    before = stamps(tmp_path / "r")
    assert len(before) > 10
    monkeypatch.setattr(Cell, "run", None)
    run(command)
    assert stamps(tmp_path / "r") == before


@blank_pictures
def test_a_run_that_was_stopped_before_run_json_resumes(tmp_path: Path) -> None:
    out = tmp_path / "r"
    out.mkdir()
    (out / "run.json.77.part").write_text('{"format": "tailpr')
    (out / ".lock").touch()
    command = f"reproduce 7 --size smoke --engine serial --out {out}"
    run(command)
    before, record = stamps(out), (out / "run.json").read_text()
    assert not list(out.glob("*.part"))
    (out / "run.json").write_bytes(b"")
    assert "out must be a folder written by tailproof reproduce" in run(f"report {out}", code=2)
    run(command)
    assert stamps(out) == before
    again = json.loads((out / "run.json").read_text())
    assert again["files"] == json.loads(record)["files"]


def test_a_folder_serves_one_reproduction_at_a_time(small: Path) -> None:
    with locked(small):
        words = "another run is using the folder"
        assert words in run(f"reproduce 7 --size smoke --out {small}", code=2)


def altered(record: dict[str, Any]) -> Iterator[str]:
    """Give altered versions of run.json, some of which point to files elsewhere."""
    yield "[" * 100_000
    yield "{}"
    yield json.dumps(record).replace('"seed": 0', f'"seed": {"9" * 5000}')
    files = record["files"]["7"]
    (key, file), *_ = files.items()
    changes: list[dict[str, Any]] = [
        {"size": "huge"},
        {"size": []},
        {"seed": "0"},
        {"versions": "0.2.0"},
        {"versions": {"tailproof": 2}},
        {"seconds": {}},
        {"seconds": {"1": "long", "7": 1}},
        {"seconds": {"1": 1e999, "7": 1}},
        {"seconds": {"1": 1, "8": 1}, "files": {"1": {}, "8": files}},
        {"files": []},
        {"files": {"1": {}, "7": []}},
        {"files": {"1": {}, "7": {}}},
        {"files": {"1": {}, "7": {"other": file}}},
        {"files": {"1": {}, "7": {key: "regret-absent.npz"}}},
        {"files": {"1": {}, "7": {key: f"../7/{file}"}}},
        {"files": {"1": {}, "7": {key: f"/{file}"}}},
        {"files": {"1": {}, "7": {key: f"regret-x/../{file}"}}},
        {"files": {"1": {}, "7": {key: f"names-{file}"}}},
        {"files": {"1": {}, "7": {key: 3}}},
        {"out": "elsewhere"},
        {"more": 1},
    ]
    for change in changes:
        yield json.dumps(record | change)


@blank_pictures
def test_an_altered_run_json_is_refused_in_one_sentence(small: Path) -> None:
    record = json.loads((small / "run.json").read_text())
    (small / "results" / "7" / "names-regret-df-1.npz").write_bytes(
        next((small / "results" / "7").glob("*.npz")).read_bytes()
    )
    for text in altered(record):
        (small / "run.json").write_text(text)
        output = run(f"report {small}", code=2)
        assert output.startswith("tailproof: "), text
        assert output.count("\n") == 1, text
    (small / "run.json").write_text(json.dumps(record))
    run(f"report {small}")


@blank_pictures
def test_texts_of_run_json_are_escaped(small: Path) -> None:
    record = json.loads((small / "run.json").read_text())
    record["versions"] = {"<script>": "`*1*` [here](http://x) <img>\n# more"}
    (small / "run.json").write_text(json.dumps(record))
    run(f"report {small}")
    words = (small / "verdicts.md").read_text()
    assert r"\<script> \`\*1\*\` [here\](http://x) \<img> # more" in words
    page = (small / "report.html").read_text()
    assert "<script>" not in page
    assert "<img>" not in page


def test_select_knows_figures_by_number() -> None:
    assert select(["all"]) == list(STUDIES)
    assert select(["9", "4", "5"]) == ["4-5", "8-9"]


def test_parts_agree_disagree_or_stay_open() -> None:
    """Ten numbers each; the gap of 5 is 11 standard errors, the gap of 0.1 a quarter of one."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(0, 1, 10), rng.normal(0, 1, 10)
    assert below("", x - 5, y).agrees(0.95) is True
    assert below("", x + 5, y).agrees(0.95) is False
    assert below("", x - x.mean(), y - y.mean() + 0.1).agrees(0.95) is None
    assert below("", np.ones(3), np.ones(3) * 2).agrees(0.95) is True
    assert below("", np.ones(1), np.ones(1) * 2).agrees(0.95) is None  # one path tells nothing
    assert ratio("", x + 100, y + 100, at_most=1.2).agrees(0.95) is True
    assert ratio("", x + 200, y + 100, at_most=1.2).agrees(0.95) is False
    assert ratio("", x - x.mean() + 100, y - y.mean() + 100, at_most=1).agrees(0.95) is None
    assert Share("", 0.0, 0.0, 0.05, 200).agrees(0.95) is True
    assert Share("", 0.0, 0.0, 0.05, 50).agrees(0.95) is None
    assert Share("", 0.5, 0.0, 0.05, 50).agrees(0.95) is False


def test_open_is_not_disagree() -> None:
    yes, no = Part("yes", 1, 0, 2), Part("no", 3, 0, 2)
    perhaps = below("perhaps", np.array([1.0, 3.0]), np.array([2.0, 2.5]))
    cases = ([yes, yes], [yes, no], [yes, perhaps], [no, perhaps], [perhaps], [no, yes, perhaps])
    found = judge_claims(Claim("", "", parts) for parts in cases)
    assert [(each.verdict, each.deciding.split(":")[0]) for each in found] == [
        ("holds", "yes"),
        ("mixed", "no"),
        ("open", "perhaps"),
        ("does not hold", "no"),
        ("open", "perhaps"),
        ("mixed", "no"),
    ]


def test_more_parts_make_wider_intervals() -> None:
    """The intervals of ten parts hold together: each is taken at 99.5 %."""
    rng = np.random.default_rng(0)
    part = below("gap", rng.normal(-0.8, 1, 10), np.zeros(10))
    (alone,), (many,) = (
        judge_claims([Claim("", "", [part])]),
        judge_claims([Claim("", "", [part] * 10)]),
    )
    assert alone.level == 0.95
    assert many.level == 0.995
    assert (alone.verdict, many.verdict) == ("holds", "open")


def test_intervals_cover_as_they_say() -> None:
    """2000 intervals at 95 %: coverage within 4 standard errors, false alarm below 1e-4."""
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(2000):
        shared = rng.normal(0, 5, 10)  # what paired paths have in common
        part = below("", shared + rng.normal(1, 1, 10), shared + rng.normal(0, 3, 10))
        low, high = part.interval(0.95)
        covered += low <= 1 <= high
    assert abs(covered / 2000 - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 2000)


def test_the_comparison_is_in_standard_errors(folder: Path) -> None:
    result = Reproduction.load(folder).results("2-3")["df = 3"]
    assert isinstance(result, Result)
    regret = result.curves["uniform"].regret[:, -1]
    (row,) = compare(result, {"uniform": (float(regret.mean()) - 1, 0.0)})
    assert row.errors == pytest.approx(np.sqrt(len(regret)) / regret.std(ddof=1))
    (row,) = compare(result, {"uniform": (float(regret.mean()) - 1, 40.0)})
    own = regret.var(ddof=1) / len(regret)
    assert row.errors == pytest.approx(1 / np.sqrt(own + 40.0**2 / 10))  # a reference of 10 paths


def test_the_picture_of_the_readme_has_a_command() -> None:
    readme = (ROOT / "README.md").read_text()
    picture = re.search(r"!\[[^]]{40,}\]\((docs/images/[^)]+)\)", readme)
    assert picture is not None
    assert (ROOT / picture[1]).stat().st_size < 400_000
    assert picture[1] in (ROOT / "Makefile").read_text()
