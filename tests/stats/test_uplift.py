"""Did it pay: what is said against what a simulation knows, and against a journal."""

import math

import numpy as np
import pytest
from scipy.stats import binom
from shops import write

from tailproof import (
    UCB1,
    AutoFiltered,
    CappedMean,
    Mean,
    Median,
    RevenueUCB,
)
from tailproof.live import Agent, Journal, open_journal
from tailproof.service.page.summary import Summary
from tailproof.stats.aims import Aim
from tailproof.stats.histograms import Histogram
from tailproof.stats.uplift import CONTROL, POLICY, Decided, Flags, Worth, ratio_evidence
from tailproof.typing import Array, Index

SHARE, EXPLORE, CONVERSION = 0.2, 0.1, np.array([0.1, 0.15, 0.12])
RUNS, BLOCKS, BLOCK = 80, 8, 256
MOST_WRONG = int(binom.ppf(1 - 1e-4, RUNS, 0.05))


def decided(rng: np.random.Generator, own: Array, n: int) -> Decided:
    """Return decisions of a policy with these probabilities; buyers spend 1."""
    k = len(own)
    rule = EXPLORE / k + (1 - EXPLORE) * own
    p = (1 - SHARE) * rule + SHARE * (np.arange(k) == 0)
    control = rng.random(n) < SHARE
    arm = np.where(control, 0, rng.choice(k, size=n, p=rule))
    return Decided(
        arm=arm,
        offered=np.full(n, float(k)),
        share=p[arm],
        least=np.full(n, p.min()),
        explore=np.full(n, EXPLORE),
        group=np.where(control, CONTROL, POLICY),
        control_share=np.full(n, SHARE),
        is_control=arm == 0,
        reward=(rng.random(n) < CONVERSION[arm]).astype(float),
        there=np.ones((n, k), dtype=bool),
        times=np.ones(n),
    )


@pytest.fixture(scope="module")
def ever_wrong() -> dict[str, int]:
    """Return how many runs have an interval that misses the truth at some look.

    The policy follows the arm that sold best so far, so that what it is worth changes all the time.
    """
    rng, names = np.random.default_rng(8), ("control", "labels", "even", "exploring", "arm")
    wrong = dict.fromkeys(names, 0)
    for _ in range(RUNS):
        worth, labels, samples = Worth(Mean()), Worth(Mean()), [Histogram()]
        truth, missed, sold, n = np.zeros(4), dict.fromkeys(names, False), np.ones(3), 0
        for block in range(BLOCKS):
            own = np.full(3, 0.1) + 0.7 * (np.arange(3) == np.argmax(sold))
            rows = decided(rng, own, BLOCK)
            worth.add(rows)
            labels.add(rows._replace(share=np.full(BLOCK, math.nan)))  # as of a guest
            sold += np.bincount(rows.arm, rows.reward, 3) / np.bincount(rows.arm, minlength=3)
            if worth.scale is not None:
                rule = (EXPLORE / 3 + (1 - EXPLORE) * own) @ CONVERSION
                served = (1 - SHARE) * rule + SHARE * CONVERSION[0]
                values = rule - CONVERSION[0], rule - CONVERSION.mean(), own @ CONVERSION - served
                truth += BLOCK * np.array([*values, CONVERSION[1]])
                n += BLOCK
                found = [worth.control, labels.control, worth.even, worth.exploring]
                for name, gain, true in zip(names, found, truth[[0, 0, 1, 2]], strict=False):
                    low, high = gain.total.ends()
                    missed[name] |= not low <= true <= high
                alone = worth.arms[1].estimate()
                assert alone is not None
                missed["arm"] |= not alone.low <= truth[3] / n - alone.other <= alone.high
            samples[0].add(rows.reward)
            for one in (worth, labels):
                one.settle(BLOCK * (block + 1), samples, 0.0)
        for name, yes in missed.items():
            wrong[name] += yes
    return wrong


