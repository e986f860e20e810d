"""Problems that move: they are playable, tuned apart from the reported ones, and have an oracle."""

import numpy as np
import pytest

from tailproof import UCB1, LinStudentUCB, environments, gauntlet
from tailproof.environments import motions
from tailproof.noise import PassedOn
from tailproof.research.gauntlet.moving import RECOMMENDED, REPORT, TUNING, MovingProblem, Restarted
from tailproof.research.gauntlet.problems import PROBLEMS, Problem, problem_sets

EVERY = [*REPORT.values(), *TUNING.values()]


def bandit(problem: Problem) -> environments.LinearBandit:
    assert isinstance(problem.environment, environments.LinearBandit)
    return problem.environment


def test_names_and_problems_are_used_once() -> None:
    names = [name for own in problem_sets().values() for name in own]
    assert len(names) == len(set(names))
    used = {repr(problem.environment) for problem in REPORT.values()}
    assert not used & {repr(problem.environment) for problem in TUNING.values()}


def test_every_motion_that_was_asked_for_is_there() -> None:
    kinds = {type(bandit(problem).motion) for problem in EVERY}
    assert kinds >= {
        type(None),
        motions.Jump,
        motions.Swap,
        motions.Rise,
        motions.Walk,
        motions.Rotation,
        motions.Shift,
        motions.PassOn,
    }


@pytest.mark.parametrize("problem", EVERY, ids=lambda problem: problem.name)
def test_a_problem_moves_before_it_ends(problem: MovingProblem) -> None:
    motion = problem.environment.motion
    if motion is not None:
        assert next(motion.marks()) < problem.horizon
        assert repr(motion) in problem.text
    for policy in problem.oracle_forms().values():
        policy.init(1, problem.environment.contexts.arms, problem.environment.contexts.dim)


def test_the_oracle_restarts_when_theta_changes() -> None:
    policy = Restarted(UCB1(), at=(3, 5))
    state, known = policy.init(1, 2, 2), []
    for _ in range(7):
        policy.learn(state, np.eye(2)[None], [0], [[1.0]])
        known.append(int(state.inner.decisions[0]))
    assert known == [1, 2, 0, 1, 0, 1, 2]
    assert REPORT["k5-jumps"].oracle_forms() == {
        "oracle": Restarted(LinStudentUCB(), at=(2500, 5500, 7500))
    }
    forms = REPORT["k5-walk"].oracle_forms()
    assert forms["oracle 4000"] == Restarted(LinStudentUCB(), at=(4000, 8000))
    assert forms["oracle 10000"] == Restarted(LinStudentUCB(), at=())


def test_quick_runs_still_see_the_change() -> None:
    problem = MovingProblem(
        name="swap",
        environment=bandit(REPORT["k5-swap"]),
        horizon=5200,
        suited=UCB1(),
    )
    score = gauntlet.run({"UCB1": UCB1()}, problems=[problem], size="quick", workers=1)
    assert score.settings["horizons"] == {"swap": 5200}
    assert score.oracle["swap"] < score.chance("swap")


def test_recommended_tools_go_with_the_problems() -> None:
    assert gauntlet.recommended("moving") == RECOMMENDED
    assert gauntlet.recommended("report") == gauntlet.RECOMMENDED
    both = gauntlet.recommended("k5-t1,k5-jumps")
    assert both == {**gauntlet.RECOMMENDED, **RECOMMENDED}
    assert len(gauntlet.problems("moving,k5-t1")) == len(REPORT) + 1
    assert PROBLEMS["k5-t1"] in gauntlet.problems("report")


def test_shops_pay_nothing_to_most_visitors() -> None:
    world = REPORT["shop-trade"].environment.start(1, np.random.default_rng(0))
    law = bandit(REPORT["shop-trade"]).noise
    assert isinstance(law, PassedOn)
    drawn = law.sample(np.random.default_rng(0), np.zeros(4000, int), 0, 1)
    paid = world.locations[0, 0] + drawn
    assert (paid == 0).mean() == pytest.approx(0.9, abs=0.03)
    assert paid.min() == 0
