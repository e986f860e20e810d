"""What a service answers a browser; `make test-browser` looks at it in one."""

import time
from pathlib import Path
from typing import Any

import pytest
from callers import Caller

from tailproof.live.config import Config, load
from tailproof.service.app import create_app

FILE = """
[service]
journal = "journals"
durable = false

[experiments.shop]
recipe = "ucb1"
silence = "lost"
aim = "quantile(0.9)"
arms = ["red", "blue"]
"""
TOKEN = "correct-horse-battery-staple"
FILES = ["/", "/client.js", "/page.css", "/page.js", "/charts.js"]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    file = tmp_path / "shop.toml"
    file.write_text(FILE)
    return load(file)


def summary(client: Caller, asked: int) -> Any:
    """Return the summary, once it has seen so many requests."""
    for _ in range(400):
        found = client.get("/experiments/shop/summary").json()
        if found.get("tickets", {}).get("asked") == asked:
            return found
        time.sleep(0.05)
    raise AssertionError(found)


def test_a_summary_follows_what_is_asked_and_told(config: Config) -> None:
    with Caller(create_app(config)) as client:
        found = summary(client, 0)
        assert found["offer"] == ["red", "blue"]
        assert found["aim_words"] == "the largest 0.9-quantile"
        for reward in range(3):
            ticket = client.post("/experiments/shop/ask", json={}).json()["ticket"]
            client.post("/experiments/shop/tell", json={"ticket": ticket, "reward": reward})
        client.post("/experiments/shop/ask", json={})
        found = summary(client, 4)
        assert (found["tickets"]["rewards"], found["tickets"]["pending"]) == (3, 1)
        (head,) = client.get("/experiments").json()["experiments"]
        assert (head["name"], head["tickets"]) == ("shop", found["tickets"])
        answer = client.get("/experiments/none/summary")
        assert answer.status_code == 404
        assert answer.json() == {"error": "unknown experiment 'none': this service has shop"}


@pytest.mark.parametrize("path", FILES)
def test_files_are_packed_kept_and_bound_to_this_host(config: Config, path: str) -> None:
    with Caller(create_app(config)) as client:
        first = client.get(path)
        assert first.headers["content-encoding"] == "gzip"
        known = {"If-None-Match": first.headers["etag"]}
        assert client.get(path, headers=known).status_code == 304
        plain = client.get(path, headers={"Accept-Encoding": "identity"})
        assert "content-encoding" not in plain.headers
        assert plain.text == first.text
        policy = first.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        if path != "/client.js":
            named = first.text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
            assert "http" not in named  # no host is named


def test_files_need_no_token_and_summaries_do(config: Config) -> None:
    with Caller(create_app(config, TOKEN)) as client:
        for path in FILES:
            assert client.get(path).status_code == 200
        for path in ("/experiments", "/experiments/shop/summary"):
            assert client.get(path).status_code == 401
            assert client.get(path, headers={"Authorization": "Bearer x"}).status_code == 401
            known = {"Authorization": f"Bearer {TOKEN}"}
            assert client.get(path, headers=known).status_code == 200


def test_a_journal_that_cannot_be_read_is_tried_again(
    config: Config, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Caller(create_app(config)) as client:
        summary(client, 0)
        with monkeypatch.context() as broken:
            broken.setattr("tailproof.service.page.summary.Summary.refresh", lambda _: 1 / 0)
            while "cannot read the journal of shop" not in caplog.text:
                assert client.get("/experiments/shop/summary").status_code == 200
                time.sleep(0.05)
        client.post("/experiments/shop/ask", json={})
        summary(client, 1)


def test_each_request_reads_on_in_a_long_journal_and_waits_for_no_other(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tailproof.service.page.counts._CHUNK", 10)
    monkeypatch.setattr("tailproof.service.page.pages._PATIENCE", 0.0)
    with Caller(create_app(config)) as client:
        for reward in range(30):
            ticket = client.post("/experiments/shop/ask", json={}).json()["ticket"]
            client.post("/experiments/shop/tell", json={"ticket": ticket, "reward": reward})
        pages = client.app.state.pages  # type: ignore[attr-defined]
        with pages._lock:  # another request reads
            assert client.get("/experiments/shop/summary").json() == {"name": "shop", "read": 0.0}
        reads: list[float] = []
        while not reads or reads[-1] < 1:
            reads.append(client.get("/experiments/shop/summary").json()["read"])
        assert reads[0] == pytest.approx(1 / 3)
        assert reads == sorted(reads)
        assert summary(client, 30)["tickets"]["rewards"] == 30


def test_acts_are_done_written_and_refused_in_a_sentence(config: Config) -> None:
    with Caller(create_app(config)) as client:
        shop = "/experiments/shop"
        for _ in range(3):
            client.post(f"{shop}/ask", json={})
        for act, body in {"drop": "red", "pause": "blue", "resume": None, "stop": "blue"}.items():
            given = {} if body is None else {"arm": body}
            answer = client.post(f"{shop}/{act}", json=given)
            assert (answer.status_code, answer.json()) == (200, {"done": True})
        assert client.post(f"{shop}/ask", json={}).json()["arm"] == "blue"
        for _ in range(400):
            found = client.get(f"{shop}/summary").json()
            if len(found.get("notes", [])) == 4:
                break
            time.sleep(0.05)
        assert found["state"] == {"fixed": {"arm": "blue", "why": "stop"}, "dropped": ["red"]}
        answer = client.post(f"{shop}/drop", json={"arm": "green"})
        assert answer.status_code == 422
        assert "green" in answer.json()["error"]
        assert client.post(f"{shop}/pause", json={}).status_code == 422
        assert client.post(f"{shop}/resume", json={"arm": "red"}).status_code == 422


@pytest.mark.parametrize("act", ["drop", "pause", "stop", "resume"])
def test_acts_need_the_token_and_a_page_of_this_service(config: Config, act: str) -> None:
    path, body = f"/experiments/shop/{act}", {} if act == "resume" else {"arm": "red"}
    with Caller(create_app(config, TOKEN)) as client:
        assert client.post(path, json=body).status_code == 401
    with Caller(create_app(config)) as client:
        other = {"Origin": "http://elsewhere.example"}
        assert client.post(path, json=body, headers=other).status_code == 403
        assert client.get(path).status_code == 405
