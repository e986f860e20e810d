"""Connections that stall, workers whose supervisor is killed, and journals that take no commit."""

import resource
import select
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from callers import Caller, connected, served
from servers import running

from tailproof.live import Journal, SQLite
from tailproof.live.config import load
from tailproof.service import connections, experiments, routes
from tailproof.service.app import create_app

SHOP = """
service.durable = false
[experiments.shop]
recipe = "ucb1"
silence = "lost"
arms = ["red", "blue"]
"""
HEAD = b"POST /experiments/shop/ask HTTP/1.1\r\nHost: localhost\r\n"
BODY = b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{"


def written(folder: Path) -> Path:
    file = folder / "shop.toml"
    file.write_text(SHOP)
    return file


def until(condition: Callable[[], Any], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A service that is impatient, for at most eight connections."""
    monkeypatch.setattr(connections, "_SECONDS_TO_SEND", 1.0)
    monkeypatch.setattr(connections, "_SECONDS_TO_READ", 3.0)
    monkeypatch.setattr(connections, "_MOST", 8)
    monkeypatch.setattr(connections, "_closed", [0, 0.0])
    with served(load(written(tmp_path)).at(None, 0)) as (url, _):
        yield url


def opened(url: str, sent: bytes) -> socket.socket:
    host, _, port = url.removeprefix("http://").partition(":")
    found = socket.create_connection((host, int(port)))
    found.sendall(sent)
    found.setblocking(False)
    return found


def is_closed(one: socket.socket) -> bool:
    try:
        return one.recv(1000) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


@pytest.mark.parametrize("sent", [b"", HEAD, HEAD + BODY])
def test_a_request_must_arrive_in_time(
    url: str, caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    with opened(url, sent) as one:
        until(lambda: is_closed(one))
    assert "connections closed: 1; the last one as its request took too long" in caplog.text


def test_a_byte_now_and_then_is_not_enough(url: str) -> None:
    with opened(url, HEAD + BODY.replace(b"2", b"2000")) as one:
        end = time.monotonic() + 20
        while not is_closed(one):
            assert time.monotonic() < end
            try:
                one.send(b" ")
            except OSError:
                break
            time.sleep(0.05)


def test_the_next_request_has_time_of_its_own(url: str) -> None:
    with opened(url, b"") as one:
        one.setblocking(True)
        for _ in range(2):
            for piece in (HEAD, BODY, b"}"):
                time.sleep(0.2)
                one.sendall(piece)
            answer = b""
            while not answer.endswith(b"}"):
                answer += one.recv(1000)
            assert answer.startswith(b"HTTP/1.1 200")
        one.sendall(HEAD)
        one.setblocking(False)
        until(lambda: is_closed(one))


def test_the_oldest_half_sent_request_makes_room(url: str) -> None:
    asks = HEAD + BODY + b"}"
    half = [opened(url, HEAD) for _ in range(7)]
    with opened(url, asks) as busy:
        for _ in range(5):
            assert httpx.get(f"{url}/health", trust_env=False).status_code == 200
        until(lambda: sum(map(is_closed, half)) >= 4)
        busy.setblocking(True)
        assert busy.recv(1000).startswith(b"HTTP/1.1 200")
    for one in half:
        one.close()


def test_who_does_not_read_the_log_gives_it_up(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(journal: Journal, *, events: bool) -> Iterator[str]:
        with journal.moment():
            journal.meta()
            while True:
                yield "x" * 65536

    monkeypatch.setattr(routes, "csv_pieces", endless)
    with closing(sqlite3.connect(tmp_path / "shop.db", timeout=0)) as other:

        def checkpointed() -> bool:
            return bool(other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0)

        ask = HEAD + BODY + b"}"
        with opened(url, HEAD.replace(b"POST", b"GET").replace(b"ask", b"log") + b"\r\n") as one:
            until(lambda: select.select([one], [], [], 0)[0])
            with opened(url, ask) as two:
                until(lambda: select.select([two], [], [], 0)[0])
            assert not checkpointed()  # the reader pins the log of what is written ahead
            until(checkpointed)


@pytest.mark.slow
def test_many_half_sent_requests_keep_nobody_out(tmp_path: Path) -> None:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    with running(written(tmp_path)) as (process, url):
        connected(url)
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (1024, files[1]))
        resource.setrlimit(resource.RLIMIT_NOFILE, (files[1], files[1]))
        start = time.monotonic()
        half = [opened(url, HEAD + BODY * (number % 2)) for number in range(1200)]
        while not all(map(is_closed, half)):
            assert time.monotonic() - start < 30
            assert httpx.get(f"{url}/health", timeout=10, trust_env=False).status_code == 200
            time.sleep(0.5)
        for one in half:
            one.close()
        process.terminate()
        process.wait(60)
    resource.setrlimit(resource.RLIMIT_NOFILE, files)
    lines = (tmp_path / "stderr").read_text().splitlines()
    assert len([line for line in lines if "/health" not in line]) <= 10


def test_workers_end_with_their_supervisor(tmp_path: Path) -> None:
    file = written(tmp_path)
    with running(file, "--workers", "2") as (process, url):
        connected(url)
        process.kill()
        process.wait()
    port = url.rpartition(":")[2]
    with running(file, "--workers", "2", "--port", port) as (process, again):
        assert again == url
        connected(url)
        process.terminate()
        assert process.wait(timeout=60) == 0


@pytest.fixture
def http(tmp_path: Path) -> Iterator[Caller]:
    with Caller(create_app(load(written(tmp_path)))) as client:
        yield client


def test_health_is_that_a_commit_could_be_made(
    http: Caller, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiments, "_KEPT", 0.0)
    monkeypatch.setattr(experiments, "_LIMIT", 0.2)
    assert http.get("/health").json()["status"] == "ok"
    with closing(sqlite3.connect(tmp_path / "shop.db")) as other:
        other.execute("BEGIN IMMEDIATE")  # as a worker that was stopped inside a transaction
        for _ in range(3):
            answer = http.get("/health")
            assert (answer.status_code, answer.json()["status"]) == (503, "failing")
        other.execute("ROLLBACK")
    until(lambda: http.get("/health").status_code == 200)
    assert caplog.messages == ["unhealthy: shop: no commit within 0.2 s"]


def test_a_full_disk_is_not_healthy(
    http: Caller, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiments, "_KEPT", 0.0)

    def full(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(SQLite, "set_meta", full)
        assert http.get("/health").status_code == 503
        assert http.get("/health").json() == http.get("/health").json()
    assert "unhealthy: shop: OperationalError database or disk is full" in caplog.text
    assert http.get("/health").status_code == 200


def test_health_is_looked_at_once_a_second(http: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    assert http.get("/health").status_code == 200
    monkeypatch.setattr(SQLite, "set_meta", None)  # nothing is written again
    assert [http.get("/health").status_code for _ in range(5)] == [200] * 5
