"""Our strategy in a real `litellm.Router` with mock deployments; nothing leaves the computer."""

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tailproof import Median
from tailproof.integrations.routing import Router

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # read when it is imported
litellm = pytest.importorskip("litellm")
in_litellm = pytest.importorskip("tailproof.integrations.hosts.litellm")

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning",  # of LiteLLM's own dependencies
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore::ResourceWarning",
)
ASK: list[dict[str, str]] = [{"role": "user", "content": "?"}]


def deployment(name: str, group: str = "chat", **params: Any) -> dict[str, Any]:
    known = {"model": "openai/gpt-4o-mini", "api_key": "none", "mock_response": "Hello there"}
    return {
        "model_name": group,
        "litellm_params": known | params,
        "model_info": {"id": name},
    }


Start = Callable[..., tuple[Any, Any]]


@pytest.fixture
def start() -> Iterator[Start]:
    made: list[Any] = []

    def make(deployments: list[Any], settings: dict[str, Any], **more: Any) -> tuple[Any, Any]:
        router = litellm.Router(deployments, **({"num_retries": 0} | more))
        made.append(in_litellm.LiteLLMStrategy(router, **settings))
        return router, made[-1]

    yield make
    for strategy in made:
        strategy.close()


def wait_for(landed: int, group: Router) -> None:
    """LiteLLM calls back in a thread of its own."""
    end = time.monotonic() + 30
    while sum(record.landed for record in group._records) < landed and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(0.05)  # a second callback for the same call would come now
    assert sum(record.landed for record in group._records) == landed


@pytest.mark.parametrize("stream", [False, True])
def test_every_call_is_learned_once(start: Start, stream: bool) -> None:
    router, strategy = start([deployment("a"), deployment("b")], {})

    def call() -> None:
        answer = router.completion("chat", ASK, stream=stream)
        if stream:
            assert "".join(part.choices[0].delta.content or "" for part in answer) == "Hello there"
        else:
            assert answer.choices[0].message.content == "Hello there"

    async def acall() -> None:
        answer = await router.acompletion("chat", ASK, stream=stream)
        if stream:
            assert [part async for part in answer]

    async def several() -> None:
        await asyncio.gather(*(acall() for _ in range(10)))
        await asyncio.sleep(0.2)

    for _ in range(5):
        call()
    wait_for(5, strategy.groups["chat"])
    asyncio.run(several())
    wait_for(15, strategy.groups["chat"])
    assert strategy.groups["chat"]._core.state.decisions.tolist() == [15]
    assert sorted(strategy.groups["chat"].arms) == ["a", "b"]


def test_the_slower_deployment_is_left(start: Start) -> None:
    router, strategy = start([deployment("slow", mock_delay=0.05), deployment("fast")], {})

    async def calls() -> list[str]:
        found = []
        for _ in range(30):
            answer = await router.acompletion("chat", ASK)
            found.append(answer._hidden_params["model_id"])
            await asyncio.sleep(0.01)
        return found

    found = Counter(asyncio.run(calls()))
    assert found["fast"] > found["slow"] > 0
    wait_for(30, strategy.groups["chat"])


def test_a_deployment_that_fails_is_charged_and_falls_back(start: Start) -> None:
    """The fallback group has deployments and a router of its own."""
    broken = [deployment(name, mock_response=Exception("down")) for name in ("x", "y")]
    router, strategy = start(
        [*broken, deployment("spare", "spare")], {"failure": 60.0}, fallbacks=[{"chat": ["spare"]}]
    )
    answers = [router.completion("chat", ASK) for _ in range(6)]
    assert {answer._hidden_params["model_id"] for answer in answers} == {"spare"}
    wait_for(6, strategy.groups["spare"])
    assert set(strategy.groups["chat"].arms) <= {"x", "y"}
    assert sum(record.landed for record in strategy.groups["chat"]._records) > 0
    assert strategy.groups["chat"].failure == 60.0


def test_a_time_out_is_a_failure(start: Start) -> None:
    router, strategy = start([deployment("late", mock_timeout=True, timeout=0.01)], {})
    with pytest.raises(litellm.Timeout):
        router.completion("chat", ASK, timeout=0.01)
    wait_for(1, strategy.groups["chat"])
    (record,) = strategy.groups["chat"]._records
    assert [cost for _, cost in record.failures] == [float("inf")]


