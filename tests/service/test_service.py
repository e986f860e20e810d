"""The service, as its callers and operators meet it."""

import asyncio
import csv
import json
import logging
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest
from callers import Caller, connected
from fastapi import HTTPException
from servers import running
from typer.testing import CliRunner

from tailproof.cli import app
from tailproof.live import SQLite, read
from tailproof.live.config import Config, load
from tailproof.service.app import create_app
from tailproof.service.middleware import MOST_BYTES, Middleware
from tailproof.service.routes import _unwritten
from tailproof.service.server import LOGGING, JsonLines

SHOP = """
[service]
journal = "journals"
durable = false

[experiments.shop]
recipe = "auto_filtered(ucb1(bonus=0.7), repeats=3)"
silence = "lost"
aim = "quantile(0.9)"
arms = ["red", "blue"]
wait = "2h"
explore = 0.05
seed = 7

[experiments.times]
recipe = "lin_student_ucb"
silence = "lost"
costs = true
"""
OPEN = SHOP.replace("explore = 0.05", "explore = 0.05\nopen = true")
ASK, TELL, BATCH = (f"/experiments/shop/{act}" for act in ("ask", "tell", "batch"))


def written(folder: Path, text: str = SHOP) -> Path:
    file = folder / "shop.toml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture
def http(tmp_path: Path) -> Iterator[Caller]:
    with Caller(create_app(load(written(tmp_path)))) as client:
        yield client


def sent(http: Caller, path: str, text: str) -> tuple[int, Any]:
    answer = http.post(path, content=text, headers={"Content-Type": "application/json"})
    return answer.status_code, answer.json()


def test_ask_tell_and_ask_again(http: Caller) -> None:
    first = http.post(ASK, json={"ticket": "v1"}).json()
    assert first["arm"] in ("red", "blue")
    assert first | {"ticket": "v1", "propensity": 0.5} == first
    assert http.post(ASK, json={"ticket": "v1"}).json() == first
    other = http.post(ASK, json={"offer": ["red", "blue"]}).json()
    assert (other["ticket"], other["propensity"]) == ("#1", 0.5)
    statuses = [
        http.post(TELL, json={"ticket": name, "reward": reward}).json()["status"]
        for name, reward in [("v1", 1), ("v1", 2.5), ("#1", "-Infinity"), ("v2", 1e300)]
    ]
    assert statuses == ["kept", "duplicate", "kept", "unknown"]


def test_costs_are_made_small(http: Caller) -> None:
    for visit in range(60):
        body = {"offer": {"slow": [0, 1], "fast": [1, 0]}, "ticket": f"v{visit}"}
        arm = http.post("/experiments/times/ask", json=body).json()["arm"]
        reward = {"slow": 9.0, "fast": 1.0}[arm] + visit % 3 / 10
        told = {"ticket": f"v{visit}", "reward": reward}
        assert http.post("/experiments/times/tell", json=told).json()["status"] == "kept"
    log = csv.DictReader(http.get("/experiments/times/log").text.splitlines())
    arms = [row["arm"] for row in log]
    assert arms[-20:].count("fast") > 15


def test_a_batch_is_one_commit(http: Caller) -> None:
    agent = http.app.state.experiments["shop"].agent  # type: ignore[attr-defined]
    before = agent.commits
    acts = [
        {"do": "ask", "ticket": "a"},
        {"do": "tell", "ticket": "a", "reward": 2},
        {"do": "ask", "offer": ["red", "red"]},
        {"do": "ask", "ticket": "#9"},
        {"do": "tell", "ticket": "b", "reward": 2},
    ]
    answer = http.post(BATCH, json={"acts": acts})
    assert answer.status_code == 200
    one, two, three, four, five = answer.json()["answers"]
    assert one["ticket"] == "a"
    assert two == {"ticket": "a", "status": "kept"}
    assert "arm names must be unique" in three["error"]
    assert "'#9' is reserved" in four["error"]
    assert five["status"] == "unknown"
    assert agent.commits == before + 1


