"""What an experiment has: a control group, floors, units, and arms that come and go."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clocks import Clock

from tailproof import (
    PEGE,
    UCB1,
    Filtered,
    LinStudentUCB,
    Policy,
    RevenueUCB,
    ThompsonSampling,
    Uniform,
)
from tailproof.live import Agent, Ask, Cancel, Journal, Tell, Ticket, open_journal, read
from tailproof.live.config import load

ARMS = ["red", "blue"]
COLOURS = ["red", "blue", "green"]
THREE = Filtered(UCB1(), repeats=3)


def quick(place: str | Path) -> Journal:
    return open_journal(place, durable=False)


def asked(agent: Agent, count: int, offer: Any = ARMS) -> list[Ticket]:
    found = agent.act([Ask(offer) for _ in range(count)])
    assert all(isinstance(ticket, Ticket) for ticket in found), found
    return found  # type: ignore[return-value]


def learn(agent: Agent, rounds: int, offer: Any = ARMS) -> list[str]:
    """Ask and tell one after the other; return the arms."""
    arms = []
    for n in range(rounds):
        ticket = agent.ask(offer)
        arms.append(ticket.arm)
        agent.tell(ticket.id, float(n % 5))
    return arms


# ---- control group and floor


@pytest.mark.parametrize(
    "asks", [pytest.param(5000, id="few"), pytest.param(100_000, id="many", marks=pytest.mark.slow)]
)
def test_the_control_group_has_its_share(asks: int) -> None:
    """Within three standard errors; a fixed seed, which one in 370 would fail."""
    agent = Agent(Uniform(), ":memory:", control=("red", 0.1), seed=1)
    for _ in range(asks // 1000):
        asked(agent, 1000, COLOURS)
    ((control,),) = agent.journal.execute("SELECT COUNT(*) FROM request WHERE grp = 'control'")
    share = control / asks
    assert abs(share - 0.1) < 3 * (0.1 * 0.9 / asks) ** 0.5


@pytest.mark.parametrize(
    "policy",
    [
        UCB1(),
        UCB1(random=True),
        Filtered(UCB1(random=True), repeats=3),
        ThompsonSampling(),
        RevenueUCB(),
    ],
    ids=repr,
)
def test_propensities_are_those_of_what_happens(policy: Policy[Any]) -> None:
    """Choices less their propensities add up to noise: |z| < 4 for three arms and two ratios."""
    agent = Agent(policy, ":memory:", control=("red", 0.3), floor=0.1, explore=0.05, seed=2)
    rng = random.Random(1)
    for _ in range(600):
        ticket = agent.ask(COLOURS)
        agent.tell(ticket.id, rng.gauss(COLOURS.index(ticket.arm), 1))
    sums, variance = np.zeros(3), np.zeros(3)
    for row in read(agent.journal).frame.itertuples():
        shares, place = np.array(row.shares), row.offer.index(row.arm)
        assert shares.sum() == pytest.approx(1)
        assert shares.min() > 0.1 - 1e-6
        assert shares[row.offer.index("red")] > 0.3 + 0.1 - 1e-6
        assert row.propensity == pytest.approx(shares[place])
        sums += np.eye(3)[place] - shares
        variance += shares * (1 - shares)
    assert np.all(np.abs(sums) < 4 * np.sqrt(variance))
    assert agent.verify().ok


def test_the_control_arm_is_learned_with_its_propensity() -> None:
    agent = Agent(UCB1(), ":memory:", control=("red", 0.5), seed=0)
    rewards = {"red": 0.0, "blue": 10.0}
    for _ in range(100):
        ticket = agent.ask(ARMS)
        agent.tell(ticket.id, rewards[ticket.arm])
    agent.ask(ARMS)
    frame = read(agent.journal).frame
    assert set(frame.arm[frame.group == "control"]) == {"red"}
    assert frame.group.eq("control").sum() > 30
    number = agent.learner.numbers["red"]
    assert agent.learner.state.counts[0, number] == frame.arm[:-1].eq("red").sum()
    assert set(frame.propensity.iloc[-40:]) == {0.5}


def test_a_unit_of_the_control_group_comes_back_with_its_first_propensity() -> None:
    """Else the weights of those who return do not give one on average once the policy knows more.

    Weights of 200 units have mean 1 and a standard error of at most 0.13: they are off by 0.5 by
    chance less than once in 5000 seeds.
    """
    agent = Agent(UCB1(), ":memory:", control=("red", 0.2), floor=0.05, seed=3)
    for _ in range(5):
        for ticket in [agent.ask(ARMS, unit=f"u{unit}") for unit in range(200)]:
            agent.tell(ticket.id, float(ticket.arm == "blue"))
    frame = read(agent.journal).frame
    assert frame.groupby("unit").propensity.nunique().max() == 1
    weights = (frame.arm == "red") / frame.propensity
    assert abs(weights.mean() - 1) < 0.5
    assert agent.verify().ok


@pytest.mark.parametrize("policy", [UCB1(), THREE], ids=["single", "shared"])
def test_a_request_without_the_control_arm_is_in_no_group(policy: Policy[Any]) -> None:
    agent = Agent(policy, ":memory:", control=("red", 0.9), seed=0)
    asked(agent, 30, ["blue", "green"])
    frame = read(agent.journal).frame
    assert frame.group.isna().all()
    assert set(frame.propensity) <= {0.5, 1.0}
    assert agent.verify().ok


@pytest.mark.parametrize("policy", [UCB1(), THREE], ids=["single", "shared"])
def test_a_unit_stays_in_its_group(tmp_path: Path, policy: Policy[Any]) -> None:
    """By a hash of seed and unit, whoever asks: 25 ± 3·√(100·¼·¾) of 100 units."""
    arms: dict[str, set[str]] = {}
    for _ in range(3):
        with Agent(policy, quick(tmp_path / "a.db"), control=("red", 0.25), seed=7) as agent:
            for n in range(100):
                arms.setdefault(str(n), set()).add(agent.ask(ARMS, unit=str(n)).arm)
    with Agent(policy, quick(tmp_path / "a.db"), control=("red", 0.25)) as agent:
        units = list(agent.journal.execute("SELECT unit, grp FROM request"))
        assert len(units) == 300
        assert len(set(units)) == 100
        assert 12 < sum(group == "control" for _, group in set(units)) < 38
        assert agent.verify().ok
    assert {len(some) for some in arms.values()} == {1}
    with Agent(policy, ":memory:", control=("red", 0.25), seed=8) as other:
        for n in range(100):
            other.ask(ARMS, unit=str(n))
        assert set(other.journal.execute("SELECT unit, grp FROM request")) != set(units)


def test_another_control_share_is_another_recipe(tmp_path: Path) -> None:
    for control in (("red", 0.1), ("blue", 0.6)):
        with Agent(UCB1(), quick(tmp_path / "a.db"), control=control, floor=0.05, change=True) as a:
            learn(a, 30)
            assert a.verify().ok
    with pytest.raises(ValueError, match=r"control \('red', 0.1\), not"):
        Agent(UCB1(), quick(tmp_path / "a.db"), control=("red", 0.1))
    with Agent(UCB1(), quick(tmp_path / "a.db")) as agent:
        assert agent.recipe.control == ("blue", 0.6)
        agent.journal.execute("UPDATE request SET grp = 'control' WHERE grp IS NULL AND id < 30")
        assert agent.verify().differing


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"control": ("red", 1.0)}, "the control share must be .* below 1"),
        ({"control": "red"}, "control must be an arm and a share"),
        ({"control": ("", 0.1)}, "arm names must be"),
        ({"control": ("pink", 0.1), "arms": ARMS}, "the control arm must be one of the arms"),
        ({"floor": -0.1}, "floor must be"),
        ({"floor": 0.46, "control": ("red", 0.1), "arms": ARMS}, "floor must be at most 0.45"),
        ({"arms": ["red", "red"]}, "arm names must be unique"),
        ({"silence": float("nan")}, "silence"),
        ({"rewards": "last"}, "rewards"),
    ],
)
def test_what_cannot_be_is_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Agent(UCB1(), ":memory:", **more)


def test_a_floor_that_an_offer_has_no_room_for_is_refused() -> None:
    agent = Agent(UCB1(), ":memory:", floor=0.3, control=("red", 0.4))
    assert agent.ask(ARMS).propensity is not None
    assert agent.ask(["green", "blue", "pink"]).propensity == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match=r"floor must be at most 0\.2 for an offer of 3 arms"):
        agent.ask(COLOURS)


# ---- arms that come and go


@pytest.mark.parametrize("policy", [UCB1(), LinStudentUCB(), Filtered(UCB1(), repeats=5)], ids=repr)
def test_a_new_arm_is_not_flooded(policy: Policy[Any], tmp_path: Path) -> None:
    """0.2 gave it 99 of its first 100 requests."""
    with Agent(policy, quick(tmp_path / "a.db"), dim=3, seed=1) as agent:
        learn(agent, 250)
        arms = learn(agent, 100, COLOURS)
        assert 0 < arms.count("green") < 60
        arms += learn(agent, 100, COLOURS)
        told = 0
        for row in read(agent.journal).frame.itertuples():
            share = dict(zip(row.offer, row.shares, strict=True)).get("green", 0.0)
            assert share <= ((told + 1) / 100) ** 0.5 + 1e-6
            told = min(told + (row.arm == "green"), 99)
        agent.tick()  # learns the last reward, which the next ask would have done
        assert agent.verify().ok
        assert agent.learner.told[agent.learner.numbers["green"]] >= 5
    with Agent(policy, quick(tmp_path / "a.db")) as again:
        assert again.learner.told == agent.learner.told


def test_no_arm_is_new_at_the_start() -> None:
    """UCB1 tries each of ten arms once, and then goes on as it would."""
    agent, names = Agent(UCB1(), ":memory:"), [f"arm {i}" for i in range(10)]
    assert len(set(learn(agent, 10, names))) == 10


def test_no_arm_is_new_among_many_new_ones() -> None:
    """One arm is well known, three are not: UCB1 tries these first, as it would."""
    agent = Agent(UCB1(), ":memory:")
    learn(agent, 101, ["red"])
    assert set(learn(agent, 3, [*COLOURS, "pink"])) == {"blue", "green", "pink"}


def test_listed_arms_are_all_there_are() -> None:
    agent = Agent(UCB1(), ":memory:", arms=ARMS)
    agent.ask(["red"], ticket="a")
    with pytest.raises(ValueError, match=r"\['green'\] are not among the arms of this experiment"):
        agent.ask(COLOURS)
    assert agent.ask(["green"], ticket="a").arm == "red"  # asked before
    assert agent.journal.arms() == {"red": 0}


def test_the_number_of_arms_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailproof.live.learner.MOST_ARMS", 3)
    agent = Agent(UCB1(), ":memory:")
    agent.ask(COLOURS)
    with pytest.raises(ValueError, match=r"has 3 arms, and \['pink'\] would be too many"):
        agent.ask([*ARMS, "pink"])
    assert agent.ask(ARMS).arm in ARMS
    assert agent.verify().ok


def test_a_list_of_arms_makes_room_where_there_are_no_features(tmp_path: Path) -> None:
    with Agent(LinStudentUCB(), quick(tmp_path / "a.db"), arms=COLOURS) as agent:
        learn(agent, 5, ARMS)
    with Agent(LinStudentUCB(), quick(tmp_path / "a.db"), arms=COLOURS) as agent:
        assert "green" in learn(agent, 20, COLOURS)
        assert agent.learner.dim == 3
    without = Agent(LinStudentUCB(), ":memory:")
    without.ask(ARMS)
    with pytest.raises(ValueError, match="begin a journal with a list of all arms"):
        without.ask(COLOURS)
    with Agent(LinStudentUCB(), ":memory:", arms=COLOURS) as featured:
        featured.ask({"red": [1, 2], "blue": [3, 4]})
        assert featured.learner.dim == 2


@pytest.mark.parametrize("policy", [LinStudentUCB(), THREE], ids=["single", "shared"])
def test_a_dropped_arm_is_never_chosen_again(
    opened: Callable[[], Journal], policy: Policy[Any]
) -> None:
    one, two = (Agent(policy, opened(), arms=COLOURS, explore=0.5) for _ in "ab")
    for agent in (one, two):
        learn(agent, 12, COLOURS)
    one.drop("red")
    one.drop("red")
    assert [note[2:] for note in two.journal.notes()] == [("drop", {"arm": "red"})]
    for agent in (two, one):
        assert set(learn(agent, 20, COLOURS)) == {"blue", "green"}
        with pytest.raises(ValueError, match=r"all arms on offer were dropped: \['red'\]"):
            agent.ask(["red"])
        assert agent.verify().ok


@pytest.mark.parametrize("stale", [False, True])
def test_a_dropped_arm_is_noticed_by_the_next_ask(tmp_path: Path, stale: bool) -> None:
    """Also by an agent that reads everything again after an error."""
    one, two = (Agent(UCB1(), quick(tmp_path / "a.db")) for _ in "ab")
    one.ask(ARMS)
    one.drop("red")
    two._stale = stale
    with pytest.raises(ValueError, match="all arms on offer were dropped"):
        two.ask(["red"])


def test_arms_that_cannot_be_dropped() -> None:
    agent = Agent(UCB1(), ":memory:", control=("red", 0.1))
    asked(agent, 5)
    for arm, message in {
        "red": "everyone or the control group gets it",
        "pink": r"arm must be one of this experiment \(blue, red\), got 'pink'",
    }.items():
        with pytest.raises(ValueError, match=message):
            agent.drop(arm)
    whole = Agent(PEGE(), ":memory:")
    whole.ask({"red": [1.0, 0], "blue": [0, 1.0]})
    with pytest.raises(ValueError, match="needs all arms in every offer"):
        whole.drop("red")
    assert agent.journal.notes() == []
    assert agent.verify().ok


# ---- paused and stopped


@pytest.mark.parametrize("policy", [UCB1(), THREE], ids=["single", "shared"])
def test_everyone_gets_the_arm_while_it_is_fixed(
    opened: Callable[[], Journal], policy: Policy[Any]
) -> None:
    more: Any = {"control": ("red", 0.2), "explore": 0.4}
    one, two = (Agent(policy, opened(), **more) for _ in "ab")
    for agent in (one, two):
        asked(agent, 7)
    one.pause()
    for agent in (two, one):
        assert {(t.arm, t.propensity) for t in asked(agent, 7)} == {("red", 1.0)}
        assert {t.arm for t in asked(agent, 7, ["blue", "green"])} <= {"blue", "green"}
    one.stop("blue")
    with pytest.raises(ValueError, match="cannot drop 'blue'"):
        one.drop("blue")
    assert {t.arm for t in asked(two, 7)} == {"blue"}
    for ticket in asked(two, 7):
        two.tell(ticket.id, 1.0)
    two.resume()
    assert {t.arm for t in asked(one, 50)} == {"red", "blue"}
    frame = read(one.journal).frame
    assert set(frame.arm[frame.group == "fixed"]) == {"red", "blue"}
    assert [note.text for note in one.journal.notes()] == [
        *({"arm": "red", "why": "pause"}, {"arm": "blue", "why": "stop"}, {})
    ]
    assert one.verify().ok
    assert one.learner.learned > 0


def test_a_pause_needs_an_arm() -> None:
    agent = Agent(UCB1(), ":memory:")
    with pytest.raises(ValueError, match="there is no control arm"):
        agent.pause()
    with pytest.raises(ValueError, match="arm must be one of this experiment"):
        agent.stop("red")
    agent.ask(ARMS)
    agent.pause("blue")
    assert agent.ask(ARMS).arm == "blue"


# ---- units


@pytest.mark.parametrize("policy", [UCB1(), THREE], ids=["single", "shared"])
def test_a_unit_gets_the_same_arm(opened: Callable[[], Journal], policy: Policy[Any]) -> None:
    one, two = (Agent(policy, opened(), explore=0.5, seed=4) for _ in "ab")
    first = {str(n): one.ask(COLOURS, unit=str(n)) for n in range(12)}
    assert len({ticket.arm for ticket in first.values()}) > 1
    for _ in range(4):
        for unit, ticket in first.items():
            again = two.ask(COLOURS, unit=unit)
            assert (again.arm, again.propensity) == (ticket.arm, ticket.propensity)
            two.tell(again.id, 1.0)
    frame = read(one.journal).frame
    assert len(frame) == 60
    assert two.journal.outcome_count() == 48
    assert one.verify().ok
    one.journal.execute(
        "UPDATE request SET propensity = 0.123 WHERE id ="
        " (SELECT MAX(id) FROM request WHERE repeats IS NOT NULL)"
    )
    assert len(one.verify().differing) == 1


def test_a_unit_gets_another_arm_only_if_its_own_is_not_on_offer() -> None:
    agent = Agent(UCB1(), ":memory:", seed=1)
    mine = agent.ask(COLOURS, unit="user 7").arm
    others = [name for name in COLOURS if name != mine]
    second = agent.ask(others, unit="user 7").arm
    assert second in others
    assert agent.ask(COLOURS, unit="user 7").arm == second
    assert agent.ask([*COLOURS, "pink"], unit="user 7").arm == second
    agent.drop(second)
    assert agent.ask(COLOURS, unit="user 7").arm != second
    assert agent.verify().ok
    with pytest.raises(ValueError, match="unit must be a string"):
        agent.ask(COLOURS, unit="")


def test_a_unit_in_a_batch_and_after_a_pause() -> None:
    agent = Agent(Uniform(), ":memory:", seed=5)
    asked(agent, 3)
    batch = agent.act([Ask(ARMS, unit=unit) for unit in "abcabcabc"])
    arms = [ticket.arm for ticket in batch if isinstance(ticket, Ticket)]
    assert arms[:3] == arms[3:6] == arms[6:]
    assert len(set(arms)) == 2
    agent.pause("red")
    assert {agent.ask(ARMS, unit=unit).arm for unit in "abcd"} == {"red"}
    agent.resume()
    assert [agent.ask(ARMS, unit=unit).arm for unit in "abc"] == arms[:3]


# ---- cancelled tickets


@pytest.mark.parametrize("policy", [UCB1(), THREE], ids=["single", "shared"])
def test_a_cancelled_ticket_never_counts(journal: Journal, policy: Policy[Any]) -> None:
    clock = Clock()
    agent = Agent(policy, journal, wait=10, silence=0.0, clock=clock)
    for ticket in "abc":
        agent.ask(ARMS, ticket=ticket)
    own = agent.ask(ARMS).id
    agent.tell("a", 5.0)
    assert agent.cancel(["a", "b", "b", own, "z", "#173"]) == [
        *("late", "cancelled", "cancelled", "cancelled", "unknown", "unknown")
    ]
    assert agent.tell("b", 9.0) == "cancelled"
    assert agent.standing().pending == 2
    early = agent.ask(ARMS, ticket="z")
    assert early.arm in ARMS
    assert agent.ask(ARMS, ticket="z") == early
    assert agent.tell("z", 9.0) == "cancelled"
    agent.ask(ARMS, ticket="d")
    clock.now += 11
    for _ in range(3):
        agent.tick()
    rewards = [row[1] for row in journal.outcomes(0, 9) if row[1] is not None]
    assert sorted(rewards) == [0, 0, 5]
    assert agent.standing().pending == 0
    assert agent.cancel(["c"]) == ["late"]
    statuses = read(journal).frame.set_index("ticket").status.to_dict()
    assert {statuses[name] for name in ("b", own, "z")} == {"cancelled"}
    assert [statuses[name] for name in "acd"] == ["told", "silent", "silent"]
    assert agent.verify().ok


def test_cancelled_and_told_in_one_commit() -> None:
    agent = Agent(UCB1(), ":memory:")
    agent.act([Ask(ARMS, "a"), Ask(ARMS, "b")])
    assert agent.act([Tell("a", 1.0), Cancel("a"), Cancel("b"), Tell("b", 1.0)]) == [
        *("kept", "late", "cancelled", "cancelled")
    ]
    with pytest.raises(ValueError, match="ticket must be a string"):
        agent.cancel(["\n"])
    with pytest.raises(ValueError, match="event must be a string"):
        agent.tell("a", 1.0, event="\n")
    assert agent.verify().ok


# ---- all of it at once


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("policy", [LinStudentUCB(), THREE, ThompsonSampling()], ids=repr)
def test_whatever_is_done_can_be_verified(seed: int, policy: Policy[Any], tmp_path: Path) -> None:
    """Random acts of two agents with restarts; every choice comes out the same again."""
    rng, clock, names = random.Random(seed), Clock(), ["a", "b", "c", "d", "e"]
    settings: dict[str, Any] = {
        "wait": 50,
        "silence": rng.choice([None, 0.0]),
        "floor": 0.02,
        "clock": clock,
        "control": ("a", 0.2),
        "arms": names,
    }
    place, dropped, ids = tmp_path / "a.db", set[str](), list[str]()
    agents = [Agent(policy, quick(place), **settings) for _ in "ab"]
    for step in range(250):
        clock.now += rng.expovariate(1)
        agent = rng.choice(agents)
        what = rng.random()
        if what < 0.55:
            unit = rng.choice([None, f"unit {rng.randrange(9)}"])
            some = ["a", *rng.sample(names[1:], rng.choice([2, 4]))]
            ticket = agent.ask(some, rng.choice([None, f"t{step}"]), unit)
            assert ticket.arm in set(some) - dropped
            ids.append(ticket.id)
        elif what < 0.85 and ids:
            agent.tell(rng.choice(ids), rng.gauss(0, 1))
        elif what < 0.93:
            agent.cancel([rng.choice([*ids, f"t{step + 5}", "never"])])
        elif what < 0.94 and len(dropped) < 2:
            dropped.add(rng.choice(names[2:]))
            agent.drop(sorted(dropped)[-1])
            dropped = {note.text["arm"] for note in agent.journal.notes() if note.kind == "drop"}
        elif what < 0.96:
            rng.choice([agent.pause, agent.resume])()
        elif what < 0.98:
            agents.remove(agent)
            agent.close()
            agents.append(Agent(policy, quick(place), **settings))
    clock.now += 100
    agents[0].resume()
    for agent in agents:
        while not agent.tick():
            pass
        assert agent.verify().ok
        frame = read(agent.journal).frame
        assert agent.standing().pending == (frame.status == "pending").sum()
        agent.close()


def test_the_file_says_what_an_experiment_has(tmp_path: Path) -> None:
    file = tmp_path / "shop.toml"

    def settings(*lines: str) -> Any:
        head = ["[experiments.shop]", 'recipe = "ucb1"', "silence = 0.0", 'arms = ["red", "blue"]']
        file.write_text("\n".join([*head, *lines]))
        return load(file).experiments["shop"]

    found = settings('control = { arm = "red", share = 0.1 }', "floor = 0.02", "open = true")
    recipe = found.recipe
    assert (recipe.control, recipe.floor, recipe.arms) == (("red", 0.1), 0.02, None)
    assert settings().recipe.arms == ("blue", "red")
    for line, message in {
        "control = 0.1": "experiments.shop.control must be a table",
        'control = { arm = "red" }': "control must be a table such as",
        "floor = 2": "floor must be",
        "open = 1": "experiments.shop.open must be true or false",
    }.items():
        with pytest.raises(ValueError, match=message):
            settings(line)