def test_a_retry_is_an_attempt_of_its_own(start: Start) -> None:
    router, strategy = start(
        [deployment("bad", mock_response=Exception("down")), deployment("good")],
        {},
        num_retries=3,
    )

    async def calls() -> None:
        for _ in range(8):
            answer = await router.acompletion("chat", ASK)
            assert answer._hidden_params["model_id"] == "good"
        await asyncio.sleep(0.2)

    asyncio.run(calls())
    group = strategy.groups["chat"]
    landed = dict(zip(group.arms, (record.landed for record in group._records), strict=True))
    assert landed["good"] == 8
    assert landed["bad"] >= 1


@pytest.mark.parametrize(
    ("measure", "streamed", "whole"),
    [
        ("latency", 2.0, 2.0),
        ("first_token", 0.5, 2.0),
        ("cost", 0.003, 0.003),
        ({"latency": 1, "first_token": 2, "cost": 1000}, 6.0, 9.0),
    ],
)
def test_what_is_measured(start: Start, measure: Any, streamed: float, whole: float) -> None:
    _, strategy = start([deployment("a")], {"measure": measure})
    known = {"completion_start_time": 10.5, "response_cost": 0.003}
    assert strategy._cost(known | {"stream": True}, 10.0, 12.0) == pytest.approx(streamed)
    assert strategy._cost(known, 10.0, 12.0) == pytest.approx(whole)


def test_a_call_without_a_price_is_not_learned(start: Start, caplog: Any) -> None:
    router, strategy = start([deployment("a")], {"measure": "cost"})
    router.completion("chat", ASK)
    wait_for(1, strategy.groups["chat"])  # the mock has a price
    router.get_available_deployment("chat", ASK)
    params = {"metadata": {"model_group": "chat"}, "model_info": {"id": "a"}}
    strategy.log_success_event({"litellm_params": params}, None, 1.0, 2.0)
    assert "no price" in caplog.text
    wait_for(1, strategy.groups["chat"])


def test_what_another_strategy_chose_is_ignored(start: Start) -> None:
    _, strategy = start([deployment("a")], {})
    for params in ({}, {"metadata": {"model_group": "chat"}, "model_info": {"id": "b"}}):
        strategy.log_success_event({"litellm_params": params}, None, 1.0, 2.0)
        strategy.log_failure_event({"litellm_params": params}, None, 1.0, 2.0)
    assert strategy.groups == {}


def test_an_alias_is_the_same_group(start: Start) -> None:
    router, strategy = start(
        [deployment("a"), deployment("b")], {}, model_group_alias={"talk": "chat"}
    )
    for name in ("talk", "chat"):
        assert router.completion(name, ASK).choices[0].message.content == "Hello there"
    wait_for(2, strategy.groups["chat"])
    assert list(strategy.groups) == ["chat"]


def test_a_deployment_that_rests_is_not_chosen(start: Start) -> None:
    """LiteLLM's cooldown after a failure, without a callback that could tell us."""
    router, _ = start([deployment("a"), deployment("b")], {})
    router.cooldown_cache.add_deployment_to_cooldown(
        model_id="a", original_exception=Exception("down"), exception_status=500, cooldown_time=60
    )
    chosen = {router.get_available_deployment("chat")["model_info"]["id"] for _ in range(20)}
    assert chosen == {"b"}


def test_a_named_deployment_stays_the_one(start: Start) -> None:
    router, _ = start([deployment("a"), deployment("b")], {})
    for _ in range(5):
        assert router.completion("b", ASK)._hidden_params["model_id"] == "b"


def test_a_journal_for_each_group(start: Start, tmp_path: Path) -> None:
    router, strategy = start(
        [deployment("a"), deployment("b")], {"journal": lambda group: tmp_path / f"{group}.db"}
    )
    for _ in range(3):
        router.completion("chat", ASK)
    wait_for(3, strategy.groups["chat"])
    assert (tmp_path / "chat.db").exists()


def test_what_is_refused() -> None:
    router = litellm.Router([deployment("a")])
    for settings, words in (
        ({"measure": "tokens"}, "measure must be one or more of latency, first_token, cost"),
        ({"measure": {}}, "measure"),
        ({"measure": {"cost": 0}}, "the weight of cost"),
        ({"journal": "calls.db"}, "journal must be callable"),
        ({"probe": 0}, "probe"),
        ({"aim": Median(), "policy": 3}, "either aim or policy"),
    ):
        with pytest.raises(ValueError, match=words):
            in_litellm.LiteLLMStrategy(router, **settings)
    assert "get_available_deployment" not in vars(router)


def test_close_gives_the_strategy_back(start: Start) -> None:
    router, strategy = start([deployment("a")], {})
    assert strategy in litellm.callbacks
    strategy.close()
    assert strategy not in litellm.callbacks
    assert router.completion("chat", ASK).choices[0].message.content == "Hello there"
    assert strategy.groups == {}