REFUSED = [
    (TELL, '{"ticket": "a", "reward": NaN}', 'reward must be a finite number, "Infinity"'),
    (TELL, '{"ticket": "a", "reward": Infinity}', 'reward must be a finite number, "Infinity"'),
    (TELL, '{"ticket": "a", "reward": 1e999}', "got inf"),
    (TELL, f'{{"ticket": "a", "reward": {"9" * 400}}}', "reward must be a finite number"),
    (TELL, '{"ticket": "a", "reward": "NaN"}', "got 'NaN'"),
    (TELL, '{"ticket": "a", "reward": true}', "got True"),
    (TELL, '{"ticket": "a"}', "reward is required"),
    (
        TELL,
        '{"ticket": 3, "reward": 1}',
        "ticket must be a string of 1 to 200 printable characters, got 3",
    ),
    (TELL, '{"ticket": "\\u0000", "reward": 1}', r"ticket must be a string .* got '\\x00'"),
    (TELL, '{"ticket": "\\ud800", "reward": 1}', "ticket must be a string"),
    (TELL, '{"ticket": "a", "reward": 1, "when": 2}', "unknown field 'when'"),
    (TELL, '{"ticket": "a", "reward": 1, "event": ""}', "event must be a string of 1 to 200"),
    (TELL, '{"ticket": "a", ', "the body is not valid JSON"),
    (TELL, '{"ticket": "a", "revard": 1}', "reward is required: .*; there is no field 'revard'"),
    (TELL, '{"ticket": "a", "reward": 1}}', "not valid JSON: Extra data at character 28"),
    (TELL, "[]", "the body must be a JSON object"),
    (ASK, '{"offer": []}', "offer must be a list of 1 to 10000 arm names"),
    (ASK, '{"offer": ["red", "red"]}', "arm names must be unique"),
    (ASK, '{"offer": {"red": [1], "blue": [1, 2]}}', "features must be vectors of numbers"),
    (ASK, '{"offer": {"red": [true]}}', "offer must be a list"),
    (ASK, '{"offer": {"red": [NaN]}}', "offer must be a list"),
    (ASK, f'{{"offer": {{"red": {[1] * 1001}}}}}', "vectors of 1 to 1000 finite numbers"),
    (ASK, '{"ticket": "#0"}', "ticket '#0' is reserved"),
    ("/experiments/times/ask", "{}", "offer is required"),
    (
        BATCH,
        '{"acts": [{"do": "ask", "cancle": []}]}',
        r"unknown field 'cancle' in acts\[0\]: leave it out",
    ),
    ("/experiments/shop/drop", "{}", "arm is required: the name of an arm"),
    ("/experiments/shop/drop", '{"arm": ""}', "arm must be one of this experiment .* got ''"),
    ("/experiments/shop/stop", '{"arm": 3}', "arm must be the name of an arm, .* got 3"),
    ("/experiments/shop/fly", "{}", 'act must be "ask", .* got .fly.'),
    (BATCH, '{"acts": []}', "acts must be a list of 1 to 1000 objects"),
    (BATCH, '{"acts": [{"do": "ask"}, {"do": "fly"}]}', "acts must be a list"),
    (
        BATCH,
        '{"acts": [{"do": "tell", "ticket": "a", "reward": "x"}]}',
        r"acts\[0\].reward must be .* got 'x'",
    ),
]


@pytest.mark.parametrize(("path", "text", "words"), REFUSED)
def test_a_refused_act_has_one_sentence(http: Caller, path: str, text: str, words: str) -> None:
    status, answer = sent(http, path, text)
    assert status == 422
    assert list(answer) == ["error"]
    assert re.search(words, answer["error"])
    assert len(answer["error"]) < 1100
    assert http.get("/experiments/shop/log").text.count("\n") == 1


@pytest.mark.parametrize("text", ['{"ticket": "a", "reward": ' + "9" * 5000 + "}", "[" * 100_000])
def test_what_cannot_be_read_is_refused(http: Caller, text: str) -> None:
    status, answer = sent(http, TELL, text)
    assert status == 400
    assert "cannot parse the body as JSON" in answer["error"]


