"""Journals with features, judged from the journal and from its export."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tailproof as tp
from tailproof.live import Agent, read
from tailproof.live.export import csv_pieces
from tailproof.tables import records

NAMES = ["=b", "a"]


def played(policy: tp.Policy[Any], ask: Any, rounds: int = 800, **more: Any) -> Agent:
    now, rng = [0.0], np.random.default_rng(0)
    agent = Agent(policy, ":memory:", wait=20, explore=0.3, clock=lambda: now[0], **more)
    for _ in range(rounds):
        x = rng.uniform(-0.4, 0.4, 2)
        ticket = agent.ask(ask(NAMES, x))
        if rng.random() < 0.6:
            gain = x[0] if ticket.arm == "a" else -x[0]
            agent.tell(ticket.id, float(4 * gain + rng.normal()))
        now[0] += 1.0
    return agent


@pytest.mark.parametrize("silence", ["lost", 0.0])
@pytest.mark.parametrize(
    ("policy", "ask"),
    [(tp.LinRevenueUCB(), tp.features.share), (tp.LinTS(), tp.features.cross)],
    ids=["shared", "crossed"],
)
def test_the_export_is_judged_like_the_journal(
    policy: tp.Policy[Any], ask: Any, silence: float | str, tmp_path: Path
) -> None:
    agent, export = played(policy, ask, silence=silence), tmp_path / "log.csv"
    export.write_text("".join(csv_pieces(agent.journal)), encoding="utf-8")

    def by_feature(x: Any) -> Any:
        return np.where(np.asarray(x)[:, 0] > 0, "a", "=b")

    rules = {"a": "a", "even": "even", "by feature": by_feature}
    own, other = (
        tp.judge(log, rules, tp.CappedMean(0.99)) for log in (read(agent.journal), export)
    )
    assert own.to_dict() == other.to_dict()
    assert own["by feature"].estimate > own["even"].estimate + 0.2


def test_visitors_features_and_those_of_arms() -> None:
    log = records(read(played(tp.LinRevenueUCB(), tp.features.share).journal))
    assert (log.names, log.vectors, log.group, log.adaptive) == (("0", "1"), None, None, True)
    agent = played(tp.LinTS(), tp.features.cross)
    log = records(read(agent.journal))
    assert log.vectors is not None
    row = read(agent.journal).frame.filter(like="x:").iloc[7]
    assert log.vectors[7].ravel().tolist() == row.tolist()
    assert log.names == ("=b:1", "=b:2")  # once, not for every arm
    assert log.take([3, 7]).vectors is not None


def test_arms_with_vectors_that_never_change() -> None:
    """A policy that learns is replayed with these, and there are no features of visitors."""
    agent = Agent(tp.LinTS(), ":memory:", explore=1.0)
    rng = np.random.default_rng(1)
    for _ in range(800):
        ticket = agent.ask({"a": [1.0, 0.0, 0.0], "b": [0.6, 0.8, 0.0]})
        agent.tell(ticket.id, float(rng.normal() + (ticket.arm == "a")))
    log = records(read(agent.journal))
    assert (log.features, log.names) == (None, ())
    assert log.vectors is not None
    found = tp.judge(log, {"again": tp.LinTS()}, tp.Median())
    assert found["again"].verdict != "refused"


def test_the_group_of_a_journal_is_not_one_of_visitors() -> None:
    frame = read(played(tp.Uniform(), tp.features.share).journal).frame
    frame = frame.assign(group=[None if i % 10 else "control" for i in range(len(frame))])
    assert records(frame).group is None
    mine = frame.assign(device="m")
    assert records(mine, group="device").group is not None


def test_units_are_those_of_the_requests_or_else_of_decisions() -> None:
    frame = read(played(tp.Uniform(), tp.features.share, rounds=6).journal).frame
    assert records(frame).unit.tolist() == [0, 1, 2, 3, 4, 5]  # type: ignore[union-attr]
    some = frame.assign(unit=["u", None, "u", None, "w", "u"])
    assert records(some).unit.tolist() == [0, 1, 0, 2, 3, 0]  # type: ignore[union-attr]


def test_an_arm_that_was_offered_but_never_chosen() -> None:
    frame = read(played(tp.Uniform(), tp.features.share, rounds=60).journal).frame
    log = records(frame[frame.arm == "a"])
    assert log.arms == ("=b", "a")
    assert log.propensities is not None
    assert log.propensities[0].tolist() == [0.5, 0.5]


def test_events_with_refunds() -> None:
    now = [0.0]
    agent = Agent(
        tp.Uniform(), ":memory:", wait=10, silence=0.0, rewards="sum", clock=lambda: now[0]
    )
    for name in ("v1", "=v2"):
        agent.ask(["a"], ticket=name)
    agent.tell("v1", 20.0, "order")
    now[0] = 5.0
    agent.tell("v1", -20.0, "refund")
    now[0] = 20.0
    agent.tell("=v2", 3.0, "order")
    log = read(agent.journal)
    assert log.frame.reward.tolist() == [0.0, 0.0]
    assert log.events.drop(columns="at").to_numpy().tolist() == [
        ["v1", "order", 20.0, False],
        ["v1", "refund", -20.0, False],
        ["=v2", "order", 3.0, True],
    ]
    text = "".join(csv_pieces(agent.journal, events=True)).splitlines()
    assert text[0] == "ticket,event,reward,at,late"
    assert text[3] == "'=v2,order,3.0,1970-01-01T00:00:20+00:00,True"


def test_a_parquet_file_is_judged_alike(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    log = read(played(tp.LinRevenueUCB(), tp.features.share, rounds=200).journal)
    log.frame.to_parquet(tmp_path / "log.parquet")
    again = pd.read_parquet(tmp_path / "log.parquet")
    found = [tp.judge(one, "even", tp.Median()).to_dict() for one in (log, again)]
    assert found[0] == found[1]


@pytest.mark.parametrize("silence", [None, 0.0])
@pytest.mark.parametrize(
    ("policy", "ask"),
    [(tp.LinRevenueUCB(), tp.features.share), (tp.LinTS(), tp.features.cross), (tp.UCB1(), None)],
    ids=["shared", "crossed", "plain"],
)
def test_the_path_of_a_journal_is_read_like_the_journal(
    policy: tp.Policy[Any], ask: Any, silence: float | None, place: str
) -> None:
    now, rng = [0.0], np.random.default_rng(0)
    agent = Agent(policy, place, wait=20, explore=0.3, silence=silence, clock=lambda: now[0])
    for visitor in range(120):
        x = rng.uniform(-0.4, 0.4, 2)
        unit = f"u{visitor // 2}"
        ticket = agent.ask(NAMES if ask is None else ask(NAMES, x), unit=unit)
        if rng.random() < 0.6:
            agent.tell(ticket.id, float(rng.normal()))
        now[0] += 1.0
    own, other = records(read(agent.journal)), records(place)
    agent.close()
    assert (own.arms, own.names, own.adaptive) == (other.arms, other.names, other.adaptive)
    for name in ("arm", "reward", "unit", "time", "propensity", "propensities", "features"):
        a, b = getattr(own, name), getattr(other, name)
        assert (a is None) == (b is None), name
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=1e-12, err_msg=name)
    assert own.n > 90
