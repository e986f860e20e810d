"""The client, before a service that answers, answers late, twice, wrongly, or never."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tailproof.live import AsyncClient, Client, Ticket, read
from tailproof.live.config import Config, load
from tailproof.live.http.server import listening, server

SHOP = """
service.durable = false
[experiments.shop]
recipe = "filtered(ucb1, repeats=3)"
arms = ["red", "blue"]
[experiments.lines]
recipe = "lin_student_ucb"
"""
Call = Callable[..., Any]


class Both:
    """Either client, called alike."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __call__(self, url: str, *calls: tuple[Any, ...], **settings: Any) -> list[Any]:
        """Return what calls, (method, arguments…), give; an error ends them."""
        if self.kind == "sync":
            with Client(url, **settings) as client:
                return [getattr(client, method)(*args) for method, *args in calls]

        async def main() -> list[Any]:
            async with AsyncClient(url, **settings) as client:
                return [await getattr(client, method)(*args) for method, *args in calls]

        return asyncio.run(main())


@pytest.fixture(params=["sync", "async"])
def client(request: pytest.FixtureRequest) -> Both:
    return Both(request.param)


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    file: Path = tmp_path_factory.mktemp("shop") / "shop.toml"
    file.write_text(SHOP)
    return load(file).at(None, 0)


@pytest.fixture(scope="module")
def url(config: Config) -> Iterator[str]:
    with listening(config) as (place, url):
        service = server(config)
        thread = threading.Thread(target=service.run, kwargs={"sockets": [place]})
        thread.start()
        yield url
        service.should_exit = True
        thread.join()


class Patient(ThreadingHTTPServer):
    """A server that does not complain of those who did not wait."""

    def handle_error(self, *_: object) -> None:
        pass


@pytest.fixture
def answering() -> Iterator[Callable[[Call], tuple[str, list[Any]]]]:
    """A service of our own making: it gives back its address and the bodies that it gets."""
    servers = []

    def start(answer: Call) -> tuple[str, list[Any]]:
        bodies: list[Any] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                bodies.append(body | {"token": self.headers["Authorization"]})
                status, text = answer(len(bodies))
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:
                pass

        found = Patient(("127.0.0.1", 0), Handler)
        servers.append(found)
        threading.Thread(target=found.serve_forever, args=(0.01,)).start()
        return f"http://127.0.0.1:{found.server_port}", bodies

    yield start
    for one in servers:
        one.shutdown()
        one.server_close()


TICKET = json.dumps({"ticket": "v1", "arm": "blue", "propensity": 0.5, "hold": 3})


def test_ask_and_tell(url: str, client: Both) -> None:
    name = f"{client.kind} 1"
    one, again, two = client(
        url, ("ask", "shop", None, name), ("ask", "shop", None, name), ("ask", "shop"), timeout=30
    )
    assert one == again
    assert (one.id, one.default) == (name, False)
    assert one.arm in ("red", "blue")
    assert len(two.id) == 32
    told = [(name, 3), (name, 3), (two.id, -np.inf), ("nobody", 1)]
    calls = [("tell", "shop", ticket, reward) for ticket, reward in told]
    assert client(url, *calls, timeout=30)[1::2] == ["duplicate", "unknown"]


def test_features_go_over_the_wire(url: str, client: Both, config: Config) -> None:
    offer = {"x": np.array([1.0, 0.5]), "y": np.array([0.0, 1e-3])}
    (ticket,) = client(url, ("ask", "lines", offer), timeout=30)
    assert ticket.arm in offer
    log = read(Path(config.journal) / "lines.db")
    assert log.frame.set_index("ticket").loc[ticket.id, "arm"] == ticket.arm
    decision = log.journal.decision(ticket.hold)
    assert decision.offer.vectors is not None
    np.testing.assert_array_equal(decision.offer.vectors, list(offer.values()))
    log.journal.close()


def test_what_is_refused_raises_the_sentence(url: str, client: Both) -> None:
    for call, words in [
        (("ask", "shoe"), "unknown experiment 'shoe': this service has shop, lines"),
        (("ask", "a/b"), "Not Found"),
        (("ask", "shop", None, "99.0"), "ticket '99.0' is reserved"),
        (("ask", "shop", ["red", "red"]), "arm names must be unique"),
        (("tell", "shop", "a", float("nan")), "reward must be a float"),
    ]:
        with pytest.raises(ValueError, match=words):
            client(url, call, default="red", timeout=30)


def test_no_answer_is_the_default_and_says_so(client: Both) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        start = time.monotonic()
        (ticket,) = client(url, ("ask", "shop", None, "v1"), default="red", timeout=0.2)
        assert 0.15 < time.monotonic() - start < 5
        assert ticket == Ticket("default:v1", "red", None, -1, default=True)
        with pytest.raises(
            ConnectionError, match=r"no answer from \S+ within 0.2 s \(\w+Timeout\)"
        ):
            client(url, ("ask", "shop"), timeout=0.2)
        with pytest.raises(ConnectionError, match="no answer from"):
            client(url, ("tell", "shop", "v1", 1.0), default="red", timeout=0.2)


def test_the_reward_of_a_default_teaches_nothing(url: str, client: Both) -> None:
    assert client(url, ("tell", "shop", "default:v1", 5.0), timeout=30) == ["unknown"]


def test_tries_have_one_ticket(
    client: Both, answering: Callable[[Call], tuple[str, list[Any]]]
) -> None:
    url, bodies = answering(lambda number: (503, "") if number < 3 else (200, TICKET))
    (ticket,) = client(url, ("ask", "shop", ["red"]), timeout=30)
    assert (ticket.arm, ticket.hold, ticket.default) == ("blue", 3, False)
    assert len(bodies) == 3
    assert bodies[0] == bodies[1] == bodies[2]
    assert bodies[0]["offer"] == ["red"]


def test_a_lost_answer_is_asked_for_again(
    client: Both, answering: Callable[[Call], tuple[str, list[Any]]]
) -> None:
    def first_is_slow(number: int) -> tuple[int, str]:
        time.sleep(1.5 if number == 1 else 0)
        return 200, json.dumps({"ticket": "v1", "fate": "kept"})

    url, bodies = answering(first_is_slow)
    assert client(url, ("tell", "shop", "v1", np.inf), timeout=2.0) == ["kept"]
    assert bodies == [{"ticket": "v1", "reward": "Infinity", "token": None}] * 2


def test_another_service_is_not_understood(
    client: Both, answering: Callable[[Call], tuple[str, list[Any]]]
) -> None:
    for answer in [(200, "hello"), (200, "[]"), (302, ""), (418, "{}"), (200, '{"other": 1}')]:
        url, _ = answering(lambda _, answer=answer: answer)
        with pytest.raises(ValueError, match="is this a tailproof service"):
            client(url, ("ask", "shop"), default="red", timeout=30)


def test_a_token_is_sent(client: Both, answering: Callable[[Call], tuple[str, list[Any]]]) -> None:
    url, bodies = answering(lambda _: (200, TICKET))
    client(url, ("ask", "shop"), token="of the shop", timeout=30)
    client(url, ("ask", "shop"), timeout=30)
    assert [body["token"] for body in bodies] == ["Bearer of the shop", None]


def test_settings_are_checked(client: Both) -> None:
    with pytest.raises(ValueError, match="timeout must be a finite number above 0, got 0"):
        client("http://127.0.0.1:9", timeout=0)
    with pytest.raises(ValueError, match="arm names must be"):
        client("http://127.0.0.1:9", default="")