@pytest.mark.parametrize("name", ["control", "labels", "even", "exploring", "arm"])
def test_intervals_hold_at_every_look_while_the_policy_learns(
    ever_wrong: dict[str, int], name: str
) -> None:
    """If 5 % of runs ever miss, this fails with a probability of at most 10⁻⁴."""
    assert ever_wrong[name] <= MOST_WRONG


def summary_of(journal: Journal, aim: Aim | None = None, *, costs: bool = False) -> Summary:
    summary = Summary(journal, aim or CappedMean(0.99), costs=costs)
    while not summary.refresh():
        pass
    return summary


@pytest.fixture
def journal() -> Journal:
    return open_journal(":memory:")


def test_a_journal_says_the_same_as_arrays(journal: Journal) -> None:
    """As benchmarks/validate/pay.py has it: rows that are alike together, zeros by their number."""
    n = 3000
    found = write(journal, n, conversion=(0.1, 0.15))
    worth, samples = Worth(CappedMean(0.99)), [Histogram(), Histogram()]
    least = float(f"{found['share'].min():.9g}") * (1 - 1e-8)  # as the journal rounds
    for start, stop in [(0, 256), (256, 512), (512, 1024), (1024, 2048), (2048, n)]:
        arm, group, share, reward = (
            found[key][start:stop] for key in ("arm", "group", "share", "reward")
        )
        rows = np.column_stack([arm, group, share, reward])
        rows, count = np.unique(rows, axis=0, return_counts=True)
        arm, k = rows[:, 0].astype(np.int64), len(rows)
        worth.add(
            Decided(
                arm=arm,
                offered=np.full(k, 2.0),
                share=rows[:, 2],
                least=np.full(k, least),
                explore=np.full(k, 0.1),
                group=rows[:, 1].astype(np.int64),
                control_share=np.full(k, 0.1),
                is_control=arm == 0,
                reward=rows[:, 3],
                there=np.zeros((k, 0), dtype=bool),
                times=count.astype(float),
            )
        )
        for number, sample in enumerate(samples):
            sample.add(found["reward"][start:stop][found["arm"][start:stop] == number])
        if stop < n:
            worth.settle(stop, samples, 0.0)
    live = summary_of(journal).counts.followed.worth
    assert live.controls == worth.controls
    for name in ("control", "even", "exploring"):
        one, other = getattr(live, name).estimate(), getattr(worth, name).estimate()
        assert one == pytest.approx(other, rel=1e-9)
        assert one.requests == n - 256


def test_a_gain_is_told_a_request_in_percent_and_in_all(journal: Journal) -> None:
    write(journal, 2000, policy=(0.0, 1.0), explore=0.0, conversion=(0.3, 0.6))
    pay = summary_of(journal).to_dict()["pay"]
    assert pay["verdict"] == "paid"
    assert pay["words"].startswith("It paid: the rule earned ")
    row = pay["rows"][0]
    assert (row["against"], row["requests"]) == ("control", 2000 - 256)
    assert row["gain"][0] == pytest.approx(row["rule"] - row["other"])
    assert 0 < row["gain"][1] < row["gain"][0] < row["gain"][2]
    for total, percent, gain in zip(row["total"], row["percent"], row["gain"], strict=True):
        assert total == pytest.approx(0.9 * gain * row["requests"])  # a tenth is control
        assert percent == pytest.approx(100 * gain / row["other"])
    assert pay["trail"] == sorted(pay["trail"])
    assert len(pay["trail"]) > 20


def test_without_a_control_group_the_page_asks_for_one(journal: Journal) -> None:
    write(journal, 600, control=0.0)
    found = summary_of(journal).to_dict()
    assert found["control"] is None
    assert found["pay"]["verdict"] == "none"
    assert 'control = { arm = "…", share = 0.1 }' in found["pay"]["words"]
    assert [row["against"] for row in found["pay"]["rows"]] == ["even"]


