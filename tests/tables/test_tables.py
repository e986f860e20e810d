"""Logs are read from tables, arrays and journals."""

import numpy as np
import pandas as pd
import pytest

import tailproof as tp
from tailproof.live import Agent, read
from tailproof.tables import records


def table(n: int = 6) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "arm": ["B", "A", "B"] * (n // 3),
            "reward": np.arange(n, dtype=float),
            "propensity": 0.5,
            "x:age": np.linspace(0, 1, n),
            "group": ["m", "d"] * (n // 2),
            "decision": np.arange(n) // 2,
            "at": pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(n)[::-1], unit="s"),
        }
    )


def test_columns_are_found_by_their_names() -> None:
    log = records(table())
    assert log.arms == ("A", "B")
    assert log.reward.tolist() == [5, 4, 3, 2, 1, 0]  # in the order of time
    assert log.names == ("age",)
    assert log.features is not None
    assert log.features[0, 0] == 1
    assert log.unit is not None
    assert log.unit.tolist() == [0, 0, 1, 1, 2, 2]
    assert log.adaptive is False


def test_columns_may_have_other_names() -> None:
    other = table().rename(columns={"arm": "variant", "propensity": "p", "x:age": "age"})
    log = records(other, arm="variant", propensity="p", features=["age"], unit="group")
    assert log.names == ("age",)
    assert log.unit is not None
    assert log.unit.max() == 1
    with pytest.raises(
        ValueError, match=r"propensity must be one of the columns .* of the table, got 'q'"
    ):
        records(other, arm="variant", propensity="q")
    with pytest.raises(ValueError, match="records have no arms"):
        tp.judge(records(other, propensity=None), "A", tp.Median())


def test_propensities_of_all_arms_are_columns_or_mappings() -> None:
    frame = table().assign(**{"p:A": 0.5, "p:B": 0.5})
    mapped = table().assign(propensities=[{"A": 0.5, "B": 0.5}] * 6)
    for own in (frame, mapped):
        log = records(own)
        assert log.propensities is not None
        assert log.propensities.tolist() == [[0.5, 0.5]] * 6
    with pytest.raises(ValueError, match=r"disagree: 0\.4 and 0\.5 in row 1"):
        records(frame.assign(propensity=0.4))


def test_an_arm_without_a_propensity_was_not_offered_and_one_with_zero_was() -> None:
    frame = table().assign(propensities=[{"B": 1.0}, {"A": 1.0, "B": 0.0}, {"B": 1.0}] * 2)
    log = records(frame.drop(columns=["propensity", "at"]))
    assert log.offered is not None
    assert log.offered[:3].tolist() == [[False, True], [True, True], [False, True]]
    sure = records(
        arm=["A"] * 40, reward=np.arange(40), propensities=[[1, 0]] * 40, arms=["A", "B"]
    )
    found = tp.judge(sure, ["A", "B"], tp.Median())
    assert found["always A"].verdict == "trust"
    assert found["always B"].verdict == "refused"


def test_young_rows_are_left_out_known_or_not() -> None:
    frame = table()
    frame.loc[0, "reward"] = np.nan  # the youngest
    assert records(frame).unknown == pytest.approx(1 / 6)
    log = records(frame, wait=2)
    assert log.reward.tolist() == [5, 4, 3, 2]
    with pytest.raises(ValueError, match="leaves no row"):
        records(frame, wait=100)


def test_silence_is_a_reward_once_time_is_over() -> None:
    """Rows that wait are left out, also the quick buyer among them."""
    frame = table().assign(reward=[1, np.nan, np.nan, 2, 3, 4], fate="learned")
    frame.loc[[1, 3], "fate"] = ["pending", "kept"]
    log = records(frame, silence=0.0)
    assert log.reward.tolist() == [4, 3, 0, 1]
    with pytest.raises(ValueError, match="still waiting"):
        records(frame.assign(fate="pending"), silence=0.0)
    assert records(table().assign(reward=np.nan), silence=0.0).unknown == 0


def test_a_journal_may_have_offers_shares_and_silence() -> None:
    class Journal:
        silence = 0.0

        @property
        def frame(self) -> pd.DataFrame:
            shares = np.array([0.7, 0.3], dtype=np.float32)
            frame = table().assign(reward=[1, np.nan, 2, 3, 4, 5], propensity=[0.3, 0.7, 1] * 2)
            frame["offer"] = [("A", "B"), ("A", "B"), ("B",)] * 2
            frame["shares"] = [tuple(shares.tolist()), tuple(shares.tolist()), (1.0,)] * 2
            return frame.drop(columns="at")

    log = records(Journal())
    assert log.reward.tolist() == [1, 0, 2, 3, 4, 5]
    assert log.adaptive is True
    assert log.propensities is not None
    assert log.offered is not None
    assert log.propensities[0].tolist() == pytest.approx([0.7, 0.3])
    assert log.offered[:3].tolist() == [[True, True], [True, True], [False, True]]


def test_a_log_that_varies_may_be_adaptive() -> None:
    assert records(table().assign(propensity=np.linspace(0.4, 0.6, 6))).adaptive is None
    by_group = table().assign(propensity=np.where(table()["group"] == "m", 0.4, 0.6))
    assert records(by_group).adaptive is False


def test_a_journal_is_adaptive_and_its_decisions_are_units() -> None:
    agent = Agent(tp.Filtered(tp.UCB1(), repeats=3), ":memory:")
    rng = np.random.default_rng(0)
    for _ in range(60):
        agent.tell(agent.ask(["A", "B"]).id, float(rng.normal()))
    journal = read(agent.journal)
    log = records(journal)
    assert log.adaptive is True
    assert log.unit is not None
    assert log.unit.max() == 59
    assert tp.judge(journal, "A", tp.Median())["always A"].verdict == "refused"


def test_silence_of_a_journal_is_what_the_experiment_says() -> None:
    """One visitor in ten buys for 7; the others tell nothing, and the last windows are open."""
    now = [0.0]
    agent = Agent(tp.Uniform(), ":memory:", wait=60, silence=0.0, clock=lambda: now[0])
    for visitor in range(400):
        now[0] += 1
        ticket = agent.ask(["A", "B"])
        if visitor % 10 == 0:
            agent.tell(ticket.id, 7)
    log = records(read(agent.journal))
    assert log.unknown == 0
    assert log.n == 340
    assert log.reward.mean() == pytest.approx(0.7)


def test_what_is_no_log_is_refused() -> None:
    with pytest.raises(ValueError, match="table must be a path, a data frame, a journal"):
        records(3)


def test_visitors_without_a_group_are_one_of_their_own() -> None:
    log = records(table().assign(group=[None, "m"] * 3))
    assert log.group is not None
    assert set(log.group) == {"", "m"}
    assert records(table().assign(group=None)).group is None
