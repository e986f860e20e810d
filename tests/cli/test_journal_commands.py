"""The commands that start, change and end what a journal knows."""

import shlex
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

pytest.importorskip("tailproof.live")

import tailproof as tp
from tailproof.cli import app
from tailproof.live import Agent, read
from tailproof.live.config import load

SHOP = """
[service]
journal = "."
[experiments.checkout]
recipe = "{recipe}"
arms = ["red", "blue"]
wait = 1
silence = 0.0
"""


def run(command: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, shlex.split(command), env={"COLUMNS": "120", "TERM": "dumb"})
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    file = tmp_path / "shop.toml"
    file.write_text(SHOP.format(recipe="ucb1"))
    rng = np.random.default_rng(0)
    arm = rng.choice(["red", "blue"], 50)
    frame = pd.DataFrame({"banner": arm, "revenue": rng.normal(size=50), "chance": 0.5})
    frame["day"] = pd.date_range("2025-01-01", periods=50)
    frame.to_csv(tmp_path / "past.csv", index=False)
    return file


def test_import_change_verify_and_prune(shop: Path, tmp_path: Path) -> None:
    columns = "--arm banner --reward revenue --propensity chance --time day"
    said = run(f"import {shop} checkout {tmp_path / 'past.csv'} {columns}")
    assert "50 of 50 rows learned" in said
    again = run(f"import {shop} checkout {tmp_path / 'past.csv'} {columns}", code=2)
    assert "they were imported from past.csv on" in again
    shop.write_text(SHOP.format(recipe="thompson_sampling"))
    assert "the journal belongs to UCB1(bonus=1.0, random=False), and its recipe differs" in run(
        f"import {shop} checkout {tmp_path / 'past.csv'} {columns}", code=2
    )
    said = run(f"change {shop} checkout")
    assert said.startswith("recipe 1: ThompsonSampling(")
    assert "has learned 50 outcomes" in said
    assert "decides already" in run(f"change {shop} checkout")
    assert "everything matches" in run(f"verify {tmp_path / 'checkout.db'}")
    assert "everything matches" in run(f"verify {shop}")
    assert run(f"log {shop}") == run(f"log {tmp_path / 'checkout.db'}")
    assert "experiment must be one of checkout" in run(f"verify {shop} --experiment x", code=2)
    assert "There is nothing to remove" in run(f"prune {shop} checkout --before 2020-01-01")
    assert "a time that has passed" in run(f"prune {shop} checkout --before 2999-01-01", code=2)
    time.sleep(0.01)
    said = run(f"prune {shop} checkout --before 0.001s")
    assert "This removes 49 outcomes with their requests" in said
    assert "removed 49 outcomes with their requests and 0 events" in said
    said = run(f"verify {tmp_path / 'checkout.db'}")
    assert "checked since outcome 49" in said
    words = "decisions of UCB1(bonus=1.0, random=False) were not checked: what it had learned was"
    assert words in said
    assert "experiment must be one of checkout" in run(f"change {shop} till", code=2)


def test_import_another_journal_or_its_export(shop: Path, tmp_path: Path) -> None:
    with Agent(tp.UCB1(), tmp_path / "old.db") as old:
        for _ in range(30):
            old.tell(old.ask(["red", "blue"]).id, 1.0)
    run(f"log {tmp_path / 'old.db'} --out {tmp_path / 'old.csv'}")
    assert "30 of 30 rows learned" in run(f"import {shop} checkout {tmp_path / 'old.db'}")
    (tmp_path / "checkout.db").unlink()
    assert "30 of 30 rows learned" in run(f"import {shop} checkout {tmp_path / 'old.csv'}")


def test_propensities_of_all_arms(shop: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(tmp_path / "past.csv").assign(**{"p:red": 0.5, "p:blue": 0.5})
    frame.drop(columns="chance").to_csv(tmp_path / "all.csv", index=False)
    run(f"import {shop} checkout {tmp_path / 'all.csv'} --arm banner --reward revenue")
    assert read(tmp_path / "checkout.db").frame.shares.tolist() == [(0.5, 0.5)] * 50


def test_mistakes_are_one_sentence(shop: Path, tmp_path: Path) -> None:
    past = tmp_path / "past.csv"
    frame = pd.read_csv(past)
    frame.loc[6, "revenue"] = np.nan
    frame.to_csv(past, index=False)
    said = run(f"import {shop} checkout {past} --arm banner --reward revenue", code=2)
    assert "column revenue has no reward in line 8" in said
    frame.assign(revenue=1.0, banner="green").to_csv(past, index=False)
    said = run(f"import {shop} checkout {past} --arm banner --reward revenue", code=2)
    assert "column banner must be one of red, blue, got 'green' in line 2" in said
    assert "nothing" in run(f"prune {shop} checkout --before 90d")
    assert "a date such as" in run(f"prune {shop} checkout --before soon", code=2)


def test_events_and_a_judged_export(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    with Agent(tp.LinRevenueUCB(), tmp_path / "a.db", explore=0.5) as agent:
        for _ in range(80):
            ticket = agent.ask(tp.features.share(["a", "b"], rng.normal(size=2)))
            agent.tell(ticket.id, float(rng.normal()))
    assert run(f"log {tmp_path / 'a.db'} --events").startswith("ticket,event,reward,at,late\n#0,")
    run(f"log {tmp_path / 'a.db'} --out {tmp_path / 'a.csv'}")
    judged = [
        run(f"judge {tmp_path / name} --rule always:a --aim median --json")
        for name in ("a.db", "a.csv")
    ]
    assert judged[0] == judged[1]


@pytest.mark.parametrize(
    ("forget", "policy"),
    [
        ('"auto"', tp.Vigilant(tp.UCB1())),
        ("2000", tp.Renewed(tp.UCB1(), memory=2000)),
        ('"30d"', "forget must be \"auto\".*or a whole number of decisions.*got '30d'"),
        ("1", "forget must be a whole number of at least 2, got 1"),
        ("true", "got True"),
    ],
)
def test_forget(shop: Path, forget: str, policy: object) -> None:
    shop.write_text(SHOP.format(recipe="ucb1") + f"forget = {forget}\n")
    if isinstance(policy, str):
        with pytest.raises(ValueError, match=policy):
            load(shop)
    else:
        assert load(shop).experiments["checkout"].policy == policy
        shop.write_text(shop.read_text() + "costs = true\n")
        assert load(shop).experiments["checkout"].policy == tp.Negated(policy)