def test_without_chances_for_all_arms_an_even_split_cannot_be_told(journal: Journal) -> None:
    write(journal, 600, control=0.0, explore=0.0, policy=(0.0, 1.0))
    words = summary_of(journal).to_dict()["pay"]["words"]
    assert words.endswith(
        "Cannot tell against an even split: some arms had no chance. Set explore or floor."
    )


def test_what_was_not_drawn_by_lot_does_not_count(journal: Journal) -> None:
    write(journal, 1000)
    journal.execute("UPDATE request SET grp = 'fixed' WHERE id >= 700")
    journal.execute("UPDATE request SET grp = 'history' WHERE id >= 900")
    journal.execute("UPDATE request SET unit = 'one' WHERE id >= 600 AND id < 700")
    journal.execute("UPDATE request SET again = 1 WHERE id > 600 AND id < 700")
    found = summary_of(journal).to_dict()
    assert found["pay"]["rows"][0]["requests"] == 601 - 256
    assert sum(arm["rewards"] for arm in found["arms"]) == 1000


def test_a_share_that_was_changed_counts_from_then_on(journal: Journal) -> None:
    """A request names its recipe, which says with which share it was drawn."""
    write(journal, 600, control=0.1, seed=1)
    write(journal, 600, control=0.4, seed=2)
    summary = summary_of(journal)
    controls = summary.counts.followed.worth.controls
    assert {lot: n for lot, (_, n) in controls.items()} == {0.1: 600, 0.4: 600}
    assert summary.to_dict()["sound"]["fine"]
    assert summary.to_dict()["notes"] == []


def test_a_control_group_that_is_not_as_configured_is_noticed(journal: Journal) -> None:
    write(journal, 2000, control=0.1)
    assert summary_of(journal).to_dict()["sound"]["fine"]
    journal.execute("UPDATE recipe SET rules = replace(rules, '0.1]', '0.2]')")
    sound = summary_of(journal).to_dict()["sound"]
    assert not sound["fine"]
    assert sound["words"] == "Look at: control group."


def test_right_shares_seldom_raise_an_alarm() -> None:
    """At one in a thousand, 400 runs of 100 looks; more than 4 have a probability below 10⁻⁴."""
    rng = np.random.default_rng(0)
    drawn = np.cumsum(rng.binomial(50, 0.1, (400, 100)), axis=1)
    lots = range(50, 5001, 50)
    found = [
        max(ratio_evidence(k, n, 0.1) for k, n in zip(run, lots, strict=True))
        for run in drawn.tolist()
    ]
    assert sum(one >= math.log(1000) for one in found) <= 4
    assert ratio_evidence(700, 5000, 0.1) > math.log(1000)


def test_arms_are_judged_by_weights_where_features_decide(journal: Journal) -> None:
    write(journal, 4000, features=True, conversion=(0.2, 0.7), policy=(0.5, 0.5))
    found = summary_of(journal).to_dict()
    lead = found["lead"]
    assert (lead["arm"], lead["sure"]) == ("blue", True)
    assert lead["words"] == "Alone, blue would earn most, and that is sure."
    for arm in found["arms"]:
        assert 0 <= arm["low"] < arm["estimate"] < arm["high"]


def test_quantiles_compare_the_two_groups(journal: Journal) -> None:
    found = write(journal, 3000, conversion=(1.0, 1.0), explore=0.0, policy=(0.0, 1.0))
    journal.execute(
        "UPDATE outcome SET reward = reward + 100 WHERE request IN"
        " (SELECT id FROM request WHERE arm = 1)"
    )
    told = summary_of(journal, Median()).to_dict()
    row = told["pay"]["rows"][0]
    assert told["pay"]["verdict"] == "paid"
    assert row["rule"] == pytest.approx(1, abs=0.1)  # all of them exceed the control's median
    assert row["other"] == pytest.approx(0.5, abs=0.1)
    assert 0.3 < row["gain"][1] < row["gain"][2] < 0.7
    points = 100 * row["gain"][0]
    words = f"It paid: {points:.3g} percentage points more of the rule's rewards than of the "
    assert told["pay"]["words"].startswith(
        f"{words}control group's were above the control group's median; between "
    )
    assert len(found["reward"]) > 2000


