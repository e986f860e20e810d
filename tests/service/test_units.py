"""Units that come back, on the page: their money counts, once for each."""

import numpy as np
import pytest

from tailproof import UCB1, CappedMean, RevenueUCB
from tailproof.live import Agent, prune
from tailproof.service.page.summary import Summary


def shop(visits: int, at_visit: int, units: int = 1200, wait: float = 600.0) -> Agent:
    """Return an agent whose units come back, and buy at one of their visits."""
    now = [1_700_000_000.0]
    agent = Agent(
        RevenueUCB(),
        ":memory:",
        wait=wait,
        silence=0.0,
        control=("red", 0.4),
        explore=1.0,
        clock=lambda: now[0],
    )
    rng = np.random.default_rng(1)
    for unit in range(units):
        for visit in range(visits):
            now[0] += 20
            ticket = agent.ask(["red", "blue"], unit=f"u{unit}")
            buys = visit == at_visit and rng.random() < (0.5 if ticket.arm == "blue" else 0.1)
            if buys:
                agent.tell(ticket.id, 10.0)
    now[0] += 5 * wait
    agent.ask(["red", "blue"], unit="the last")
    while not agent.tick():  # learn what is over
        pass
    now[0] += 5 * wait
    agent.ask(["red", "blue"], unit="to end its window")
    return agent


def page(agent: Agent) -> dict:  # type: ignore[type-arg]
    summary = Summary(agent.journal, CappedMean(0.99))
    while not summary.refresh():
        pass
    return summary.to_dict()


def test_money_of_later_visits_counts_once_for_its_unit() -> None:
    """Where only first requests counted, both rules earned nothing."""
    later = page(shop(visits=2, at_visit=1))["pay"]
    assert later["verdict"] == "paid"
    row = later["rows"][0]
    assert 700 < row["requests"] < 1200  # units after the first 256 outcomes, not visits
    assert 2.0 < row["rule"] < 4.0
    assert 0.5 < row["other"] < 1.5
    assert "a customer than the control group" in later["words"]
    assert "customers are counted, each with what its visits within 10 minutes" in later["how"]
    assert "1 is not counted yet" in later["how"]


def test_the_range_is_learned_once_customers_count() -> None:
    """No customer counts before 1100 outcomes; the next power of two would be 2048."""
    found = page(shop(visits=2, at_visit=1, units=1000, wait=22_000.0))["pay"]
    assert found["verdict"] != "early"
    assert 300 < found["rows"][0]["requests"] < 1000
    few = page(shop(visits=2, at_visit=1, units=100))["pay"]
    assert few["words"] == (
        "Too early to tell: the range of rewards is learned first, from 256 customers or more."
    )


def test_a_lead_counts_customers_where_units_came_back() -> None:
    found = page(shop(visits=2, at_visit=0))
    assert (found["lead"]["arm"], found["lead"]["sure"]) == ("blue", True)
    assert sum(arm["customers"] for arm in found["arms"]) == 1200


def test_no_lead_is_sure_where_rewards_of_a_unit_do_not_add_up() -> None:
    agent = Agent(UCB1(), ":memory:", explore=1.0)
    for unit in range(300):
        for _ in range(2):
            ticket = agent.ask(["red", "blue"], unit=f"u{unit}")
            agent.tell(ticket.id, 1.0 + (ticket.arm == "blue"))
    found = page(agent)["lead"]
    assert found["sure"] is False
    assert "Units came back" in found["words"]


def test_rewards_that_are_not_money_are_those_of_first_requests() -> None:
    agent = Agent(UCB1(), ":memory:", control=("red", 0.4), explore=1.0)
    for unit in range(700):
        for reward in (1.0, 100.0):
            agent.tell(agent.ask(["red", "blue"], unit=f"u{unit}").id, reward)
    row = page(agent)["pay"]["rows"][0]
    assert row["requests"] < 700
    assert 0.2 < row["rule"] < 5  # with the hundreds it were 50


@pytest.mark.parametrize("visits", [1, 2])
def test_did_it_pay_goes_on_after_a_prune(visits: int) -> None:
    whole, cut = (page(shop(visits, at_visit=visits - 1))["pay"] for _ in range(2))
    assert whole == cut
    agent = shop(visits, at_visit=visits - 1)
    summary = Summary(agent.journal, CappedMean(0.99))
    removed = prune(agent, 1_700_000_000.0 + 14_000 * visits, page=summary.counts.kept)
    assert removed.outcomes > 500
    found = page(agent)["pay"]
    assert found["rows"][0]["requests"] == whole["rows"][0]["requests"]
    if visits > 1:
        assert found == whole
    else:  # the cap was learned by arm, and is learned of all together
        assert found["rows"][0]["gain"] == pytest.approx(whole["rows"][0]["gain"], rel=0.02)
    again = Summary(agent.journal, CappedMean(0.99))
    assert prune(agent, 1_700_000_000.0 + 20_000 * visits, page=again.counts.kept).outcomes > 100
    twice = page(agent)["pay"]
    assert twice["rows"][0]["requests"] == whole["rows"][0]["requests"]
    assert agent.verify().ok


def test_without_what_the_page_counted_it_starts_anew() -> None:
    agent = shop(visits=1, at_visit=0)
    assert prune(agent, 1_700_014_000.0).outcomes > 500
    assert page(agent)["pay"]["rows"][0]["requests"] < 400
