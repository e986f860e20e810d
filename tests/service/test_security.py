"""Who is answered: tokens, hosts, origins and kinds of bodies."""

from dataclasses import replace
from pathlib import Path

import pytest
from callers import Caller
from typer.testing import CliRunner

from tailproof.cli import app
from tailproof.live.config import Config, load
from tailproof.service.app import create_app

SHOP = """
service.durable = false
[experiments.shop]
recipe = "auto_filtered(ucb1(bonus=0.7), repeats=3)"
silence = "lost"
arms = ["red", "blue"]
[experiments.times]
recipe = "lin_student_ucb"
silence = "lost"
"""
TOKEN = "correct-horse-battery-staple"
ASK = "/experiments/shop/ask"
OPEN = {"/", "/client.js", "/health", "/page.css", "/page.js", "/charts.js"}


@pytest.fixture
def config(tmp_path: Path) -> Config:
    file = tmp_path / "shop.toml"
    file.write_text(SHOP)
    return load(file)


def test_a_token_is_asked_for(config: Config) -> None:
    with Caller(create_app(config, TOKEN)) as http:
        wrong = (f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer ", "Bearer", TOKEN, "")
        for header in ({}, *({"Authorization": text} for text in wrong)):
            for path in ("/metrics", "/openapi.json", "/experiments/shop/log", "/nowhere"):
                answer = http.get(path, headers=header)
                assert answer.status_code == 401
                assert "missing or wrong token" in answer.json()["error"]
            assert http.post(ASK, json={}, headers=header).status_code == 401
            assert http.post(ASK, json={}, headers=header).headers["WWW-Authenticate"] == "Bearer"
        assert http.get("/health").json()["status"] == "ok"
        for scheme in ("Bearer", "bearer", "BEARER "):
            right = {"Authorization": f"{scheme} {TOKEN}"}
            assert http.post(ASK, json={}, headers=right).status_code == 200
        assert http.get("/experiments/shop/log", headers=right).text.count("\n") == 4
        assert http.get("/openapi.json", headers=right).json()["security"] == [{"token": []}]


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_other_addresses_need_a_token(config: Config, address: str) -> None:
    config = config.at(address, None)
    with pytest.raises(ValueError, match="is not loopback: set TAILPROOF_TOKEN"):
        create_app(config)
    with pytest.raises(ValueError, match="TAILPROOF_TOKEN must be at least 16 ASCII characters"):
        create_app(config, "short")


def asked(http: Caller, **headers: str) -> int:
    """Ask, look at the health, and return the status, which is the same."""
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    posted, read = http.post(ASK, json={}, headers=named), http.get("/health", headers=named)
    assert posted.status_code == read.status_code
    return int(posted.status_code)


LOOPBACK = ("localhost", "LOCALHOST:80", "127.0.0.1", "127.9.9.9:8000", "[::1]", "[::1]:8000")
STRANGE = ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "192.0.2.1", "")


def test_without_a_token_the_host_is_this_machine(config: Config) -> None:
    with Caller(create_app(config)) as http:
        assert [asked(http, Host=host) for host in LOOPBACK] == [200] * 6
        assert [asked(http, Host=host) for host in (*STRANGE, "[::1", "a b")] == [403] * 7
        answer = http.get("/experiments/shop/log", headers={"Host": "evil.example"})
        assert answer.status_code == 403
        assert answer.json() == {
            "error": "unknown host 'evil.example': add it to service.hosts in the file"
        }


def test_hosts_may_be_named(config: Config) -> None:
    config = replace(config, hosts=["Shop.example"])
    with Caller(create_app(config)) as http:
        assert [asked(http, Host=host) for host in ("shop.example:443", "localhost")] == [200] * 2
        assert asked(http, Host="evil.example") == 403
    known = {"Authorization": f"Bearer {TOKEN}"}
    with Caller(create_app(config, TOKEN)) as http:
        assert asked(http, Host="shop.example", **known) == 200
        assert asked(http, Host="localhost", **known) == 403
    with Caller(create_app(replace(config, hosts=[]), TOKEN)) as http:
        assert asked(http, Host="anything.example", **known) == 200


def test_pages_of_other_sites_are_refused(config: Config) -> None:
    strange = ("http://evil.example", "null", "http://localhost:81", "https://[::1", "")
    config = replace(config, hosts=["shop.example"])
    for token in (None, TOKEN):
        with Caller(create_app(config, token)) as http:
            more = {"Host": "shop.example:8000", "Authorization": f"Bearer {TOKEN}"}
            for origin in strange:
                assert asked(http, Origin=origin, **more) == 403
            for origin in ("http://shop.example:8000", "https://shop.example"):
                assert asked(http, Origin=origin, **more) == 200


def test_another_port_is_another_site(config: Config) -> None:
    with Caller(create_app(config)) as http:
        assert asked(http, Host="localhost:8000", Origin="http://localhost:81") == 403
        assert asked(http, Host="localhost:8000", Origin="http://localhost:8000") == 200


def test_a_body_must_be_sent_as_json(config: Config) -> None:
    with Caller(create_app(config)) as http:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "", "application/jsonx"):
            answer = http.post(ASK, content=b"{}", headers={"Content-Type": kind})
            assert answer.status_code == 415
            assert "Content-Type: application/json" in answer.json()["error"]
        assert http.post(ASK, content=b"{}").status_code == 415
        right = {"Content-Type": "Application/JSON; charset=utf-8"}
        assert http.post(ASK, content=b"{}", headers=right).status_code == 200


def test_head_is_get_without_a_body(config: Config) -> None:
    with Caller(create_app(config)) as http:
        for path in (*OPEN, "/metrics", "/experiments", "/experiments/shop/log"):
            answer = http.head(path)
            assert answer.status_code == 200
            assert answer.content == b""
        assert http.head("/nowhere").status_code == 404
        assert http.head(ASK).status_code == 405


PASSWORDS = [
    ("mysql://u:secret@h/x", "cannot open a journal at mysql://…: use a file or postgresql://"),
    ("postgresql://u:secret@127.0.0.1:9/x", "cannot open the PostgreSQL journal"),
    ("postgresql://u:a@secret@127.0.0.1:9/x", "cannot read the postgresql:// URL"),
    ("postgresql://u:a/secret@127.0.0.1:9/x", "cannot read the postgresql:// URL"),
    ("postgresql://u:a#secret@127.0.0.1:9/x", "cannot read the postgresql:// URL"),
    ("postgresql://u:secret%zz@127.0.0.1:9/x", "cannot read the postgresql:// URL"),
    ("postgresql://u:secret x@127.0.0.1:9/x", ""),  # old libraries take the space
    ("postgresql://u:secret@[::1/x", "cannot read the postgresql:// URL"),
    ("postgresql://u:secret@127.0.0.1:port/x", "cannot open the PostgreSQL journal"),
]


@pytest.mark.parametrize(("url", "words"), PASSWORDS)
def test_passwords_are_not_shown(tmp_path: Path, url: str, words: str) -> None:
    pytest.importorskip("psycopg")
    file = tmp_path / "secret-less.toml"
    file.write_text(SHOP.replace("service.durable = false", f'service.journal = "{url}"'))
    for command in (["log", url], ["verify", url], ["serve", str(file)]):
        done = CliRunner().invoke(app, command, env={"COLUMNS": "300"})
        assert done.exit_code == 2
        assert "secret" not in done.output.replace("secret-less", "")
        assert words in done.output or "service.journal must be a folder or a post" in done.output
