"""The client, before a service that answers, answers late, twice, wrongly, or never."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from callers import served
from faults import KINDS, faulty

from tailproof.live import Ticket, read
from tailproof.live.config import Config, load
from tailproof.service import AsyncClient, Client

SHOP = """
service.durable = false
[experiments.shop]
recipe = "filtered(ucb1, repeats=3)"
silence = "lost"
arms = ["red", "blue"]
[experiments.lines]
recipe = "lin_student_ucb"
silence = "lost"
"""


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
    with served(config) as (url, _):
        yield url


def test_ask_and_tell(url: str, client: Both) -> None:
    name = f"{client.kind} 1"
    one, again, two = client(
        url, ("ask", "shop", None, name), ("ask", "shop", None, name), ("ask", "shop"), timeout=30
    )
    assert one == again
    assert (one.id, one.default) == (name, False)
    assert one.arm in ("red", "blue")
    assert len(two.id) == 32
    told = [(name, 3), (name, 3), (two.id, -np.inf, "order 7"), ("nobody", 1)]
    calls = [("tell", "shop", *one) for one in told]
    assert client(url, *calls, timeout=30)[1::2] == ["duplicate", "unknown"]


def test_features_go_over_the_wire(url: str, client: Both, config: Config) -> None:
    offer = {"x": np.array([1.0, 0.5]), "y": np.array([0.0, 1e-3])}
    (ticket,) = client(url, ("ask", "lines", offer), timeout=30)
    assert ticket.arm in offer
    log = read(Path(config.journal) / "lines.db")
    assert log.frame.set_index("ticket").loc[ticket.id, "arm"] == ticket.arm
    features = log.frame.set_index("ticket").filter(like="x:").loc[ticket.id]
    np.testing.assert_array_equal(features, np.concatenate(list(offer.values())))
    log.journal.close()


REFUSED = [
    (("ask", "shoe"), "unknown experiment 'shoe': this service has shop, lines"),
    (("ask", "a/b"), "Not Found"),
    (("ask", "shop", None, "#99"), "ticket '#99' is reserved"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_a_refusal_raises_its_sentence_or_gives_the_default(
    url: str,
    client: Both,
    caplog: pytest.LogCaptureFixture,
    call: tuple[str, ...],
    words: str,
) -> None:
    with pytest.raises(ValueError, match=words):
        client(url, call, timeout=30)
    (ticket,) = client(url, call, default="red", timeout=30)
    assert (ticket.arm, ticket.default) == ("red", True)
    assert words in caplog.text


def test_what_cannot_be_right_raises_even_with_a_default(client: Both) -> None:
    for call, words in [
        (("ask", "shop", ["red", "red"]), "arm names must be unique"),
        (("ask", "shop", None, ""), "ticket must be a string"),
        (("tell", "shop", "a", float("nan")), "reward must be a float"),
    ]:
        with pytest.raises(ValueError, match=words):
            client("http://127.0.0.1:9", call, default="red")


@pytest.fixture(scope="module")
def faults() -> Iterator[str]:
    with faulty() as (url, _):
        yield url


@pytest.mark.parametrize("kind", KINDS)
def test_every_fault_gives_the_default_in_time(
    faults: str, client: Both, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    url = "http://127.0.0.1:9" if kind == "refuse" else f"{faults}/{kind}"
    calls = [("ask", "shop", None, "v1"), ("tell", "shop", "v1", 1.0)]
    start = time.monotonic()
    ticket, told = client(url, *calls, default="red", timeout=0.05)
    assert time.monotonic() - start < 2  # a dripping server takes longer
    assert ticket == Ticket("default:v1", "red", None, default=True)
    assert told == "failed"
    assert url in caplog.text or "status" in caplog.text
    for call in calls:
        with pytest.raises((ConnectionError, ValueError), match=r"no answer from|is this a tailp"):
            client(url, call, timeout=0.05)


def test_no_answer_is_unpacked(client: Both, caplog: pytest.LogCaptureFixture) -> None:
    """64 kB of gzip can be 64 MB of zeros, for which the other callers of a thread would wait."""
    with faulty("gzip") as (url, _):
        client(url, ("ask", "shop"), default="red", timeout=0.2)
    assert "the answer is compressed" in caplog.text


def test_a_late_thread_holds_nobody_up(caplog: pytest.LogCaptureFixture) -> None:
    with faulty("good") as (url, bodies), Client(url, default="red", timeout=0.05) as client:
        client._runs.call_soon_threadsafe(time.sleep, 0.5)
        assert client.ask("shop", None, "v1").default
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), client._runs).result()
        assert "timed out" in caplog.text
    assert bodies == []


def test_the_reward_of_a_default_teaches_nothing(url: str, client: Both) -> None:
    assert client(url, ("tell", "shop", "default:v1", 5.0), timeout=30) == ["unknown"]


def test_tries_have_one_ticket(client: Both) -> None:
    with faulty("503", "reset", "429", "good") as (url, bodies):
        (ticket,) = client(url, ("ask", "shop", ["red"], None, "user 7"), timeout=30)
    assert (ticket.arm, ticket.default) == ("blue", False)
    assert bodies == [{"ticket": ticket.id, "unit": "user 7", "offer": ["red"]}] * 4


def test_one_try_may_take_all_the_time(client: Both) -> None:
    with faulty("slow") as (url, bodies):
        (status,) = client(url, ("tell", "shop", "v1", np.inf), timeout=30)
    assert status == "kept"
    assert bodies == [{"ticket": "v1", "reward": "Infinity"}]


def test_an_ask_that_was_given_up_is_cancelled_by_the_next_call(client: Both) -> None:
    with faulty("hang", "hang", "hang", "good") as (url, bodies):
        asks = [("ask", "shop", None, name) for name in ("v1", "v2")]
        more = [("tell", "shop", "v0", 1.0), ("ask", "other"), *reversed(asks), *asks]
        client(url, *asks, *more, default="red", timeout=1)
    told, other, *asked = bodies[2:]
    assert told["cancel"] == ["v1", "v2"]
    assert "cancel" not in other  # an experiment cancels its own
    # The tell failed too. The next ask is for one of them, so that only the other is cancelled.
    assert [body.get("cancel") for body in asked] == [["v1"], None, None, None]


def test_a_call_that_its_task_cancels_is_given_up() -> None:
    async def main(url: str) -> None:
        async with AsyncClient(url, timeout=30) as client:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.ask("shop", None, "v1"), 0.2)
            await client.ask("shop", None, "v2")
            await client.ask("shop", None, "v3")

    with faulty("hang", "good") as (url, bodies):
        asyncio.run(main(url))
    assert [body.get("cancel") for body in bodies] == [None, ["v1"], None]


def test_a_service_that_keeps_failing_is_left_alone_for_a_while(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [0.0]
    with (
        faulty(*["418"] * 6, "good") as (url, bodies),
        Client(url, default="red", timeout=30) as client,
    ):
        client._clock = lambda: now[0]
        asks = [client.ask("shop").default for _ in range(20)]
        assert asks == 20 * [True]
        assert len(bodies) == 5
        assert len(caplog.records) == 2  # what happens, and that it keeps happening
        client.default = None
        with pytest.raises(ConnectionError, match=r"keeps failing \(.*418.*next try is in 1.0 s"):
            client.ask("shop")
        now[0] += 1
        client.default = "red"
        assert [client.ask("shop").default for _ in range(3)] == [True] * 3
        assert len(bodies) == 6  # half-open: one try
        now[0] += 1.9
        assert client.ask("shop").default  # the pause has doubled
        now[0] += 0.1
        assert [client.ask("shop").default for _ in range(3)] == [False] * 3
        assert caplog.messages[-1] == f"{url} answers again"


def test_half_open_is_one_try_at_a_time() -> None:
    now = 0.0
    client = AsyncClient("http://127.0.0.1:9", default="red")
    client._clock = lambda: now
    failure = client._no_answer("timed out")

    def allowed(calls: int) -> list[bool]:
        return [not client._held_back() for _ in range(calls)]

    for failures in range(1, 6):
        assert allowed(2) == [True, True]
        client._fail(failure, "shop", "ask", f"v{failures}")
    assert allowed(1) == [False]
    now = 1.0
    assert allowed(3) == [True, False, False]
    now = 2.0  # the try has not come back
    assert allowed(2) == [True, False]
    for _ in range(9):
        client._fail(failure, "shop", "ask", "v9")
    now = 31.9
    assert allowed(1) == [False]
    now = 32.0  # never more than half a minute
    assert allowed(1) == [True]
    asyncio.run(client.close())


def test_one_bad_caller_does_not_stop_the_others(url: str) -> None:
    with Client(url, default="red", timeout=30) as client:
        assert all(client.ask("shoe").default for _ in range(10))
        assert not client.ask("shop").default


def test_a_client_may_be_made_before_a_fork() -> None:
    code = """
import os, sys
from tailproof.service import Client
client = Client(sys.argv[1], timeout=30)
client.ask("shop")
child = os.fork()
client.ask("shop")
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    with faulty("good") as (url, bodies):
        subprocess.run([sys.executable, "-c", code, url], check=True, timeout=60)
    assert len(bodies) == 3


def test_a_token_is_sent(client: Both) -> None:
    with faulty("good") as (url, bodies):
        client(url, ("ask", "shop"), token="of the shop", timeout=30)
        client(url, ("ask", "shop"), timeout=30)
    assert [body.get("token") for body in bodies] == ["Bearer of the shop", None]


def test_settings_are_checked(client: Both) -> None:
    with pytest.raises(ValueError, match="timeout must be a finite number above 0, got 0"):
        client("http://127.0.0.1:9", timeout=0)
    with pytest.raises(ValueError, match="arm names must be"):
        client("http://127.0.0.1:9", default="")
    with pytest.raises(ValueError, match="url must have no password: pass token="):
        client("http://me:secret@127.0.0.1:9")
