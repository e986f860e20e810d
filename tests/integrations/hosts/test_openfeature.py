"""Our agents behind the real OpenFeature SDK."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tailproof import UCB1, FixedArm, Policy
from tailproof.live import Agent

pytest.importorskip("openfeature")
from openfeature import api
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import ErrorCode
from openfeature.flag_evaluation import Reason
from openfeature.track import TrackingEventDetails

from tailproof.integrations.hosts import BanditFlag, BanditProvider


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    api.shutdown()
    api.clear_providers()


def start(variants: dict[str, Any], policy: Policy[Any] | None = None) -> tuple[Any, Agent]:
    agent = Agent(policy or UCB1(), ":memory:")
    api.set_provider(BanditProvider({"flag": BanditFlag(agent, variants, goal="bought")}))
    return api.get_client(), agent


def test_a_flag_learns_from_what_is_tracked() -> None:
    client, agent = start({"red": "#f00", "blue": "#00f"}, UCB1(bonus=0.3))
    shown = Counter[str]()
    for visit in range(60):
        visitor = EvaluationContext(f"visit {visit}")
        colour = client.get_string_value("flag", "#fff", visitor)
        shown[colour] += 1
        client.track("looked", visitor)  # another event; a first reward would be the only one
        client.track("bought", visitor, TrackingEventDetails(float(colour == "#00f")))
    assert shown["#00f"] > 40
    assert agent.standing().outcomes == 60


def test_a_key_keeps_its_variant_and_gets_one_reward() -> None:
    client, agent = start({"on": True, "off": False})
    visitor = EvaluationContext("17")
    first = client.get_boolean_details("flag", False, visitor)
    assert first.reason == Reason.SPLIT
    assert first.variant in ("on", "off")
    assert first.value is (first.variant == "on")
    assert first.flag_metadata == {"propensity": 0.5}
    for _ in range(5):
        assert client.get_boolean_details("flag", False, visitor) == first
        client.track("bought", visitor)
    assert agent.standing().outcomes == 1


@pytest.mark.parametrize(
    ("kind", "value", "default"),
    [
        ("boolean", True, False),
        ("string", "x", ""),
        ("integer", 3, 0),
        ("float", 0.5, 0.0),
        ("object", {"a": 1}, {}),
        ("object", [1, 2], []),
    ],
)
def test_values_of_every_type(kind: str, value: Any, default: Any) -> None:
    client, _ = start({"only": value}, FixedArm(arm=0))
    visitor = EvaluationContext("17")
    assert getattr(client, f"get_{kind}_value")("flag", default, visitor) == value
    later = getattr(client, f"get_{kind}_value_async")("flag", default, visitor)
    assert asyncio.run(later) == value


def test_defaults_where_nothing_can_be_chosen() -> None:
    client, agent = start({"one": 1, "two": 2})
    visitor = EvaluationContext("17")
    for found, code in (
        (client.get_integer_details("flags", 5, visitor), ErrorCode.FLAG_NOT_FOUND),
        (client.get_boolean_details("flag", True, visitor), ErrorCode.TYPE_MISMATCH),
        (client.get_integer_details("flag", 5), ErrorCode.TARGETING_KEY_MISSING),
        (client.get_integer_details("flag", 5, EvaluationContext("\n")), ErrorCode.GENERAL),
    ):
        assert found.error_code == code
        assert found.value in (5, True)
    client.track("bought")
    client.track("bought", EvaluationContext("never seen"), TrackingEventDetails(3.0))
    assert agent.standing()[:3] == (0, 0, 0)


def test_what_is_refused() -> None:
    agent = Agent(UCB1(), ":memory:")
    with pytest.raises(ValueError, match="variants must be a mapping from names to values of one"):
        BanditFlag(agent, {"a": 1, "b": "two"}, goal="bought")
    with pytest.raises(ValueError, match="goal"):
        BanditFlag(agent, {"a": 1}, goal="")
    with pytest.raises(ValueError, match="flags"):
        BanditProvider({})
    agent.close()
