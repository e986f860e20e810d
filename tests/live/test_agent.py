"""The agent: holds, tickets and fates, late and lost rewards, arms that come and go."""

import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mabwiser.mab import LearningPolicy
from river import bandit

from tailproof import (
    OFUL,
    UCB1,
    AdaRUCB,
    AutoFiltered,
    Filtered,
    LinStudentUCB,
    LinTS,
    Median,
    MedianUCB,
    OrderStatisticUCB,
    Policy,
    RobustUCB,
    ThompsonSampling,
    Uniform,
    guests,
)
from tailproof.live import Agent, Ask, SQLite, Tell, read
from tailproof.live.agent import seconds

FIVE = Filtered(UCB1(), repeats=5, estimator=Median())
COLOURS = ["red", "blue", "green"]


class Clock:
    """A time that tests move."""

    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


def play(agent: Agent, cycles: int, offer: Any = COLOURS, seed: int = 0) -> list[str]:
    rng, arms = np.random.default_rng(seed), []
    for _ in range(cycles):
        ticket = agent.ask(offer)
        arms.append(ticket.arm)
        agent.tell(ticket.id, COLOURS.index(ticket.arm) + rng.standard_cauchy())
    return arms


def test_a_hold_gives_the_same_arm_until_it_has_its_rewards() -> None:
    agent = Agent(FIVE, ":memory:")
    first = [agent.ask(COLOURS) for _ in range(5)]
    assert len({ticket.arm for ticket in first}) == len({ticket.hold for ticket in first}) == 1
    assert agent.ask(COLOURS).hold == 1
    assert [agent.tell(ticket.id, 1.0) for ticket in first] == ["kept"] * 5
    assert agent.tell(first[0].id, 2.0) == "duplicate"
    assert agent.tell("of nobody", 1.0) == agent.tell("77.0", 1.0) == "unknown"


def test_asking_again_is_the_same_answer_whatever_is_on_offer() -> None:
    agent = Agent(FIVE, ":memory:")
    ticket = agent.ask(COLOURS, ticket="a visit")
    assert agent.ask(COLOURS, ticket="a visit") == ticket == agent.ask(["other"], ticket="a visit")
    own = agent.ask(COLOURS)
    assert agent.ask(COLOURS, ticket=own.id) == own
    assert agent.learner.numbers.keys() == set(COLOURS)
    assert agent.tell("0.0", 1.0) == "unknown"  # the visit is known by its own id alone


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda agent: agent.ask([]), "offer must have 1 to"),
        (lambda agent: agent.ask("red"), "offer must be a list of arm names"),
        (lambda agent: agent.ask(["red", "red"]), "arm names must be unique"),
        (lambda agent: agent.ask(["red", 3]), "arm names must be printable strings"),
        (lambda agent: agent.ask({"red": [1.0], "blue": [1.0, 2.0]}), "all of the same length"),
        (lambda agent: agent.ask({"red": [np.inf]}), "features must be finite"),
        (lambda agent: agent.ask(COLOURS, ticket=""), "ticket must be a string"),
        (lambda agent: agent.ask(COLOURS, ticket="9.9"), "ticket '9.9' is reserved"),
        (lambda agent: agent.tell("x", np.nan), "reward must be a float .*, got nan"),
        (lambda agent: agent.tell("x", 10**400), "reward must be a float"),
        (lambda agent: agent.tell("x", True), "reward must be a float"),
        (lambda agent: agent.tell(3, 1.0), "ticket must be a string"),
    ],
)
def test_what_is_refused_changes_nothing(act: Callable[[Agent], Any], words: str) -> None:
    agent = Agent(FIVE, ":memory:")
    with pytest.raises(ValueError, match=words):
        act(agent)
    assert agent.journal.counts() == (0, 0)
    assert agent.ask(COLOURS).hold == 0


def test_one_refusal_of_several_acts_leaves_the_others() -> None:
    agent = Agent(FIVE, ":memory:")
    agent.ask({"a": [1.0, 0.0], "b": [0.0, 1.0]}, ticket="one")
    linear = Agent(LinStudentUCB(), ":memory:")
    linear.ask({"a": [1.0, 0.0], "b": [0.0, 1.0]})
    good, bad = linear.act([Ask({"a": [1.0, 2.0]}), Ask({"a": [1.0, 2.0, 3.0]})])
    assert good.arm == "a"  # type: ignore[union-attr]
    assert "features must have length 2 in this journal, got length 3" in str(bad)
    assert linear.verify().ok


