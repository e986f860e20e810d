"""Past decisions become the first outcomes of a journal."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tailproof as tp
from tailproof.live import Agent, import_history, read

COLOURS = ["blue", "red"]


def frame(rows: int = 60, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    arm = rng.choice(COLOURS, rows)
    reward = rng.normal(size=rows) + (arm == "red")
    return pd.DataFrame({"arm": arm, "reward": reward, "age": rng.uniform(0, 1, rows)})


def test_rows_are_outcomes_of_the_journal(place: str) -> None:
    history = frame()
    with Agent(tp.UCB1(), place) as agent:
        found = import_history(agent, history, source="past.csv")
        assert (found.rows, found.learned) == (60, 60)
        counts = history.groupby("arm").reward.agg(["count", "sum"])
        assert agent.learner.state.counts[0].tolist() == counts["count"].tolist()
        assert agent.learner.state.sums[0].tolist() == pytest.approx(counts["sum"].tolist())
        (note,) = agent.journal.notes()
        assert (note.kind, note.text["rows"], note.text["source"]) == ("import", 60, "past.csv")
        assert agent.standing()[:2] == (0, 60)
        for _ in range(20):
            agent.tell(agent.ask(COLOURS).id, 1.0)
        assert agent.verify().ok
        log = read(agent.journal).frame
        assert log.group.fillna("").tolist() == ["history"] * 60 + [""] * 20
        assert log.reward.tolist()[:60] == history.reward.tolist()
        assert set(log.status) == {"told"}
        while not agent.tick():
            pass
        before = agent.learner.to_bytes()
    with Agent(tp.UCB1(), place) as again:
        assert again.learner.to_bytes() == before
        assert again.verify().ok


def test_rows_are_learned_in_the_order_of_time() -> None:
    days = pd.date_range("2025-01-01", periods=60).astype(str).to_numpy()
    history = frame().assign(day=np.random.default_rng(1).permutation(days))
    agent = Agent(tp.UCB1(), ":memory:")
    import_history(agent, history, time="day")
    ordered = history.sort_values("day")
    log = read(agent.journal).frame
    assert log.reward.tolist() == ordered.reward.tolist()
    assert log.asked.dt.date.astype(str).tolist() == ordered.day.tolist()
    with pytest.raises(ValueError, match="time of row 1 is in the future: 2999-01-01"):
        import_history(agent, arm=["red"], reward=[1], time=["2999-01-01"])
    with pytest.raises(ValueError, match="column time must have times as in"):
        import_history(agent, arm=["red"], reward=[1], time=["last May"])
    with pytest.raises(ValueError, match="column time has no time in row 2"):
        import_history(agent, arm=["red", "red"], reward=[1, 2], time=[1.0, np.nan])


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"reward": [1.0, np.nan]}, "column reward has no reward in row 2"),
        ({"arm": ["red", None]}, "column arm names no arm in row 2"),
        ({"arms": ["blue", "green"]}, "column arm must be one of blue, green, got 'red'"),
        ({"propensity": [0.5, 1.5]}, "propensity must be above 0 and at most 1"),
        ({"arm": ["red", "a\nb"]}, "arm names must be printable"),
        ({"features": [[1.0, np.inf]]}, "features must be of shape"),
    ],
)
def test_nothing_is_half_imported(change: dict[str, Any], error: str) -> None:
    agent = Agent(tp.LinStudentUCB(), ":memory:")
    given: dict[str, Any] = {"arm": ["red", "blue"], "reward": [1.0, 2.0]} | change
    with pytest.raises(ValueError, match=error):
        import_history(agent, **given)
    assert agent.standing().outcomes == 0
    assert not agent.journal.notes()
    assert not agent.journal.arms()


def test_a_write_that_fails_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent(tp.UCB1(), ":memory:")
    with monkeypatch.context() as patch:
        patch.setattr(agent.journal, "add_outcomes", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            import_history(agent, frame())
    assert agent.ask(COLOURS).id == "#0"
    import_history(agent, frame())
    assert agent.verify().ok


def test_the_same_rows_are_imported_once() -> None:
    agent = Agent(tp.UCB1(), ":memory:")
    import_history(agent, frame(), source="past.csv")
    with pytest.raises(ValueError, match="in the journal already: they were imported from past"):
        import_history(agent, frame())
    found = import_history(agent, frame(seed=1))
    assert any("has 60 outcomes already: the rows count as if" in one for one in found.sentences)
    assert agent.learner.state.decisions.tolist() == [120]
    assert agent.verify().ok


def test_rewards_are_grouped_for_a_policy_that_takes_several() -> None:
    policy = tp.Filtered(tp.UCB1(), repeats=5, estimator=tp.Median())
    agent = Agent(policy, ":memory:")
    history = pd.DataFrame({"arm": ["a"] * 13 + ["b"] * 12, "reward": np.arange(25.0)})
    found = import_history(agent, history)
    assert (found.learned, agent.learner.state.decisions.tolist()) == (20, [4])
    assert any(one.startswith("5 rows wait") for one in found.sentences)
    assert agent.learner.state.inner.sums.tolist() == [[2 + 7, 15 + 20]]
    import_history(agent, arm=["a", "a", "b"], reward=[100.0, 101.0, 102.0])  # 3 + 2 of a
    assert agent.learner.state.inner.sums.tolist() == [[2 + 7 + 12, 15 + 20]]
    assert agent.verify().ok
    linear = Agent(tp.Filtered(tp.OFUL(), repeats=5), ":memory:")
    with pytest.raises(ValueError, match="takes 5 rewards of the same arm and features at a time"):
        import_history(linear, arm=["a"] * 9, reward=np.ones(9), features=np.arange(9)[:, None])


def test_what_waits_survives_a_restart(tmp_path: Path) -> None:
    policy, file = tp.Filtered(tp.UCB1(), repeats=5, estimator=tp.Median()), tmp_path / "a.db"
    with Agent(policy, file) as agent:
        import_history(agent, arm=["a"] * 1008 + ["b"] * 5, reward=np.arange(1013.0))
        assert agent.journal.snapshots(0)
        assert [len(one) for one in agent.learner.left.values()] == [3]
        learned = agent.learner.to_bytes()
    with Agent(policy, file) as agent:
        assert agent.learner.to_bytes() == learned
        found = agent.verify()
        assert found.ok
        assert found.snapshots
        agent.learner.left = {}
        assert not agent.verify().state


def test_visitors_features_become_offers() -> None:
    history = frame()
    shared = Agent(tp.LinRevenueUCB(), ":memory:")
    import_history(shared, history, features=["age"])
    crossed = Agent(tp.LinStudentUCB(), ":memory:")
    import_history(crossed, history, features=["age"], arms=["red", "blue"])
    for agent, ask in ((shared, tp.features.share), (crossed, tp.features.cross)):
        row = read(agent.journal).frame.filter(like="x:").iloc[7].tolist()
        wanted = ask(["red", "blue"], [history.age[7]])
        names = sorted(wanted) if agent is crossed else ["red"]
        assert row == [x for name in names for x in wanted[name]]
        agent.tell(agent.ask(ask(["red", "blue"], [0.5])).id, 1.0)
        assert agent.verify().ok
    assert "x:age" in read(shared.journal).frame
    with pytest.raises(ValueError, match="features must have length 1 in this journal"):
        shared.ask({"red": [1.0, 2.0], "blue": [1.0, 2.0]})


def test_another_journal(tmp_path: Path) -> None:
    rng, now = np.random.default_rng(3), [0.0]
    first = Agent(
        tp.Filtered(tp.UCB1(), repeats=3), tmp_path / "a.db", wait=50, silence=0.0,
        clock=lambda: now[0],
    )  # fmt: skip
    for _ in range(300):
        ticket = first.ask(["red", "blue"])
        if rng.random() < 0.5:
            first.tell(ticket.id, 1.0 + (ticket.arm == "red"))
        now[0] += 1.0
    first.tick()
    log = read(first.journal)
    over = log.frame[log.frame.status.isin(["told", "silent"])]
    assert {"told", "silent"} <= set(log.frame.status)
    expected = over.groupby("arm").reward.sum()
    for source in (tmp_path / "a.db", log, log.frame):
        second = Agent(tp.UCB1(), ":memory:")
        found = import_history(second, source)
        assert found.learned == len(over)
        sums = second.learner.state.sums[0]
        assert {name: sums[i] for name, i in second.learner.numbers.items()} == dict(expected)
        assert second.verify().ok
    empty = Agent(tp.UCB1(), tmp_path / "b.db")
    with pytest.raises(ValueError, match="no outcomes yet"):
        import_history(second, empty.journal)


def biased(rows: int, seed: int) -> pd.DataFrame:
    """Red is better for all; it was mostly shown to visitors who buy little, blue to rich ones."""
    rng = np.random.default_rng(seed)
    rich = rng.random(rows) < 0.3
    p = np.where(rich, 0.9, 0.1)
    blue = rng.random(rows) < p
    reward = rng.normal(size=rows) + 3 * rich + np.where(blue, 0.0, 0.5)
    own = np.where(blue, p, 1 - p)
    return pd.DataFrame({"arm": np.where(blue, "blue", "red"), "reward": reward, "p": own})


def test_a_biased_history_is_thinned() -> None:
    """The difference of means is 0.5, its standard error at most 0.07: it is 4 of them above."""
    history = biased(12_000, 0)
    raw = history.groupby("arm").reward.mean()
    assert raw.blue > raw.red
    agent = Agent(tp.UCB1(), ":memory:")
    found = import_history(agent, history, propensity="p")
    state = agent.learner.state
    means = (state.sums / state.counts)[0]
    assert means[agent.learner.numbers["red"]] - means[agent.learner.numbers["blue"]] > 0.2
    assert "rows are learned: those with a large propensity are thinned" in found.sentences[0]
    assert found.rows == 12_000 > found.learned > 1500
    plain = Agent(tp.UCB1(), ":memory:")
    assert import_history(plain, history, propensity="p", as_is=True).learned == 12_000


def test_an_arm_without_a_chance_is_left_out() -> None:
    history = biased(4000, 1)
    rich = history.p.where(history.arm == "blue", 1 - history.p) > 0.5
    history = history[rich | (history.arm == "red")].reset_index(drop=True)
    agent = Agent(tp.UCB1(), ":memory:")
    found = import_history(agent, history, propensity="p")
    assert "rows of blue are left out: by their propensities it had no chance" in found.sentences[0]
    assert agent.learner.state.counts[0][agent.learner.numbers["blue"]] == 0
    assert agent.learner.state.counts[0][agent.learner.numbers["red"]] > 0
    with pytest.raises(ValueError, match="every arm had no chance for some visitors"):
        import_history(Agent(tp.UCB1(), ":memory:"), history.assign(p=1.0), propensity="p")


def test_an_even_test_is_learned_as_it_is() -> None:
    agent = Agent(tp.UCB1(), ":memory:")
    found = import_history(agent, frame(4000).assign(propensity=0.5))
    assert (found.learned, found.sentences) == (4000, ())
    log = read(agent.journal).frame
    assert log.shares.tolist() == [(0.5, 0.5)] * 4000


def test_a_policy_that_weighs_is_told_what_is_assumed() -> None:
    agent = Agent(tp.HTINF(), ":memory:")
    found = import_history(agent, arm=["a", "b", "b", "b"], reward=[1.0, 2.0, 3.0, 4.0])
    assert any("taken to be the share of its arm" in one for one in found.sentences)
    assert read(agent.journal).frame.propensity.tolist() == [0.25, 0.75, 0.75, 0.75]


def test_imported_rows_without_propensity_are_not_judged() -> None:
    agent = Agent(tp.Uniform(), ":memory:")
    import_history(agent, frame())
    for _ in range(50):
        agent.tell(agent.ask(COLOURS).id, 1.0)
    log = tp.records(read(agent.journal))
    assert (log.n, log.group) == (50, None)
    again = Agent(tp.Uniform(), ":memory:")
    import_history(again, frame().assign(propensity=0.5))
    assert tp.records(read(again.journal)).n == 60
