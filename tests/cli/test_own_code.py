"""Policies and noise of a user on the command line, as ``module:name``."""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tailproof import Result, recipes
from tailproof.cli import app, output

MINE = """
from dataclasses import dataclass
from tailproof import UCB1, Filtered, Median, noise, environments

@dataclass(frozen=True, kw_only=True)
class Eager(UCB1):
    bonus: float = 0.5

class Odd(noise.Normal):
    pass

def behind(*, repeats):
    return Filtered(Eager(), repeats=repeats, estimator=Median())

def two(law, *, gap=1.0):
    return environments.k_armed(law, locations=(0, gap))

def shop():
    return environments.k_armed(Odd())

WIDE = Odd(3.0)
"""
SMALL = "--horizon 40 --paths 3 --environment 'mine_alone:two(gap=2)'"


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder with a file of the user's, on no path of Python's yet."""
    (tmp_path / "mine_alone.py").write_text(MINE)
    (tmp_path / "broken_alone.py").write_text("import numpy\n1 / 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(output.console, "width", 200)  # it was made by whoever ran a command first
    yield
    for name in ("mine_alone", "broken_alone"):
        sys.modules.pop(name, None)


def run(command: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, shlex.split(command), env={"COLUMNS": "200", "TERM": "dumb"})
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


def test_it_is_said_that_numbers_of_arms_mean_nothing_where_arms_are_new() -> None:
    policies = "--policy ucb1 --policy uniform --policy oful --horizon 10 --paths 2"
    assert "learn nothing: ucb1. Try" in run(f"simulate {policies}")
    assert "learn nothing" not in run(f"simulate {policies} --environment 'neutral(fresh=false)'")


def test_own_policies_noise_and_environments_are_simulated(tmp_path: Path) -> None:
    """Also by processes that began before there was a folder with code of the user's."""
    run("simulate --policy ucb1 --policy uniform --horizon 40 --paths 2 --workers 2 --seed 1")
    texts = ["mine_alone:Eager(bonus=2)", "mine_alone:behind(repeats=3)", "auto_filtered(ucb1)"]
    texts.append("filtered(mine_alone:Eager, repeats=5)")
    options = " ".join(f"--policy '{text}'" for text in texts)
    output = run(f"simulate {options} --noise mine_alone:WIDE {SMALL} --workers 2 --out run")
    assert "mine_alone:WIDE" in output
    settings = Result.load(tmp_path / "run" / "result.npz").settings
    assert list(settings["policies"]) == texts
    assert settings["policies"][texts[0]] == "Eager(bonus=2, random=False)"
    assert "Odd(scale=3.0)" in settings["environment"]
    assert "(0.0, 2.0)" in settings["environment"]


def test_the_gauntlet_takes_own_policies() -> None:
    output = run("gauntlet --policy mine_alone:Eager --problems k5-t1 --size smoke --workers 1")
    assert "mine_alone:Eager" in output


def test_identify_takes_own_noise() -> None:
    output = run("identify --noise mine_alone.py:Odd --paths 2 --max-pulls 1000")
    assert "mine_alone.py:Odd" in output


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("--policy mine_alone:Eagre", "mine_alone has no Eagre; did you mean Eager?"),
        ("--policy elsewhere:Eager", "there is no module elsewhere; it must be installed, or"),
        ("--policy broken_alone:Eager", "failed: ZeroDivisionError: division by zero"),
        ("--policy mine_alone.Eager", "code of your own is module:Name"),
        ("--policy mine_alone:Odd", "mine_alone:Odd must make a policy"),
        ("--policy mine_alone:Odd", "of this library, got Odd"),
        ("--environment mine_alone:shop", "must take the noise: def shop(noise)"),
        ("--noise mine_alone:Eager", "mine_alone:Eager must make a noise"),
        ("--policy 'mine_alone:Eager(bonis=1)'", "it takes bonus, random; did you mean bonus?"),
        ("--policy ofull", "policy 'ofull' is unknown; did you mean oful or tofu?"),
        ("--policy 'oful(noise_scal=1)'", "did you mean noise_scale?"),
        ("--policy 'filtered(ucbb1, repeats=3)'", "did you mean ucb1?"),
    ],
)
def test_mistakes_are_named(command: str, words: str) -> None:
    assert words in run(f"simulate --horizon 10 --paths 2 {command}", code=2)


def test_text_that_nobody_typed_imports_nothing() -> None:
    with pytest.raises(ValueError, match="text from a file or a journal imports nothing"):
        recipes.build("policy", "filtered(mine_alone:Eager, repeats=3)")
    assert "mine_alone" not in sys.modules


def test_a_horizon_may_be_written_as_1e2_and_metrics_are_columns(tmp_path: Path) -> None:
    (tmp_path / "mine_alone.py").write_text(MINE + "\n\ndef zeros(now):\n    return now.best * 0\n")
    sys.modules.pop("mine_alone", None)
    asked = "--metric share_of_best --metric mine_alone:zeros"
    environment = "--environment 'k_armed(locations=(0, 1))'"
    output = run(f"simulate --horizon 1e2 --paths 2 {asked} {environment} --out run")
    assert "after 100 pulls" in output
    assert "share of best" in output
    metrics = Result.load(tmp_path / "run" / "result.npz").curves["oful"].metrics
    assert {*metrics} == {"share_of_best", "zeros"}
    assert "did you mean share_of_best?" in run("simulate --metric share_of_bests", code=2)
    assert "'1.5' is not a valid integer, such as" in run("simulate --horizon 1.5", code=2)


def test_own_policies_are_drawn_beside_those_of_the_paper(tmp_path: Path) -> None:
    command = "reproduce overview --size smoke --workers 1 --out paper"
    output = run(f"{command} --policy 'mine_alone:Eager(bonus=2)'")
    assert "claims decided" in output
    result = Result.load(tmp_path / "paper/results/overview/regret-df-1.npz")
    assert "mine_alone:Eager(bonus=2)" in result.curves
    assert "mine_alone:Eager(bonus=2)" in (tmp_path / "paper/report.html").read_text()
    assert "holds results of policies {'mine_alone:Eager" in run(command, code=2)
    source = (tmp_path / "mine_alone.py").read_text()
    (tmp_path / "mine_alone.py").write_text(source.replace("float = 0.5", "float = 0.4"))
    sys.modules.pop("mine_alone", None)
    words = run(f"{command} --policy 'mine_alone:Eager(bonus=2)'", code=2)
    assert "holds results of mine_alone:Eager(bonus=2) before the code was edited" in words
    words = run("reproduce 7 --size smoke --out other --policy ucb1", code=2)
    assert "policies of your own are drawn in overview, 2-3, decision-set" in words