def test_costs_below_the_quantile_of_the_control_group_pay(journal: Journal) -> None:
    """Costs of the rule are 100 lower, so fewer of them are above the control's median."""
    write(journal, 3000, conversion=(1.0, 1.0), explore=0.0, policy=(0.0, 1.0))
    journal.execute(
        "UPDATE outcome SET reward = reward - 100 WHERE request IN"
        " (SELECT id FROM request WHERE arm = 1)"
    )
    pay = summary_of(journal, Median(), costs=True).to_dict()["pay"]
    assert pay["rows"][0]["rule"] == pytest.approx(0, abs=0.1)
    assert pay["verdict"] == "paid"
    words = "points more of the rule's rewards than of the control group's were not above the"
    assert words in pay["words"]


def test_quantiles_are_those_of_requests_that_share_decisions() -> None:
    """The reward of arm b is 1 more; both have extreme rewards, which a mean would follow."""
    rng = np.random.default_rng(5)
    agent = Agent(AutoFiltered(UCB1(), repeats=3), ":memory:", control=("a", 0.5), explore=0.2)
    for _ in range(3000):
        ticket = agent.ask(["a", "b"])
        agent.tell(ticket.id, float(rng.standard_cauchy() + (ticket.arm == "b")))
    summary = summary_of(agent.journal, Median())
    assert 1300 < summary.counts.followed.worth.group.count < 1700  # half of the requests
    row = summary.to_dict()["pay"]["rows"][0]
    assert 0 < row["gain"][1] < 0.25 < row["gain"][2]  # P(Cauchy > −1) − ½ is a quarter