def test_what_a_guest_refuses_leaves_no_trace() -> None:
    agent = Agent(guests.mabwiser(LearningPolicy.LinUCB(0.5)), ":memory:")
    with pytest.raises(ValueError, match="one context for all"):
        agent.ask({"a": [1.0, 0.0], "b": [0.5, 1.0]})
    with pytest.raises(ValueError, match="one context for all"):
        agent.ask({"c": [1.0, 0.0, 3.0], "d": [0.5, 1.0, 2.0]})
    for _ in range(3):
        agent.tell(agent.ask({"x": [1.0, 2.0], "y": [1.0, 2.0]}).id, 1.0)
    assert agent.learner.numbers == agent.journal.arms() == {"x": 0, "y": 1}
    assert agent.verify().ok


def test_infinite_rewards_are_rewards() -> None:
    agent = Agent(FIVE, ":memory:")
    fates = [agent.tell(agent.ask(COLOURS).id, r) for r in (np.inf, -np.inf, 1e308, 1, 2)]
    assert fates == ["kept"] * 5
    assert read(agent.journal).frame["reward"].tolist() == [np.inf, -np.inf, 1e308, 1, 2]
    play(agent, 20)
    assert agent.verify().ok


@pytest.mark.parametrize(
    "policy",
    [
        FIVE,
        AutoFiltered(UCB1()),
        AutoFiltered(OFUL(bonus=0.4)),
        LinStudentUCB(),
        LinTS(),
        OrderStatisticUCB(),
        ThompsonSampling(),
        Uniform(),
        Filtered(guests.vw("--cb_explore_adf --squarecb", view="arms"), repeats=5),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_the_state_is_the_fold_of_the_journal(policy: Policy[Any], tmp_path: Path) -> None:
    """An agent that is opened again goes on as one that never stopped would."""
    names = {"red": [1.0, 0.0], "blue": [0.0, 1.0], "green": [0.6, 0.8]}
    with Agent(policy, ":memory:", explore=0.1, seed=3) as one:
        whole = play(one, 120, names)
    parts: list[str] = []
    for start in (0, 40, 80):
        rng = np.random.default_rng(0)
        rng.standard_cauchy(start)
        quick = SQLite(tmp_path / "b.db", durable=False)
        with Agent(policy, quick, explore=0.1, seed=3) as other:
            for _ in range(40):
                ticket = other.ask(names)
                parts.append(ticket.arm)
                other.tell(ticket.id, COLOURS.index(ticket.arm) + rng.standard_cauchy())
    assert parts == whole
    with Agent(policy, tmp_path / "b.db") as again:
        assert again.verify().ok


def test_a_choice_that_was_changed_is_found() -> None:
    agent = Agent(AutoFiltered(UCB1()), ":memory:")
    play(agent, 300)
    agent.journal.execute("UPDATE decision SET arm = (arm + 1) % 3 WHERE id = 3")
    found = agent.verify()
    assert 3 in found.differing
    assert found.changed == ["decision 3"]


def test_a_snapshot_saves_time_and_a_damaged_one_only_that(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.db"
    with Agent(LinStudentUCB(), SQLite(path, durable=False)) as agent:
        play(agent, 600)
        found = agent.verify().snapshots
        assert len(found) == 2
        assert all(found.values())
        agent.ask(COLOURS)  # learns the last lesson
        before = agent.learner.to_bytes()
        agent.journal.execute("UPDATE snapshot SET state = substr(state, 1, 100)")
    with Agent(LinStudentUCB(), path) as again:
        assert "snapshot checksum mismatch" in caplog.text
        assert again.learner.to_bytes() == before
        assert not any(again.verify().snapshots.values())


def test_a_journal_of_another_policy_is_refused(tmp_path: Path) -> None:
    with Agent(UCB1(), tmp_path / "a.db", seed=1):
        pass
    with pytest.raises(ValueError, match=r"the journal belongs to UCB1\(bonus=1.0\), not"):
        Agent(UCB1(bonus=2.0), tmp_path / "a.db")
    with pytest.raises(ValueError, match="the journal has seed 1, got 2"):
        Agent(UCB1(), tmp_path / "a.db", seed=2)
    Agent(UCB1(), tmp_path / "a.db").close()


def test_lost_rewards_end_a_hold_short() -> None:
    clock = Clock()
    agent = Agent(FIVE, ":memory:", wait=60, clock=clock)
    tickets = [agent.ask(COLOURS) for _ in range(5)]
    for ticket in tickets[:3]:
        agent.tell(ticket.id, 1.0)
    clock.now += 59
    agent.ask(COLOURS)
    assert agent.journal.counts()[0] == 0
    clock.now += 5
    agent.ask(COLOURS)
    assert agent.journal.counts()[0] == 1
    assert agent.tell(tickets[4].id, 1.0) == "late"
    assert agent.verify().ok


def test_a_hold_with_too_few_rewards_goes_on() -> None:
    clock = Clock()
    agent = Agent(FIVE, ":memory:", wait=60, clock=clock)
    tickets = [agent.ask(COLOURS) for _ in range(5)]
    agent.tell(tickets[0].id, 1.0)
    clock.now += 61
    more = [agent.ask(COLOURS) for _ in range(5)]
    assert [ticket.hold for ticket in more] == [0] * 5
    assert agent.tell(tickets[1].id, 1.0) == "late"
    fates = [agent.tell(ticket.id, 1.0) for ticket in more]
    assert fates == ["kept"] * 4 + ["late"]  # five were enough
    assert agent.journal.counts() == (1, 10)


def test_as_many_more_tickets_as_rewards_were_lost() -> None:
    """With 60 % lost a hold of five gets about 5/0.4 tickets once that has been seen."""
    clock, rng = Clock(), np.random.default_rng(5)
    agent = Agent(FIVE, ":memory:", wait=10, clock=clock)
    for _ in range(2000):
        ticket = agent.ask(COLOURS)
        clock.now += 0.1
        if rng.random() > 0.6:
            agent.tell(ticket.id, 0.0)
    assert 0.5 < agent.loss < 0.7  # of about 800 tickets: five deviations
    frame = read(agent.journal).frame
    later = frame[frame["hold"].between(50, 100)].groupby("hold").size()
    assert 9 < later.mean() < 16
    assert agent.verify().ok


def test_a_filter_need_not_wait_for_what_is_probably_lost() -> None:
    """A third is lost; rewards take a minute, and may take a day."""
    clock, rng, coming = Clock(), np.random.default_rng(5), list[tuple[float, str]]()
    agent = Agent(FIVE, ":memory:", wait="1d", clock=clock)
    for _ in range(1200):
        clock.now += 1
        for _, ticket in [one for one in coming if one[0] <= clock.now]:
            agent.tell(ticket, 0.0)
        coming = [one for one in coming if one[0] > clock.now]
        ticket = agent.ask(COLOURS).id
        if rng.random() > 1 / 3:
            coming.append((clock.now + rng.exponential(60), ticket))
    assert agent.journal.counts()[0] > 60
    assert agent.verify().ok
    last = agent.ask(COLOURS).hold
    for _ in range(600):
        clock.now += 9
        agent.ask(COLOURS)
    assert agent.ask(COLOURS).hold > last + 5  # also where no reward comes any more


def test_pending_rewards_do_not_lock_the_next_choices() -> None:
    """While nothing comes back the arms are spread, and as even as they can be."""
    agent = Agent(UCB1(), ":memory:")
    for _ in range(30):
        agent.tell(agent.ask(COLOURS).id, 1.0)
    arms = [agent.ask(COLOURS).arm for _ in range(60)]
    assert [arms.count(arm) for arm in COLOURS] == [20, 20, 20]
    assert agent.verify().ok


@pytest.mark.parametrize(
    "policy",
    [
        AdaRUCB(),
        AutoFiltered(UCB1(), repeats=3),
        MedianUCB(),
        OrderStatisticUCB(),
        RobustUCB(),
        ThompsonSampling(),
        guests.vw("--cb_explore_adf --epsilon 0.2"),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_arms_come_and_go(policy: Policy[Any]) -> None:
    agent = Agent(policy, ":memory:", dim=4)
    for offer in (["red", "blue"], COLOURS, ["green", "blue"], ["green"], ["black", "red"]):
        for _ in range(40):
            ticket = agent.ask(offer)
            assert ticket.arm in offer
            agent.tell(ticket.id, float(len(ticket.arm)))
    assert list(agent.learner.numbers) == ["blue", "red", "green", "black"]
    assert agent.verify().ok


def test_order_of_names_makes_no_difference() -> None:
    agent = Agent(FIVE, ":memory:")
    assert agent.ask(["a", "b"]).hold == agent.ask(["b", "a"]).hold == 0


@pytest.mark.parametrize("policy", [UCB1(), LinStudentUCB(), Uniform()], ids=["K", "d", "none"])
def test_rewards_go_to_the_arm_that_was_shown(policy: Policy[Any]) -> None:
    agent, rng = Agent(policy, ":memory:", explore=0.3), np.random.default_rng(3)
    shown = {}
    for i in range(60):
        ticket = agent.ask(rng.permutation(COLOURS).tolist(), ticket=f"visit {i}")
        shown[ticket.id] = ticket.arm
        assert agent.ask(COLOURS, ticket=ticket.id) == ticket
        agent.tell(ticket.id, COLOURS.index(ticket.arm))
    frame = read(agent.journal).frame
    assert dict(zip(frame["ticket"], frame["arm"], strict=True)) == shown
    assert agent.verify().ok


def test_a_restart_with_a_new_arm_pending_is_no_difference(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Agent(UCB1(), SQLite(path, durable=False)) as agent:
        for _ in range(300):
            agent.tell(agent.ask(["a", "b"]).id, 1.0)
        agent.ask(["a", "c"])
    with Agent(UCB1(), SQLite(path, durable=False)) as agent:
        for _ in range(300):
            agent.tell(agent.ask(["a", "b"]).id, 1.0)
        assert agent.verify().ok


def test_what_was_refused_is_not_remembered() -> None:
    agent = Agent(guests.river(bandit.UCB(delta=1)), ":memory:")
    agent.tell(agent.ask(["a", "b"]).id, 1.0)
    with pytest.raises(ValueError, match="all 3 that"):
        agent.ask(["a", "c"])
    agent.ask(["a", "b"])
    assert agent.verify().ok


def test_a_guest_with_a_context_behind_a_filter_meets_a_new_arm() -> None:
    guest = guests.vw("--cb_explore_adf --epsilon 0.2", view="context")
    agent = Agent(AutoFiltered(guest, repeats=3), ":memory:")
    for names in (["a", "b"], ["a", "b", "c"]):
        for _ in range(12):
            agent.tell(agent.ask({name: [1.0, 0.5] for name in names}).id, 1.0)
    assert agent.verify().ok


def test_huge_rewards_are_learned_while_others_are_pending() -> None:
    agent = Agent(Filtered(UCB1(), repeats=4, estimator=Median()), ":memory:")
    for reward in (1e308, -1e308, np.inf, -np.inf):
        for ticket in [agent.ask(COLOURS) for _ in range(8)]:
            agent.tell(ticket.id, reward)
        agent.ask(COLOURS)
    assert agent.verify().ok


def test_offers_that_come_again_are_taken_after_many_that_did_not() -> None:
    clock = Clock()
    agent = Agent(Filtered(OFUL(), repeats=3), ":memory:", wait=60, clock=clock)
    for i in range(100):
        agent.ask({"a": [float(i)], "b": [1.0]})
    with pytest.raises(ValueError, match="needs offers that repeat"):
        agent.ask({"a": [0.5], "b": [0.25]})
    assert agent.ask({"a": [0.5], "b": [0.25]}).hold == 100


def test_an_interrupted_act_leaves_the_agent_free(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent(FIVE, ":memory:")
    with monkeypatch.context() as patch:
        patch.setattr(agent.journal, "add_tickets", interrupted)
        with pytest.raises(KeyboardInterrupt):
            agent.ask(COLOURS)
    assert agent.ask(COLOURS).hold == 0
    with monkeypatch.context() as patch:
        patch.setattr(agent.journal, "add_tickets", lambda *_: agent.tell("x", 1.0))
        with pytest.raises(RuntimeError, match="within its own ask or tell"):
            agent.ask(COLOURS)
    assert agent.ask(COLOURS).hold == 0


def interrupted(*_: Any) -> None:
    raise KeyboardInterrupt


def test_a_clock_that_goes_back_loses_nothing() -> None:
    clock = Clock()
    agent = Agent(FIVE, ":memory:", wait=10, clock=clock)
    clock.now += 1e7
    tickets = [agent.ask(COLOURS) for _ in range(5)]
    clock.now -= 1e7
    assert {agent.tell(ticket.id, 1.0) for ticket in tickets} == {"kept"}
    assert agent.journal.counts() == (1, 5)


def test_the_loss_is_seen_also_where_others_tell(tmp_path: Path) -> None:
    """A fifth is lost; of 64 holds, about 400 tickets, five deviations are 0.1."""
    clock, rng, path = Clock(), np.random.default_rng(8), tmp_path / "a.db"
    with (
        Agent(FIVE, SQLite(path, durable=False), wait=10, clock=clock) as asker,
        Agent(FIVE, SQLite(path, durable=False), wait=10, clock=clock) as teller,
    ):
        for _ in range(800):
            ticket = asker.ask(COLOURS)
            clock.now += 0.3
            if rng.random() > 0.2:
                teller.tell(ticket.id, 0.0)
        assert abs(asker.loss - 0.2) < 0.1
        assert asker.verify().ok


def test_a_few_offers_that_come_once_do_no_harm() -> None:
    agent = Agent(FIVE, ":memory:")
    for i in range(1000):
        offer = ["red", "blue", f"campaign {i}"] if i % 20 == 0 else ["red", "blue"]
        agent.tell(agent.ask(offer).id, 1.0)
    assert agent.journal.counts()[0] > 150


def test_files_of_others_are_left_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("CREATE TABLE users (name TEXT)")
    before = path.read_bytes()
    for use in (lambda: read(path), lambda: Agent(UCB1(), path)):
        with pytest.raises(ValueError, match="not a journal of tailproof"):
            use()
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["app.db"]


def test_a_copy_that_may_only_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.db"
    with Agent(UCB1(), path) as agent:
        agent.tell(agent.ask(COLOURS, ticket="a").id, 1.0)
    monkeypatch.setattr(os, "access", lambda *_: False)
    log = read(path)
    assert log.journal.read_only
    assert log.frame["fate"].tolist() == ["learned"]
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        log.journal.execute("DELETE FROM ticket")
    log.journal.close()


@pytest.mark.parametrize("journal", [None, 3, "", b"a.db"])
def test_what_is_no_journal(journal: Any) -> None:
    with pytest.raises(ValueError, match="journal must be a path"):
        Agent(UCB1(), journal)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_an_agent_does_not_cross_a_fork() -> None:
    agent = Agent(UCB1(), ":memory:")
    child = os.fork()
    if child == 0:
        try:
            agent.ask(COLOURS)
        except RuntimeError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_lessons_for_policies_of_another_kind() -> None:
    agent = Agent(UCB1(), ":memory:")
    for offer in (["a", "b"], ["a", "b", "c"]):
        for _ in range(20):
            agent.tell(agent.ask(offer).id, 1.0)
    assert read(agent.journal).replay(LinStudentUCB()).decisions.tolist() == [40]
    with pytest.raises(ValueError, match="cannot replay an empty journal"):
        read(Agent(UCB1(), ":memory:").journal).replay(UCB1())


def test_features_that_nobody_looks_at_make_no_difference() -> None:
    agent = Agent(FIVE, ":memory:")
    holds = [agent.ask({"a": [x], "b": [-x]}).hold for x in (1.0, 2.0, 3.0)]
    assert holds == [0, 0, 0]


def test_names_alone_for_a_policy_that_sees_vectors() -> None:
    agent = Agent(LinStudentUCB(), ":memory:", dim=3)
    agent.ask(["red", "blue"])
    agent.ask(COLOURS)
    with pytest.raises(ValueError, match="LinStudentUCB takes at most 3 arms without features"):
        agent.ask(["black"])


def test_contexts_that_never_repeat_cannot_be_held() -> None:
    rng = np.random.default_rng(0)
    agent = Agent(Filtered(OFUL(), repeats=5), ":memory:")
    for _ in range(100):
        agent.ask({"a": rng.normal(size=2), "b": rng.normal(size=2)})
    with pytest.raises(ValueError, match="LinStudentUCB, which learns from single rewards"):
        agent.ask({"a": rng.normal(size=2), "b": rng.normal(size=2)})
    single = Agent(LinStudentUCB(), ":memory:")
    for _ in range(200):
        single.tell(single.ask({"a": rng.normal(size=2), "b": rng.normal(size=2)}).id, 1.0)
    assert single.verify().ok


@pytest.mark.parametrize("policy", [UCB1(), ThompsonSampling()], ids=["UCB1", "ThompsonSampling"])
def test_propensities_are_how_often_arms_are_chosen(policy: Policy[Any]) -> None:
    """Σ 1/p over the tickets of an arm has the mean T, and a variance of at most T (1/p − 1).

    p is at least 0.1; five deviations are a false alarm of 10⁻⁶. A sampling policy's p is itself
    estimated, from 200 copies, which adds little.
    """
    agent = Agent(policy, ":memory:", explore=0.3, seed=2)
    play(agent, 1000)
    frame = read(agent.journal).frame
    assert frame["propensity"].min() >= 0.1 - 1e-12
    for arm in COLOURS:
        weight = (1 / frame["propensity"][frame["arm"] == arm]).sum()
        assert abs(weight - 1000) < 5 * np.sqrt(1000 * 9)


def test_threads_share_commits(tmp_path: Path) -> None:
    agent = Agent(FIVE, SQLite(tmp_path / "a.db", durable=False))
    fates: list[str] = []

    def work() -> None:
        for _ in range(50):
            ticket = agent.ask(COLOURS)
            fates.append(agent.tell(ticket.id, 1.0))

    crew = [threading.Thread(target=work) for _ in range(8)]
    for one in crew:
        one.start()
    for one in crew:
        one.join()
    assert set(fates) <= {"kept", "late"}
    assert len(read(agent.journal).frame) == 400
    assert agent.verify().ok


def test_several_acts_in_one_commit() -> None:
    agent = Agent(FIVE, ":memory:")
    before = agent.commits
    agent.act([Ask(COLOURS, "a"), Tell("a", 1.0), Ask(COLOURS, "b"), Tell("b", 2.0)])
    assert agent.commits == before + 1
    assert agent.act([]) == []


def test_two_agents_on_one_journal(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Agent(FIVE, path) as one, Agent(FIVE, path) as other:
        for _ in range(30):
            ticket = one.ask(COLOURS)
            assert other.tell(ticket.id, 1.0) == "kept"
            assert other.ask(COLOURS, ticket=ticket.id) == ticket
            one.tell(other.ask(["red", "blue"]).id, 2.0)
        assert one.verify().ok


@pytest.mark.parametrize(
    ("text", "value"), [("90s", 90), ("15min", 900), ("2 h", 7200), ("1d", 86400), (5, 5)]
)
def test_time_spans(text: Any, value: float) -> None:
    assert seconds(text) == value


def test_what_the_table_says() -> None:
    clock = Clock()
    agent = Agent(FIVE, ":memory:", wait=60, clock=clock)
    tickets = [agent.ask(COLOURS) for _ in range(6)]
    for ticket in tickets[:5]:
        agent.tell(ticket.id, 1.0)
    agent.tell(tickets[5].id, 4.0)
    agent.ask(COLOURS, ticket="later")
    frame = read(agent.journal).frame
    assert frame["fate"].tolist() == ["learned"] * 5 + ["kept", "pending"]
    assert frame["ticket"].tolist()[-1] == "later"
    assert str(frame["asked"][0]) == "2001-09-09 01:46:40"
    assert frame["told"].isna().tolist() == [False] * 6 + [True]
