"""`tailproof report`: the page of an experiment as one file, and as JSON."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tailproof import RevenueUCB
from tailproof.cli import app
from tailproof.live import Agent

FILE = """
[service]
journal = "journals"

[experiments.shop]
recipe = "revenue_ucb"
aim = "capped_mean(0.99)"
silence = "lost"
control = { arm = "red", share = 0.2 }

[experiments.other]
recipe = "ucb1"
silence = "lost"
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("journals").mkdir()
    Path("shop.toml").write_text(FILE)
    with Agent(RevenueUCB(), "journals/shop.db", control=("red", 0.2)) as agent:
        for i in range(30):
            agent.tell(agent.ask(["red", "</script>"]).id, float(i % 3))
    return tmp_path


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["report", *words])
    return result.exit_code, result.output


def test_a_journal_becomes_one_page(shop: Path) -> None:
    code, said = run("journals/shop.db", "--aim", "capped_mean(0.99)")
    assert code == 0, said
    assert "Too early to tell" in said
    page = Path("shop.html").read_text()
    assert page.count("</script>") == 3  # names cannot end one
    start = page.index('id="data">') + len('id="data">')
    found = json.loads(page[start : page.index("</script>", start)])
    assert (found["name"], found["tickets"]["asked"]) == ("shop", 30)
    for tag in ("src=", '<link rel="stylesheet', "@import", "url("):
        assert tag not in page
    code, said = run("journals/shop.db", "--aim", "capped_mean(0.99)")
    assert code == 2
    assert "use --force" in said


def test_json_is_that_of_the_file_and_of_the_journal(shop: Path) -> None:
    code, text = run("shop.toml", "--experiment", "shop", "--json")
    assert code == 0, text
    found = json.loads(text)
    other = json.loads(run("journals/shop.db", "--aim", "capped_mean(0.99)", "--json")[1])
    assert {**found, "at": 0} == {**other, "at": 0}
    assert found["control"] == {"arm": "red", "share": 0.2}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("journals/shop.db", "--aim is required"),
        ("shop.toml", "--experiment must be one of shop, other"),
        ("shop.toml --experiment none", "--experiment must be one of shop, other"),
        ("shop.toml --experiment other", "other.db"),
        ("none.db --aim median", "none.db"),
        ("none", "file must be one that exists, got 'none'"),
    ],
)
def test_mistakes_are_named_in_a_sentence(shop: Path, words: str, said: str) -> None:
    code, text = run(*words.split())
    assert code == 2
    assert said in " ".join(text.split())
    assert not list(shop.glob("*.html"))


def test_a_table_becomes_a_page_with_the_same_names_of_columns(shop: Path) -> None:
    rows = "\n".join(f"{i % 7},{'<x>' if i % 2 else 'y'},u{i}" for i in range(120))
    Path("sales.csv").write_text(f"paid,variant,who\n{rows}\n")
    columns = ["--reward", "paid", "--arm", "variant", "--unit", "who"]
    code, said = run("sales.csv", *columns, "--aim", "median")
    assert code == 0, said
    assert "120 customers" in said
    page = Path("sales.html").read_text()
    assert "&lt;x&gt;" in page
    assert "<x>" not in page
    assert page.count("<svg") == 1
    code, text = run("sales.csv", *columns, "--json")
    assert code == 0, text
    assert [row["n"] for row in json.loads(text)["arms"]] == [60, 60]
    assert run("sales.csv", "--reward", "price", "--force")[0] == 2
    code, said = run("journals/shop.db", "--aim", "median", "--arm", "variant", "--force")
    assert code == 2
    assert "arm: options for tables only" in said