def test_equal_arms_seldom_pay_in_the_median() -> None:
    """If 5 % ever say so, this fails with a probability of at most 10⁻⁴."""
    rng, wrong = np.random.default_rng(8), 0
    for _ in range(60):
        worth = Worth(Median())
        for look in range(12):
            n = 256 if look == 0 else 256 * 2 ** (look // 3)
            lot, reward = rng.random(n) < 0.3, np.exp(rng.standard_normal(n))
            arm = np.where(lot, 0, rng.integers(0, 2, n))
            worth.add(drawn(arm, lot, reward))
            worth.add_rewards(np.where(lot, CONTROL, POLICY), reward)
            worth.settle(256 * 2**look, [], 0.0)
            found = worth.against_control()
            if found is not None and (found.low > 0 or found.high < 0):
                wrong += 1
                break
    assert wrong <= int(binom.ppf(1 - 1e-4, 60, 0.05))


def drawn(arm: Index, lot: Flags, reward: Array) -> Decided:
    """Return decisions between two arms that are as probable, beside a control group of 0.3."""
    n = len(arm)
    return Decided(
        arm=arm,
        offered=np.full(n, 2.0),
        share=np.where(arm == 0, 0.65, 0.35),
        least=np.full(n, 0.35),
        explore=np.zeros(n),
        group=np.where(lot, CONTROL, POLICY),
        control_share=np.full(n, 0.3),
        is_control=arm == 0,
        reward=reward,
        there=np.zeros((n, 0), dtype=bool),
        times=np.ones(n),
    )


def test_a_gain_that_the_cap_made_is_shown_beside_the_loss_without_it() -> None:
    rng, worth, sample = np.random.default_rng(2), Worth(CappedMean(0.99)), Histogram()
    for outcomes in (256, 8192):
        n = outcomes * 2
        lot = rng.random(n) < 0.3
        arm = np.where(lot, 0, rng.integers(0, 2, n))
        chance = np.where(arm == 1, 0.6, 0.5)
        reward = np.where(rng.random(n) < chance, 10.0, 0.0)
        reward[(arm == 0) & (rng.random(n) < 0.002)] = 8000.0
        sample.add(reward)
        worth.add(drawn(arm, lot, reward))
        worth.settle(outcomes, [sample], 0.0)
    found = worth.against_control()
    assert found is not None
    assert found.low > 0 > found.uncapped
    assert found.beyond > 10


def test_costs_are_saved(journal: Journal) -> None:
    write(journal, 2000, conversion=(0.7, 0.3))
    summary = Summary(journal, CappedMean(0.99), costs=True)
    while not summary.refresh():
        pass
    pay = summary.to_dict()["pay"]
    assert pay["verdict"] == "paid"
    assert pay["words"].startswith("It paid: the rule saved ")
    assert pay["rows"][0]["gain"][1] > 0


def test_alarms_are_told(journal: Journal) -> None:
    write(journal, 300)
    with journal.transaction():
        for _ in range(60):
            journal.add_note("alarm", {"arm": "blue", "what": "rewards fell"}, 1.7e9)
    found = summary_of(journal).to_dict()
    assert found["sound"]["words"] == "Nothing looks wrong."  # there is nothing to do
    assert "arm blue, what rewards fell" in found["sound"]["checks"][-1]["words"]
    assert found["notes"][0]["kind"] == "alarm"
    assert (found["alarms"], len(found["notes"])) == (60, 50)


def test_an_agent_with_a_control_group_is_told_apart() -> None:
    """The first of the whole way: agent, journal, summary; banner is worth 0.9, plain 0.3."""
    rng = np.random.default_rng(3)
    agent = Agent(RevenueUCB(), ":memory:", control=("plain", 0.3), floor=0.1, seed=1)
    for _ in range(1500):
        ticket = agent.ask(["plain", "banner"])
        agent.tell(ticket.id, float(rng.random() < {"plain": 0.3, "banner": 0.9}[ticket.arm]))
    summary = summary_of(agent.journal, Mean())
    found = summary.to_dict()
    assert found["control"] == {"arm": "plain", "share": 0.3}
    assert found["floor"] == 0.1
    assert found["pay"]["verdict"] == "paid"
    low, high = found["pay"]["rows"][0]["gain"][1:]
    assert low < 0.55 < high
    cost = found["exploring"]["row"]["gain"]
    assert cost[1] < 0.6 * 0.4 < cost[2]  # control, and half of what the floor spreads
    assert found["sound"]["fine"]
    (lot,) = summary.counts.followed.worth.controls
    assert (lot, summary.counts.followed.worth.controls[lot][1]) == (0.3, 1500)


def test_cancelled_tickets_are_counted_and_nothing_more() -> None:
    now = [1e9]
    agent = Agent(RevenueUCB(), ":memory:", wait=10.0, silence=0.0, clock=lambda: now[0])
    tickets = [agent.ask(["a", "b"]).id for _ in range(6)]
    agent.cancel(tickets[:2])
    now[0] += 20
    while not agent.tick():
        pass
    found = summary_of(agent.journal).to_dict()["tickets"]
    assert (found["asked"], found["cancelled"], found["silent"], found["pending"]) == (4, 2, 4, 0)


def test_the_state_is_that_of_the_notes() -> None:
    agent = Agent(RevenueUCB(), ":memory:", control=("a", 0.1))
    for _ in range(20):
        agent.tell(agent.ask(["a", "b", "c"]).id, 1.0)
    agent.drop("c")
    agent.pause("b")
    state = summary_of(agent.journal).to_dict()["state"]
    assert state == {"fixed": {"arm": "b", "why": "pause"}, "dropped": ["c"]}
    agent.resume()
    found = summary_of(agent.journal).to_dict()
    assert found["state"]["fixed"] is None
    assert [note["kind"] for note in found["notes"]] == ["drop", "fix", "resume"]
