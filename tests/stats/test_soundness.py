"""Is the file sound: what is spoilt is named, and a sound file is left in peace."""

import numpy as np
import pytest

from tailproof.environments.traffic import Returning, Rows, Spoilt
from tailproof.stats.customers import Customers
from tailproof.stats.soundness import (
    about_shares,
    bursts,
    duplicates,
    machines,
    planned_shares,
    unlike_plan,
)

NAMES = ["A", "B"]


def gathered(rows: Rows) -> Customers:
    return Customers.of(arm=rows.arm, reward=rows.reward, unit=rows.unit, time=rows.time)


def findings(rows: Rows) -> list[str]:
    customers = gathered(rows)
    found = [
        *about_shares(customers, np.array([0.5, 0.5]), NAMES),
        *machines(customers, NAMES),
        *duplicates(rows.arm, rows.reward, rows.unit, rows.time),
        *bursts(rows.arm, NAMES, rows.reward),
    ]
    return [one.kind for one in found]


def test_sound_files_are_left_in_peace() -> None:
    """A share is wrongly called unplanned in 1 of 1000 files, a burst in 1 of 10 000."""
    rng = np.random.default_rng(0)
    assert sum(len(findings(Returning(rows=4000).draw(rng))) for _ in range(100)) <= 1


@pytest.mark.parametrize(
    ("world", "kind"),
    [
        (Spoilt(bots=600), "machines"),
        (Spoilt(bots=600, one_machine=False), "burst"),
        (Spoilt(bots=2000, one_machine=False), "shares"),
        (Spoilt(doubled=0.1), "duplicates"),
    ],
)
def test_what_is_spoilt_is_named(world: Spoilt, kind: str) -> None:
    assert kind in findings(world.draw(np.random.default_rng(0)))


def test_an_exact_test_of_few_customers() -> None:
    even = np.array([0.5, 0.5])
    assert unlike_plan(np.array([0, 10]), even) == pytest.approx(2 / 1024)
    assert unlike_plan(np.array([5, 5]), even) == pytest.approx(1)
    assert unlike_plan(np.array([0, 0]), even) == 1.0


def test_a_day_that_broke_the_split_is_named() -> None:
    rng = np.random.default_rng(0)
    arm = rng.integers(0, 2, 20_000)
    arm[4000:4200] = 1
    customers = Customers.of(arm=arm, reward=np.ones(20_000))
    (found,) = about_shares(customers, np.array([0.5, 0.5]), NAMES, np.arange(20_000) // 2000)
    assert found.words.startswith("On day 3 the arms did not have their planned shares")


def test_a_plan_names_every_arm() -> None:
    assert planned_shares(None, NAMES) is None
    with pytest.raises(ValueError, match="a share for each arm"):
        planned_shares("A=0.5,C=0.5", NAMES)
    with pytest.raises(ValueError, match="split must be 'even' or shares"):
        planned_shares("half", NAMES)
    with pytest.raises(ValueError, match="split must be"):
        planned_shares("A=x,B=1", NAMES)


def test_an_arm_that_came_later_has_its_share_on_its_days() -> None:
    rng = np.random.default_rng(4)
    day = np.sort(rng.integers(0, 20, 9000))
    arm = np.where(day < 8, rng.integers(0, 2, 9000), rng.integers(0, 3, 9000))
    names, even = ("A", "B", "C"), np.full(3, 1 / 3)
    late = Customers.of(arm=arm, reward=np.zeros(9000), arms=3)
    (found,) = about_shares(late, even, names, day)
    assert found.kind == "days"
    assert found.words == "C came on day 9 of 20: it is compared on its days."
    lost = ~((arm == 1) & (rng.random(9000) < 0.2))
    broken = Customers.of(arm=arm[lost], reward=np.zeros(lost.sum()), arms=3)
    came, found = about_shares(broken, even, names, day[lost])
    assert (came.kind, found.kind) == ("days", "shares")
    assert found.words.startswith("The arms do not have their planned shares: A ")


def test_an_arm_that_came_within_a_day_is_not_missed_that_morning() -> None:
    """Arm C came, and arm A went, two hours before midnight."""
    rng = np.random.default_rng(5)
    time = np.sort(20 * rng.random(20_000))
    came, went = 10 - 2 / 24, 15 - 2 / 24
    arm = np.where(time < came, rng.integers(0, 2, 20_000), rng.integers(0, 3, 20_000))
    arm = np.where(time > went, rng.integers(1, 3, 20_000), arm)
    customers = Customers.of(arm=arm, reward=np.zeros(20_000), arms=3)
    names, even = ("A", "B", "C"), np.full(3, 1 / 3)
    findings = about_shares(customers, even, names, time.astype(int))
    assert [found.words for found in findings] == [
        "A was last seen on day 15 of 20: it is compared on its days.",
        "C came on day 10 of 20: it is compared on its days.",
    ]
