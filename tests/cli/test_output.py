"""What commands print and write, and the options that they pass on."""

import csv
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.table import Table
from typer.testing import CliRunner

from tailproof import Curves, Identification, Result, Verdicts
from tailproof.cli import app
from tailproof.cli.output import _Rate, identification_table, regret_table, score_tables
from tailproof.cli.saving import write_table
from tailproof.research.gauntlet import CHANCE, Score


def run(command: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, shlex.split(command), env={"COLUMNS": "200"})
    assert done.exit_code == code, done.output
    return done.output


def cells(table: Table) -> list[Any]:
    """The cells of the last row."""
    return [list(column.cells)[-1] for column in table.columns]


def test_regrets_are_shown_from_low_to_high() -> None:
    curves = Curves(regret=np.arange(11.0)[:, None], decisions=np.array([3]))
    table = regret_table("", "", Result(pulls=np.array([9]), curves={"a": curves}, settings={}))
    assert cells(table) == ["a", "5.0 ± 1.0", "5.0", "1.0 – 9.0", "3"]


def test_errors_are_per_cent() -> None:
    right = np.arange(200) >= 5
    verdicts = Verdicts(right * 1, right, right * 9, right * 9)
    table = identification_table("", Identification({"a": verdicts}, settings={}))
    assert cells(table)[:3] == ["a", "2.5% (0.8% – 5.7%)", "0"]


def test_regret_over_chance_is_per_cent() -> None:
    regret = {"p": {"t": np.array([[1.0, 5.0]]), CHANCE: np.array([[50.0, 100.0]])}}
    settings = {"size": "full", "paths": 1, "tools": {"t": ""}}
    assert cells(next(score_tables(Score(regret=regret, oracle={}, settings=settings)))) == [
        "p",
        "5",
    ]


def test_the_rate_is_by_the_minute() -> None:
    task: Any = SimpleNamespace(speed=2.0)
    assert str(_Rate().render(task)) == "120 a minute"


def test_options_reach_the_policies(tmp_path: Path) -> None:
    simulated = "simulate --policy oful --filter 9 --block 2 --horizon 20 --paths 2"
    run(f"{simulated} --out {tmp_path / 'a'}")
    told = Result.load(tmp_path / "a" / "result.npz").settings["policies"]
    assert "MeanOfMedians(block=2," in told["oful, filtered"]
    named = "identify --policy 'lin_gap_e(norm_bound=2)' --noise normal --delta 0.2 --paths 2"
    run(f"{named} --environment 'near_tie(angle=1.0)' --out {tmp_path / 'b'}")
    found = Identification.load(tmp_path / "b" / "identification.npz").settings["policies"]
    assert all("delta=0.2" in text for text in found.values())


def test_a_folder_in_use_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("")
    said = run(f"simulate --horizon 20 --paths 2 --out {tmp_path}", code=2)
    assert "out must be a folder that does not exist yet, or is empty" in " ".join(said.split())


def test_a_table_has_every_column(tmp_path: Path) -> None:
    curves = Curves(regret=np.arange(11.0)[:, None], decisions=np.array([3]))
    result = Result(pulls=np.array([9]), curves={"a": curves}, settings={})
    write_table("cauchy", result, tmp_path / "t.csv")
    (row,) = csv.DictReader((tmp_path / "t.csv").read_text().splitlines())
    assert (row["setting"], row["policy"], row["median"]) == ("cauchy", "a", "5.0")
    assert (row["low"], row["high"], row["decisions"], row["pulls"]) == ("1.0", "9.0", "3", "9")


def test_the_error_probability_reaches_the_advice(tmp_path: Path) -> None:
    file = tmp_path / "r.csv"
    file.write_text("r\n" + "\n".join(str(x) for x in range(100)))
    assert "delta must be" in run(f"calibrate {file} --reward r --delta 2", code=2)


def test_a_snapshot_that_differs_is_an_exit_code(tmp_path: Path) -> None:
    live = pytest.importorskip("tailproof.live")
    from tailproof import UCB1

    with live.Agent(UCB1(), tmp_path / "a.db") as agent:
        for reward in range(4):
            agent.tell(agent.ask(["a", "b"]).id, reward)
        agent.ask(["a", "b"])
        with agent.journal.transaction():
            agent.journal.add_snapshot(2, 0, agent.learner.to_bytes())
    said = run(f"verify {tmp_path / 'a.db'}", code=1)
    assert "the snapshot after 2 updates differs from the replay" in said