def test_large_bodies_are_refused(http: Caller) -> None:
    piece = b" " * (MOST_BYTES // 4)
    for content in (piece * 5, (piece for _ in range(5))):
        answer = http.post(ASK, content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code == 413
        assert answer.json() == {"error": f"the body must be at most {MOST_BYTES} bytes"}


def test_unknown_places_are_named(http: Caller) -> None:
    answer = http.post("/experiments/shoe/ask", json={})
    assert answer.status_code == 404
    assert answer.json() == {"error": "unknown experiment 'shoe': this service has shop, times"}
    assert http.get("/experiments/shoe/log").status_code == 404
    refused = http.get("/experiments/shop/log?format=parquet")
    assert refused.status_code == 422
    assert "tailproof log --out" in refused.json()["error"]
    answer = http.get(ASK)
    assert answer.status_code == 405
    assert answer.json() == {"error": f"Method Not Allowed: {ASK!r} takes POST"}
    assert "nothing is at '/nowhere'" in http.get("/nowhere").json()["error"]
    for page in ("/docs", "/redoc"):  # they would load scripts from elsewhere
        assert http.get(page).status_code == 404


def test_the_log_is_safe_to_open_in_a_spreadsheet(tmp_path: Path) -> None:
    name, ticket = '=HYPERLINK("x")', "+1, 2"
    with Caller(create_app(load(written(tmp_path, OPEN)))) as http:
        http.post(ASK, json={"offer": [name], "ticket": ticket})
        http.post(TELL, json={"ticket": ticket, "reward": -3.5})
        http.post(ASK, json={"offer": [name], "ticket": "-v"})
        for number, more in enumerate((" =1+1", "@x", "\uff1d1", "  +1", "a=1", "7-1")):
            http.post(ASK, json={"offer": [more], "ticket": f"n{number}"})
        answer = http.get("/experiments/shop/log")
        assert answer.headers["Content-Type"].startswith("text/csv")
    first, second, *more_rows = csv.DictReader(answer.text.splitlines())
    arms = [row["arm"] for row in more_rows]
    assert arms == ["' =1+1", "'@x", "'\uff1d1", "'  +1", "a=1", "7-1"]
    assert (first["ticket"], first["arm"], first["reward"]) == (f"'{ticket}", f"'{name}", "-3.5")
    assert (second["ticket"], second["reward"], second["status"]) == ("'-v", "", "pending")


def test_metrics_count(http: Caller) -> None:
    for reward in (1.0, 2.0):
        http.post(ASK, json={"ticket": "a"})
        http.post(TELL, json={"ticket": "a", "reward": reward})
    http.post(ASK, json={"ticket": "b"})
    http.post(ASK, json={"ticket": "#9"})
    http.get("/experiments/shoe/log")
    http.get("/nowhere/at/all")
    time.sleep(1.6)
    http.get("/experiments")  # the gauges are as the page has read them
    text = http.get("/metrics").text
    for line in (
        'tailproof_asks_total{experiment="shop"} 3.0',
        'tailproof_tells_total{experiment="shop",status="kept"} 1.0',
        'tailproof_tells_total{experiment="shop",status="duplicate"} 1.0',
        'tailproof_refused_total{experiment="shop"} 1.0',
        'tailproof_pending{experiment="shop"} 1.0',
        'tailproof_lost_share{experiment="shop"} 0.0',
        'tailproof_outcomes{experiment="shop"} 1.0',
        'tailproof_answer_seconds_count{route="/experiments/{name}/ask",status="200"} 3.0',
        'tailproof_answer_seconds_count{route="other",status="404"} 1.0',
    ):
        assert line in text.splitlines()
    assert "shoe" not in text


def test_a_request_is_one_line_of_json(http: Caller, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "tailproof.live.requests"):
        http.post(TELL, json={"ticket": "a\nb", "reward": 1})
    line = JsonLines().format(caplog.records[-1])
    found = json.loads(line)
    assert "\n" not in line
    assert (found["path"], found["status"], found["level"]) == (TELL, 422, "INFO")
    assert set(LOGGING["loggers"]) == {"uvicorn", "tailproof"}


def test_a_journal_that_fails_is_said_and_nothing_is_answered(
    http: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left")

    assert http.post(ASK, json={"ticket": "a"}).status_code == 200
    with monkeypatch.context() as patched:
        patched.setattr(SQLite, "add_requests", full)
        answer = http.post(ASK, json={"ticket": "b"})
        assert answer.status_code == 503
        assert answer.json() == {"error": "commit failed, nothing was stored: no space left"}
    assert http.post(TELL, json={"ticket": "b", "reward": 1}).json()["status"] == "unknown"
    assert http.post(TELL, json={"ticket": "a", "reward": 1}).json()["status"] == "kept"


@pytest.fixture(
    params=["sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))]
)
def config(request: pytest.FixtureRequest, tmp_path: Path) -> Config:
    """A service with its journals in SQLite, or in PostgreSQL."""
    journal = "journals"
    if request.param == "postgres":
        journal = request.getfixturevalue("server").get_uri()
    return load(written(tmp_path, SHOP.replace("journals", journal)))


def test_two_services_share_one_journal(config: Config) -> None:
    with Caller(create_app(config)) as one, Caller(create_app(config)) as two:
        for visit in range(30):
            body = {"ticket": f"v{visit}"}
            asked = one.post(ASK, json=body).json()
            assert two.post(ASK, json=body).json() == asked
            one, two = two, one
            told = {"ticket": f"v{visit}", "reward": visit}
            assert one.post(TELL, json=told).json()["status"] == "kept"
        assert one.app.state.experiments["shop"].agent.verify().ok  # type: ignore[attr-defined]
        rows = list(csv.DictReader(one.get("/experiments/shop/log").text.splitlines()))
    assert [row["status"] for row in rows] == 30 * ["told"]


def test_reading_the_log_gives_no_lock_away(http: Caller, tmp_path: Path) -> None:
    http.post(ASK, json={"ticket": "a"})
    http.get("/experiments/shop/log")
    file = tmp_path / "journals" / "shop.db"
    code = (
        "import sqlite3, sys;sqlite3.connect(sys.argv[1]).execute('SELECT 1 FROM meta').fetchall()"
    )
    subprocess.run([sys.executable, "-c", code, file], check=True)  # it must not end the WAL
    http.post(ASK, json={"ticket": "b"})
    log = read(file)
    assert log.frame["ticket"].tolist() == ["a", "b"]
    log.journal.close()


def test_many_requests_share_a_commit(http: Caller, tmp_path: Path) -> None:
    agent = http.app.state.experiments["shop"].agent  # type: ignore[attr-defined]
    with closing(sqlite3.connect(tmp_path / "journals" / "shop.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        before = agent.commits
        many = [threading.Thread(target=lambda: http.post(ASK, json={})) for _ in range(8)]
        for thread in many:
            thread.start()
        time.sleep(0.3)  # all wait for the journal
        other.execute("ROLLBACK")
    for thread in many:
        thread.join()
    assert 0 < agent.commits - before < 8


def test_asks_that_nobody_waited_for_are_cancelled(http: Caller) -> None:
    """60 that were answered too late, and one that arrives after it was cancelled."""
    agent = http.app.state.experiments["shop"].agent  # type: ignore[attr-defined]
    orphans = [f"v{n}" for n in range(60)]
    for ticket in orphans:
        http.post(ASK, json={"ticket": ticket})
    assert agent.standing().pending == 60
    http.post(ASK, json={"ticket": "a", "cancel": orphans[:57]})
    http.post(TELL, json={"ticket": "a", "reward": 1, "cancel": [orphans[57], "x"]})
    acts = [{"do": "ask", "cancel": [ticket]} for ticket in orphans[58:]]
    http.post(BATCH, json={"acts": acts})
    assert http.post(ASK, json={"ticket": "x"}).status_code == 200
    assert agent.standing().pending == 2
    told = http.post(TELL, json={"ticket": "v3", "reward": 1}).json()
    assert told == {"ticket": "v3", "status": "cancelled"}
    statuses = read(agent.journal).frame.set_index("ticket").status
    assert set(statuses[[*orphans, "x"]]) == {"cancelled"}
    refused = http.post(ASK, json={"cancel": ["x"] * 101})
    assert "cancel must be a list of at most 100 tickets" in refused.json()["error"]
    refused = http.post(ASK, json={"cancel": ["\n"]})
    assert refused.status_code == 422
    assert "printable" in refused.json()["error"]


def test_a_refused_ask_cancels_all_the_same(http: Caller) -> None:
    """The client forgets those that went with a call that was answered."""
    agent = http.app.state.experiments["shop"].agent  # type: ignore[attr-defined]
    http.post(ASK, json={"ticket": "v1"})
    assert http.post(ASK, json={"ticket": "#9", "cancel": ["v1"]}).status_code == 422
    assert agent.standing().pending == 0
    http.post(ASK, json={"ticket": "v2"})
    refused = {"do": "ask", "offer": ["red", "red"], "cancel": ["v2"]}
    assert http.post(ASK, json=refused).status_code == 422
    assert agent.standing().pending == 0


def test_a_unit_gets_the_same_arm(http: Caller) -> None:
    arms = {http.post(ASK, json={"unit": "user 7"}).json()["arm"] for _ in range(10)}
    assert len(arms) == 1
    refused = http.post(ASK, json={"unit": 7})
    assert "unit must be a string" in refused.json()["error"]


def test_a_listed_set_of_arms_is_closed(tmp_path: Path) -> None:
    with Caller(create_app(load(written(tmp_path)))) as http:
        refused = http.post(ASK, json={"offer": ["red", "pink"]})
        assert refused.status_code == 422
        assert "['pink'] are not among the arms" in refused.json()["error"]
    opened = load(written(tmp_path, OPEN.replace("journals", "others")))
    with Caller(create_app(opened)) as http:
        assert http.post(ASK, json={"offer": ["red", "pink"]}).status_code == 200


def test_every_route_has_an_example_and_no_other_host_is_named(http: Caller) -> None:
    text = http.get("/openapi.json").text
    assert not re.findall(r"https?://", text)
    schema = json.loads(text)
    parts = schema["components"]["schemas"]
    for path, methods in schema["paths"].items():
        for operation in methods.values():
            for place in (operation.get("requestBody"), operation["responses"]["200"]):
                if place is None:
                    continue
                for content in place["content"].values():
                    named = re.findall(r"schemas/(\w+)", json.dumps(content))
                    shown = json.dumps([content, *(parts[name] for name in named)])
                    assert '"example' in shown, path


MISTAKES = [
    ("[service]\nport = 1", "there is no experiment: add a table"),
    (
        "[service]\nprot = 1",
        "unknown key service.prot: use one of address, port, hosts, journal",
    ),
    ('[service]\nport = "x"', "service.port must be a whole number, got 'x'"),
    ("[service]\nport = true", "service.port must be a whole number, got True"),
    ("[service]\nhosts = [1]", "service.hosts must be a list of names, got 1"),
    ("service = 3", "shop.toml: service must be a table, got 3"),
    (
        '[service]\njournal = "mysql://x"\n[experiments.a]',
        "journal must be a folder or a postgresql:// URL",
    ),
    ("[other]", "unknown key other: use one of service, experiments"),
    ("[experiments]\nshop = 3", "experiments.shop must be a table, got 3"),
    ("[experiments.shop]", "experiments.shop.recipe is required"),
    ('[experiments."a/b"]', "an experiment name must be 1 to 40 letters, .* got 'a/b'"),
    ("[experiments.shop", "Expected ']' at the end of a table"),
    (
        '[experiments.a]\nrecipe = "ucb2"',
        "experiments.a: policy 'ucb2' is unknown; did you mean ucb1",
    ),
    ('[experiments.a]\nrecipe = "ucb1(x=1)"', "experiments.a: .*unexpected keyword argument 'x'"),
    ("[experiments.a]\nrecipe = 1", "experiments.a.recipe must be a string, got 1"),
    ('[experiments.a]\nrecipe = "ucb1"\naim = "mode"', "experiments.a: aim must be one of"),
    ('[experiments.a]\nrecipe = "ucb1"\nwait = "soon"', "experiments.a: wait must be a number"),
    ('[experiments.a]\nrecipe = "ucb1"\nexplore = 2', "experiments.a: explore must be a number"),
    ('[experiments.a]\nrecipe = "ucb1"\nseed = -1', "experiments.a: seed must be a whole number"),
    ('[experiments.a]\nrecipe = "ucb1"\narms = ["x", "x"]', "experiments.a: arm names must be"),
    ('[experiments.a]\nrecipe = "ucb1"\narms = "x"', "experiments.a: arms must be a list of"),
    ('[experiments.a]\nrecipe = "ucb1"', r"silence = 0.0: .* silence = \"lost\": .* unknown"),
    ('[experiments.a]\nrecipe = "ucb1"\nsilence = "no"', "silence must be a number or .lost."),
    ('[experiments.a]\nrecipe = "ucb1"\nsilence = true', "silence must be a number or .lost."),
    ('[experiments.a]\nrecipe = "ucb1"\nrewards = "last"', 'rewards must be "first" or "sum"'),
    ('[experiments.a]\nrecipe = "ucb1"\ncosts = 1', "experiments.a.costs must be true or false"),
    (
        '[experiments.a]\nrecipe = "ucb1"\nsilence = 0\n[service]\nport = 70000',
        "port must be a whole number",
    ),
]


@pytest.mark.parametrize(("text", "words"), MISTAKES)
def test_a_mistake_in_the_file_is_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as refusal:
        load(written(tmp_path, text))
    assert "shop.toml: " in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_journal_of_another_recipe_is_refused_and_nothing_stays_open(tmp_path: Path) -> None:
    with Caller(create_app(load(written(tmp_path)))):
        pass
    other = SHOP.replace("lin_student_ucb", "ucb1")
    with pytest.raises(
        ValueError, match=r"experiments.times: the journal belongs to Negated\(policy=Lin"
    ):
        create_app(load(written(tmp_path, other)))


def typed(*words: str | Path, code: int = 0) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    with Caller(create_app(load(written(tmp_path)))) as http:
        for number in range(12):
            http.post(ASK, json={"ticket": f"v{number}"})
            http.post(TELL, json={"ticket": f"v{number}", "reward": number})
    return tmp_path / "journals" / "shop.db"


def test_the_command_log_writes_what_the_service_sends(journal: Path, tmp_path: Path) -> None:
    shown = list(csv.DictReader(typed("log", journal).splitlines()))
    assert [row["ticket"] for row in shown] == [f"v{number}" for number in range(12)]
    assert [float(row["reward"]) for row in shown] == list(range(12))
    typed("log", journal, "--out", tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(newline="") as stream:
        assert list(csv.DictReader(stream)) == shown
    typed("log", journal, "--out", tmp_path / "a.parquet")
    frame = pd.read_parquet(tmp_path / "a.parquet")
    assert frame["ticket"].tolist() == [row["ticket"] for row in shown]
    for words, text in [
        ((journal, "--out", tmp_path / "a.csv"), "out must be a file that does not exist yet"),
        ((journal, "--out", tmp_path / "a.txt"), "out must be a .csv or .parquet file"),
        ((tmp_path / "none.db",), "does not exist"),
        ((tmp_path / "a.csv",), "as a SQLite journal"),
        ((tmp_path / "shop.toml",), "experiment must be one of shop, times"),
    ]:
        assert text in typed("log", *words, code=2)
    named = typed("log", tmp_path / "shop.toml", "--experiment", "shop")
    assert list(csv.DictReader(named.splitlines())) == shown


def test_the_command_verify_names_requests_that_differ(journal: Path) -> None:
    assert "12 requests decided again, 12 outcomes\neverything matches" in typed("verify", journal)
    with closing(sqlite3.connect(journal)) as database, database:
        database.execute("UPDATE request SET arm = 1 - arm WHERE id = 2")
    said = typed("verify", journal, code=1)
    assert re.search(r"requests that differ: .*2", said)
    assert "everything matches" not in said


def test_the_command_demo_serves_visitors() -> None:
    said = typed("demo", "--seconds", "1")
    assert re.search(r"Open http://127.0.0.1:\d+/", said)
    assert re.search(r"\d+ visitors, \d+ rewards", said)
    assert "seconds must be a finite number above 0" in typed("demo", "--seconds", "0", code=2)


def test_the_command_serve_refuses_before_it_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TAILPROOF_TOKEN", raising=False)
    file = written(tmp_path)
    assert "is not loopback" in typed("serve", file, "--address", "0.0.0.0", code=2)
    assert "workers must be a whole number" in typed("serve", file, "--workers", "0", code=2)
    assert "No such file" in typed("serve", tmp_path / "none.toml", code=2)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = typed("serve", file, "--port", port, code=2)
    assert f"cannot listen on 127.0.0.1, port {port}" in said
    nowhere = written(tmp_path, SHOP.replace("journals", "postgresql://127.0.0.1:9/x"))
    assert "cannot open the PostgreSQL journal" in typed("serve", nowhere, code=2)


def test_commands_start_without_the_service() -> None:
    heavy = "fastapi", "httpx", "prometheus_client", "psycopg", "pydantic", "uvicorn"
    code = f"import sys, tailproof.cli; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def visited(
    url: str, prefix: str, process: subprocess.Popen[str], stop_after: int
) -> dict[str, Any]:
    """Ask and tell from several threads, stop the service meanwhile, and return all answers."""
    answers: dict[str, Any] = {}
    stop = threading.Thread(target=process.terminate)

    def visit(thread: int) -> None:
        with httpx.Client(base_url=url, timeout=30, trust_env=False) as http:
            for number in range(10_000):
                ticket = f"{prefix}-{thread}-{number}"
                try:
                    asked = http.post(ASK, json={"ticket": ticket})
                    asked.raise_for_status()
                    answers[ticket] = asked.json()
                    told = http.post(TELL, json={"ticket": ticket, "reward": number})
                    told.raise_for_status()
                    answers[ticket]["status"] = told.json()["status"]
                except httpx.HTTPError:
                    return
                if len(answers) >= stop_after and thread == 0 and stop.ident is None:
                    stop.start()

    threads = [threading.Thread(target=visit, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def kept(file: Path, answers: dict[str, Any]) -> None:
    """Nothing that was answered is lost."""
    log = read(file.parent / "journals" / "shop.db")
    rows = log.frame.set_index("ticket")
    for ticket, answer in answers.items():
        assert rows.loc[ticket, "arm"] == answer["arm"]
        if "status" in answer:
            assert rows.loc[ticket, "status"] in ("told", "pending")
    log.journal.close()


def test_stopped_and_started_again_nothing_answered_is_lost(tmp_path: Path) -> None:
    file = written(tmp_path)
    with running(file) as (process, url):
        connected(url)
        answers = visited(url, "a", process, stop_after=60)
        assert process.wait(timeout=60) == -signal.SIGTERM
    assert len(answers) >= 60
    lines = [json.loads(line) for line in (tmp_path / "stderr").read_text().splitlines()]
    assert lines[-1]["message"].startswith("Finished server process")
    assert sum(line.get("path") == ASK for line in lines) >= 60
    assert all(line.get("status", 200) == 200 for line in lines)
    kept(file, answers)
    with Caller(create_app(load(file))) as http:
        for ticket, answer in answers.items():
            again = http.post(ASK, json={"ticket": ticket}).json()
            assert again["arm"] == answer["arm"]
    assert (tmp_path / "journals" / "shop.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_two_workers_share_address_journal_and_counts(tmp_path: Path) -> None:
    file = written(tmp_path)
    with running(file, "--workers", "2") as (process, url):
        connected(url)
        asked = [httpx.post(url + ASK, json={}, timeout=30).json()["ticket"] for _ in range(40)]
        assert len(set(asked)) == 40
        text = httpx.get(f"{url}/metrics").text
        assert 'tailproof_asks_total{experiment="shop"} 40.0' in text
        answers = visited(url, "b", process, stop_after=200)
        assert process.wait(timeout=60) == 0
    assert (tmp_path / "stderr").read_text().count("Finished server process") == 2
    kept(file, answers)


def test_errors_that_may_name_hosts_are_not_shown() -> None:
    assert "db.example" not in _unwritten(RuntimeError("db.example is down")).detail
    assert "no space left" in _unwritten(OSError("no space left")).detail


def test_the_pieces_of_a_body_are_counted_together() -> None:
    async def piece() -> Any:
        return {"type": "http.request", "body": bytes(MOST_BYTES // 2 + 1), "more_body": True}

    async def two_pieces(_: Any, receive: Any, __: Any) -> None:
        await receive()
        with pytest.raises(HTTPException, match="413"):
            await receive()

    scope: Any = {"type": "http", "method": "POST", "path": ASK}
    scope["headers"] = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    limited = Middleware(two_pieces, None, (), set(), lambda *_: None)
    asyncio.run(limited(scope, piece, piece))  # type: ignore[arg-type]
