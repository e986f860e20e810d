"""The room of money: shops with and without features, on time and late, in their own block."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tailproof import (
    UCB1,
    LinRevenueUCB,
    LinStudentUCB,
    Policy,
    RevenueUCB,
    gauntlet,
)
from tailproof.cli import app
from tailproof.environments.shops import Shop
from tailproof.research.gauntlet import BLOCKS, CHANCE, PROBLEMS, Problem, Score, money
from tailproof.research.gauntlet.run import SEEDS, _fits, _plan

EVERY = [*money.REPORT.values(), *money.TUNING.values()]


def shop(problem: Problem) -> Shop:
    assert isinstance(problem.environment, Shop)
    return problem.environment


def test_there_are_enough_shops_of_every_kind() -> None:
    for own in (money.REPORT, money.TUNING):
        found = list(own.values())
        assert sum(problem.k_armed for problem in found) >= 12
        assert sum(problem.same_vectors for problem in found) >= 3
        assert {problem.delay for problem in found} == {0, 500, 2000}
        assert {problem.environment.contexts.arms for problem in found} >= {2, 4, 10}
        assert {problem.block for problem in found} == {"money"}
        assert all(problem.name.startswith(("money-", "tuning-money-")) for problem in found)
    assert not money.REPORT.keys() & (money.TUNING.keys() | PROBLEMS.keys())
    used = {repr(problem.environment) for problem in money.REPORT.values()}
    assert not used & {repr(problem.environment) for problem in money.TUNING.values()}


@pytest.mark.parametrize("problem", EVERY, ids=lambda problem: problem.name)
def test_shops_have_one_best_arm(problem: Problem) -> None:
    values = shop(problem).values
    assert (values > 0).all()
    assert np.count_nonzero(values == values.max()) == 1
    assert problem.oracle is None
    assert ("late" in problem.text) == (problem.delay > 0)


def test_the_banners_are_worth_what_the_docs_say() -> None:
    """A random banner 2.08 a visitor, the best one 2.39, the best for each visitor 3.97."""
    from tailproof import Mean

    own = replace(shop(money.REPORT["money-banners"]), aim=Mean())
    x = np.random.default_rng(0).standard_normal((200_000, 5))
    value = own.conversion(x) * (own.values / np.asarray(own.buyers))
    found = [value.mean(), value.mean(axis=0).max(), value.max(axis=1).mean()]
    np.testing.assert_allclose(found, [2.08, 2.39, 3.97], atol=0.02)


@pytest.mark.parametrize(
    ("policy", "name", "plays"),
    [
        (RevenueUCB(), "money-banners", True),
        (LinRevenueUCB(), "money-banners", True),
        (LinStudentUCB(), "money-banners", False),
        (LinStudentUCB(), "money-k2-whales", True),
        (LinRevenueUCB(), "money-k2-whales", True),
        (LinRevenueUCB(), "fresh-t1", False),
    ],
)
def test_who_can_play(policy: Policy[Any], name: str, plays: bool) -> None:
    (problem,) = gauntlet.problems([name])
    assert _fits(policy, problem) == plays


def test_delays_are_cut_with_the_horizon() -> None:
    problem = money.REPORT["money-k2-opposite"]
    for size, delay in (("full", 2000), ("quick", 80)):
        plan = _plan(problem, problem.bandit, {"it": RevenueUCB()}, size, 2, 1)
        assert plan.delay == delay


def test_sets_can_be_mixed_and_have_their_tools_and_seeds() -> None:
    found = gauntlet.problems("money,k5-t1")
    assert [problem.name for problem in found] == [*money.REPORT, "k5-t1"]
    assert set(gauntlet.recommended("money")) == set(money.RECOMMENDED)
    assert set(gauntlet.recommended("money,k5-t1")) == {*money.RECOMMENDED, *gauntlet.RECOMMENDED}
    assert set(gauntlet.recommended("report")) == set(gauntlet.RECOMMENDED)
    score = gauntlet.run(
        {"it": UCB1()},
        problems="tuning-money-k2-opposite,tuning-money-k2-whales",
        size="smoke",
        workers=1,
    )
    assert score.settings["seed"] == SEEDS["report"]
    with pytest.raises(ValueError, match=r"^block must be one of"):
        replace(money.REPORT["money-k2-whales"], block="shops")


def test_a_path_is_lost_later_than_stuck() -> None:
    """Second halves of 0.05, 0.3 and 0.6 of chance: two are stuck, one is lost."""
    own = np.array([[1, 1.05], [1, 1.3], [1, 1.6]])
    regret = {"p": {CHANCE: np.tile([1.0, 2.0], (3, 1)), "tool": own}}
    settings = {"tools": {"tool": ""}, "paths": 3, "size": "full"}
    for blocks, stuck in (({}, 2 / 3), ({"blocks": {"p": "money"}}, 1 / 3)):
        score = Score(regret=regret, oracle={}, settings=settings | blocks)
        row = score.row("p", "tool")
        assert row is not None
        assert row.stuck == pytest.approx(stuck)


def test_blocks_have_tables_and_pictures_of_their_own(tmp_path: Path) -> None:
    tools: dict[str, Policy[Any]] = {"RevenueUCB": RevenueUCB(), "LinStudentUCB": LinStudentUCB()}
    names = ["k2-short", "money-k2-whales", "money-banners", "fresh-normal"]
    score = gauntlet.run(tools, problems=names, size="smoke", workers=1)
    parts = score.parts()
    assert [block.title for block in parts] == ["Locations", "Revenue"]
    assert parts[BLOCKS["money"]].problems == ["money-k2-whales", "money-banners"]
    page = score.to_markdown("typed")
    first, second = page.index("## Locations"), page.index("## Revenue")
    assert first < page.index("fresh-normal") < second < page.index("money-banners")
    assert "A path is lost if its regret in the second half is above 0.5" in page[second:]
    figure = score.plot()
    assert len(figure.axes) == 3
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[1] == "Revenue; dot: per cent of paths lost"
    again = Score.load(score.save(tmp_path / "score.npz"))
    assert again.to_markdown("typed") == page


def test_the_command_knows_the_shops() -> None:
    arguments = ["gauntlet", "--problems", "money-k2-whales", "--size", "smoke", "--workers", "1"]
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 0, found.output
    listed = CliRunner().invoke(app, ["list", "--kind", "problem"], env={"COLUMNS": "400"})
    assert "money-banners-noise" in listed.output
    assert "tuning-money-few" in listed.output
