"""Arms that came later, and the rows in which they are compared."""

from typing import Any

import numpy as np
import pytest

from tailproof import CappedMean, Median, judge, records
from tailproof.live import Agent, read
from tailproof.policies import UCB1


def ramp(seed: int = 0) -> dict[str, Any]:
    """Sales double on day 10, when B comes; both arms sell the same."""
    rng = np.random.default_rng(seed)
    day = np.repeat(np.arange(20), 300)
    arm = np.where((day >= 10) & (rng.random(6000) < 0.5), "B", "A")
    bought = rng.random(6000) < np.where(day < 10, 0.05, 0.1)
    return {"arm": arm, "reward": np.where(bought, 20.0, 0.0), "time": day * 86400.0 + 1.7e9}


def test_an_arm_that_came_later_is_compared_with_its_own_days() -> None:
    log = ramp()
    found = judge(records(**log), ["A", "B"], CappedMean(0.99), control="A")
    late = log["time"] >= 10 * 86400 + 1.7e9
    own = [log["reward"][late & (log["arm"] == name)].mean() for name in "AB"]
    assert [found[f"always {name}"].estimate for name in "AB"] == pytest.approx(own, rel=0.02)
    to = found["always B"].to_control
    assert to is not None
    assert to.low < 0 < to.high
    assert "3,000 of 6,000 rows are left out: B was not on offer there." in found.sentences()[1]


def test_rules_that_name_no_late_arm_keep_all_rows() -> None:
    assert judge(records(**ramp()), ["A", "even"], Median()).rows == 6000


def test_since_leaves_out_what_was_before() -> None:
    found = judge(records(**ramp()), "A", CappedMean(0.99), since="2023-11-24T22:13:20")
    assert (found.rows, 1.7e9 + 10 * 86400) == (3000, 1700864000.0)
    with pytest.raises(ValueError, match="since must be a date such as 2026-08-15, got 'August'"):
        judge(records(**ramp()), "A", Median(), since="August")
    with pytest.raises(ValueError, match="since needs the time of each row"):
        judge(records(arm=["A", "B"] * 9, reward=range(18)), "A", Median(), since=3.0)
    with pytest.raises(ValueError, match="no row is left"):
        judge(records(**ramp()), "A", Median(), since="2030-01-01")


def test_all_rows_of_a_unit_go_together() -> None:
    log = ramp() | {"unit": np.tile(np.arange(300), 20)}
    with pytest.raises(ValueError, match=r"B was not on offer there\. With them 3,000 other rows"):
        judge(records(**log), ["A", "B"], Median())


def test_a_journal_says_what_was_on_offer() -> None:
    """Also where units came back, whose shares are not known for another offer."""
    now = [1.7e9]
    agent = Agent(UCB1(), ":memory:", explore=1.0, clock=lambda: now[0])
    for visit in range(900):
        now[0] += 60
        arms = ["A", "B"] if visit < 300 else ["A", "B", "C"]
        ticket = agent.ask(arms, unit=f"unit {visit % 400}")
        agent.tell(ticket.id, float(visit % 7))
    found = judge(read(agent.journal), ["A", "C"], Median(), control="A")
    assert found["always C"].verdict in ("trust", "beware")
    assert any("C was not on offer there" in said for said in found.sentences())
    assert found.rows < 600
