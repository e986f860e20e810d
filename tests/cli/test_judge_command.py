"""The command that judges a log."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import tailproof as tp
from tailproof.cli import app
from tailproof.live import Agent


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    n = 2000
    arm = rng.integers(0, 2, n)
    frame = pd.DataFrame(
        {
            "variant": np.array(["A", "B"])[arm],
            "spent": np.where(rng.random(n) < 0.1 + 0.1 * arm, rng.lognormal(3, 1, n), 0),
            "p": 0.5,
            "p:A": 0.5,
            "p:B": 0.5,
            "age": rng.integers(18, 80, n),
            "device": rng.choice(["phone", "desktop"], n),
        }
    )
    place = tmp_path_factory.mktemp("logs") / "log.csv"
    frame.to_csv(place, index=False)
    return place


def run(*words: str, code: int = 0) -> str:
    told = CliRunner().invoke(app, ["judge", *words], env={"COLUMNS": "200"})
    assert told.exit_code == code, told.output
    return told.output


def usual(file: Path) -> list[str]:
    return [str(file), "--arm", "variant", "--reward", "spent", "--aim", "capped_mean(0.99)"]


def test_it_prints_a_table_and_sentences(file: Path, tmp_path: Path) -> None:
    picture = tmp_path / "rules.png"
    rules = ["always:B", "even", "A=0.3,B=0.7", "group:phone=B,desktop=A", "policy:revenue_ucb"]
    more = [word for rule in rules for word in ("--rule", rule)]
    columns = ["--propensity", "p", "--features", "age", "--group", "device", "--control", "A"]
    output = run(*usual(file), *more, *columns, "--plot", str(picture))
    for words in ("always B", "revenue_ucb", "more than always A", "trust", "Picture:"):
        assert words in output
    assert picture.stat().st_size > 10_000


def test_json_has_what_the_library_says(file: Path) -> None:
    told = json.loads(run(*usual(file), "--rule", "always:B", "--propensity", "p", "--json"))
    frame = pd.read_csv(file)
    found = tp.judge(
        frame, "B", tp.CappedMean(0.99), arm="variant", reward="spent", propensity="p", group=None
    )
    assert told["rules"]["always B"]["estimate"] == pytest.approx(found["always B"].estimate)
    assert told["rules"]["always B"]["low"] == pytest.approx(found["always B"].low)


def test_exact_intervals_and_other_aims(file: Path) -> None:
    more = ["--rule", "always:B", "--propensity", "p"]
    assert "anytime" in run(*usual(file), *more, "--interval", "anytime", "--cap", "0,200")
    assert "refused" in run(*usual(file)[:-1], "location", *more)


def test_a_journal_is_a_log(tmp_path: Path) -> None:
    place = tmp_path / "shop.db"
    agent = Agent(tp.RevenueUCB(), place, explore=0.5)
    rng = np.random.default_rng(0)
    for _ in range(200):
        agent.tell(agent.ask(["A", "B"]).id, float(rng.normal()))
    agent.close()
    output = run(str(place), "--rule", "always:B", "--aim", "median")
    assert "200 rows" in output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--rule", "B"], "rule must be always:ARM"),
        (["--rule", "always:D"], "no arm 'D' in the log"),
        (["--rule", "A=x,B=1"], "must give a probability"),
        (["--rule", "even", "--cap", "5"], "cap must be two numbers"),
        (["--rule", "even", "--propensity", "q"], "propensity must be one of the columns"),
        (["--rule", "even", "--interval", "exact"], "needs cap="),
    ],
)
def test_mistakes_are_told_in_one_sentence(
    file: Path, words: list[str], told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    output = run(*usual(file), *words, code=2)
    assert told in output + capfd.readouterr().err
