"""The gauntlet: the problems match their names, and the score is right."""

import dataclasses
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from tailproof import (
    OFUL,
    UCB1,
    AutoFiltered,
    ClippedSGDUCB,
    Curves,
    Filtered,
    FromRegret,
    LinStudentUCB,
    Median,
    Plan,
    Policy,
    Result,
    Uniform,
    gauntlet,
    noise,
    simulate,
)
from tailproof.cli import app
from tailproof.environments.linear import LinearBandit, k_armed, neutral
from tailproof.research.gauntlet import (
    CHANCE,
    PROBLEMS,
    RECOMMENDED,
    TARGETS,
    Problem,
    Score,
    Target,
)
from tailproof.research.gauntlet.problems import TUNING
from tailproof.research.gauntlet.run import SEEDS, _best
from tailproof.research.gauntlet.targets import ALL

EVERY = [*PROBLEMS.values(), *TUNING.values()]


def quickly(tools: dict[str, Policy[Any]], *names: str | Problem, **settings: Any) -> Score:
    return gauntlet.run(tools, problems=names, size="smoke", workers=1, **settings)


def linear(problem: Problem) -> LinearBandit:
    assert isinstance(problem.environment, LinearBandit)
    return problem.environment


def test_paths_replace_those_of_the_size() -> None:
    score = quickly({"UCB1": UCB1()}, "k2-short", paths=2)
    assert score.settings["paths"] == 2
    assert score.regret["k2-short"]["UCB1"].shape == (2, 2)
    first = quickly({"UCB1": UCB1()}, "k2-short", paths=2, engine="serial")
    assert (first.regret["k2-short"]["UCB1"] == score.regret["k2-short"]["UCB1"]).all()
    with pytest.raises(ValueError, match="paths must be"):
        quickly({"UCB1": UCB1()}, "k2-short", paths=0)


# Problems


def test_there_are_many_problems_and_none_is_tuned_on() -> None:
    assert len(PROBLEMS) >= 40
    assert not PROBLEMS.keys() & TUNING.keys()
    used = {repr(problem.environment) for problem in PROBLEMS.values()}
    assert not used & {repr(problem.environment) for problem in TUNING.values()}
    assert SEEDS["tuning"] != SEEDS["report"]
    assert all(name == problem.name for name, problem in (PROBLEMS | TUNING).items())


@pytest.mark.parametrize("problem", EVERY, ids=lambda problem: problem.name)
def test_problems_can_be_played(problem: Problem) -> None:
    world = problem.bandit.start(2, np.random.default_rng(0))
    assert np.isfinite(world.locations).all()
    assert (world.best == world.locations.max(axis=1)).all()
    if problem.oracle is not None:
        assert isinstance(problem.oracle.noise, noise.Normal)


def test_the_gauntlet_covers_laws_units_offsets_and_sizes() -> None:
    found = list(PROBLEMS.values())
    laws = {type(linear(problem).noise) for problem in found}
    exported = {getattr(noise, name) for name in noise.__all__}
    bases: set[type] = {noise.Noise, noise.Varying}
    bases |= {noise.Empirical, noise.PassedOn}  # of a user's own records, of problems that move
    inside = {noise.Mixture, noise.TwoPoint, noise.LogNormal, noise.Pareto}
    assert exported - bases == laws | inside
    assert {problem.unit for problem in found} >= {1e-6, 1, 1e6}
    assert {problem.environment.offset for problem in found} >= {0, 10, -10, 10_000, -10_000}
    assert {problem.environment.contexts.dim for problem in found} >= {1, 2, 10, 50}
    assert {problem.environment.contexts.arms for problem in found} >= {2, 3, 5, 10, 20, 100}
    assert {problem.horizon for problem in found} >= {300, 10_000, 100_000}
    assert sum(problem.k_armed for problem in found) >= 10


class Recorder(Uniform):
    """A random choice that keeps its rewards, wherever it plays."""

    view = "vectors"

    seen: list[NDArray[np.float64]] = []  # noqa: RUF012

    def _learn(self, state: Any, arms: Any, chosen: Any, rewards: Any) -> None:
        self.seen.append(rewards)


def test_unit_and_offset_are_in_the_rewards_and_the_unit_is_out_of_the_regret() -> None:
    seen, regret = {}, {}
    for name in ("plain", "mega", "offset-10000", "micro-offset"):
        Recorder.seen = []
        problem = PROBLEMS[f"units-{name}"]
        regret[name] = quickly({"it": Recorder()}, problem).regret[problem.name]["it"]
        seen[name] = np.concatenate(Recorder.seen)
    np.testing.assert_allclose(seen["mega"], 1e6 * seen["plain"], rtol=1e-12)
    np.testing.assert_allclose(seen["offset-10000"], 10_000 + seen["plain"], rtol=1e-12)
    np.testing.assert_allclose(seen["micro-offset"], 1e-6 * seen["offset-10000"], rtol=1e-12)
    for other in regret.values():
        np.testing.assert_allclose(other, regret["plain"], rtol=1e-9)


def test_arms_of_zeros_and_ones_have_the_probabilities_they_say() -> None:
    (problem,) = gauntlet.problems(["k3-bernoulli"])
    law = linear(problem).noise
    assert isinstance(law, noise.PerArm)
    for p, own in zip((0.3, 0.5, 0.7), law.laws, strict=True):
        assert own.mean == pytest.approx(0)
        assert np.add(own.support, p).tolist() == pytest.approx([0, 1])


def test_the_oracle_has_equal_information() -> None:
    oracle = PROBLEMS["fixed-quiet-t1"].oracle
    assert oracle is not None
    assert isinstance(oracle.noise, noise.Normal)
    assert oracle.noise.scale == pytest.approx(0.1 * math.sqrt(2))
    far = PROBLEMS["fixed-offset-10000"].oracle
    assert far is not None
    assert far.offset == 0
    for name in ("fresh-uniform", "fresh-pareto", "fixed-noiseless", "fixed-changing", "k5-t1"):
        assert PROBLEMS[name].oracle is None


@pytest.mark.parametrize(
    ("which", "words"),
    [
        ("fresh-t7", "problems: 'fresh-t7' is unknown; choose report, tuning, money,"),
        ([], "problems must be at least one"),
        ("fresh-t1,fresh-t1", "problems: 'fresh-t1' occurs twice"),
        ([3], "problems: 3 is unknown"),
    ],
)
def test_unknown_problems_are_refused(which: Any, words: str) -> None:
    with pytest.raises(ValueError, match=f"^{words}"):
        gauntlet.problems(which)


def test_a_problem_of_your_own() -> None:
    own = Problem(name="mine", environment=neutral(noise.Cauchy(), arms=3, dim=2), horizon=50)
    assert quickly({"OFUL": OFUL()}, own, "k2-short").problems == ["mine", "k2-short"]
    for change, words in (
        ({"name": "a,b"}, "name must be a text without commas"),
        ({"horizon": 1}, "horizon must be"),
        ({"unit": 0}, "unit must be"),
        ({"environment": "neutral"}, "environment must be a bandit to play"),
    ):
        with pytest.raises(ValueError, match=words):
            dataclasses.replace(own, **change)


# The score


def handmade() -> Score:
    """Two tools, four paths; random arms have a regret of 100 in each half."""
    chance = np.tile([100.0, 200.0], (4, 1))
    good = np.array([[30.0, 31.0], [30.0, 40.0], [30.0, 40.1], [0.0, 160.0]])
    return Score(
        regret={
            "one": {"good": good, "other": chance / 2, CHANCE: chance},
            "two": {"good": chance, CHANCE: chance},
        },
        oracle={"one": 10.0},
        settings={
            "size": "full",
            "seed": 0,
            "paths": 4,
            "horizons": {"one": 20, "two": 20},
            "tools": {"good": "Good()", "other": "Other()"},
            "versions": {"tailproof": "0"},
        },
    )


def test_the_score_of_a_handmade_result() -> None:
    score = handmade()
    row = score.row("one", "good")
    assert row is not None
    assert row.regret == pytest.approx(271.1 / 4)
    assert row.over_chance == pytest.approx(271.1 / 800)
    assert row.over_best == 1
    assert row.over_oracle == pytest.approx(271.1 / 40)
    assert row.stuck == 0.5  # exactly a tenth of random arms is not above it
    assert row.worst == pytest.approx(0.8)
    other = score.row("one", "other")
    assert other is not None
    assert other.over_best == pytest.approx(400 / 271.1)
    assert other.stuck == 1
    assert score.row("two", "other") is None
    assert [(row.problem, row.tool) for row in score.rows()] == [
        ("one", "good"),
        ("one", "other"),
        ("two", "good"),
    ]
    sums = score.summary()
    assert sums["good"]["problems"] == 2
    assert sums["good"]["worst_over_best"] == 1
    assert sums["other"]["worst_problem"] == "one"
    assert sums["other"]["stuck"] == ["one"]
    with pytest.raises(ValueError, match=r"^problem must be one of one, two, got 'three'$"):
        score.row("three", "good")
    with pytest.raises(ValueError, match=r"^tool must be one of good, other, got 'bad'$"):
        score.row("one", "bad")


def test_the_worst_ratio_is_to_the_best_tool() -> None:
    """Random arms are no tool: one that does worse than they do may still be the best."""
    chance = np.tile([100.0, 200.0], (4, 1))
    regret = {
        "one": {"good": chance / 2, "other": chance / 10, CHANCE: chance},
        "two": {"good": chance * 3, "other": chance * 3, CHANCE: chance},
    }
    score = dataclasses.replace(handmade(), regret=regret)
    assert [row.over_best for row in score.rows()] == pytest.approx([5, 1, 1, 1])
    assert score.summary()["good"]["worst_problem"] == "one"


def test_no_regret_over_no_regret_is_one() -> None:
    score = handmade()
    zero = np.zeros((4, 2))
    found = {"one": {"good": zero, "other": zero + 1, CHANCE: zero + 5}}
    score = dataclasses.replace(score, regret=found, oracle={})
    good, other = score.rows()
    assert (good.over_best, other.over_best) == (1, math.inf)
    assert math.isnan(good.over_oracle)


def test_targets_are_checked_at_the_full_size_alone() -> None:
    targets = [
        Target("one", "good", "regret", 67),
        Target("one", "other", "worst", 0.5),
        Target("two", "other", "regret", 1),
        Target("three", "good", "regret", 1),
    ]
    checked = gauntlet.check_targets(handmade(), targets)
    assert [each.passed for each in checked] == [False, True]
    quick = dataclasses.replace(handmade(), settings={**handmade().settings, "size": "quick"})
    assert gauntlet.check_targets(quick, targets) == []
    whole = [Target(ALL, "good", "median_over_best", 3)]
    assert gauntlet.check_targets(handmade(), whole) == []  # problems are missing


def test_targets_name_known_problems_and_tools() -> None:
    for target in TARGETS:
        assert target.problem in (*PROBLEMS, ALL)
        assert target.tool in RECOMMENDED
    assert len(set(TARGETS)) == len(TARGETS)


def test_a_score_is_saved_and_loaded(tmp_path: Path) -> None:
    score = quickly({"OFUL": OFUL(), "UCB1": UCB1()}, "fresh-normal", "k3-ties")
    again = Score.load(score.save(tmp_path / "score.npz"))
    assert repr(again.rows()) == repr(score.rows())  # some of their numbers are NaN
    assert dict(again.settings) == dict(score.settings)
    assert again.oracle == score.oracle
    short = dataclasses.replace(score, settings={**score.settings, "paths": 4})
    short.save(tmp_path / "short.npz")
    (tmp_path / "other.npz").write_bytes(b"no file")
    with pytest.raises(ValueError, match=r"path .* is not a '.*' file, or it is damaged"):
        Score.load(tmp_path / "other.npz")
    with pytest.raises(ValueError, match=r"path .* is not a '.*' file, or it is damaged"):
        Score.load(tmp_path / "short.npz")


def test_the_page_shows_every_problem_and_what_does_not_fit() -> None:
    page = handmade().to_markdown("tailproof gauntlet")
    assert "`tailproof gauntlet`" in page
    lines = {line.split(" | ")[0]: line for line in page.splitlines()}
    assert lines["| two"].endswith("| 100 (1×), **100 % stuck** | – |")
    assert "50 % stuck" in lines["| one"]
    assert lines["| one"].startswith("| one | 20 | 200 | 5 | 34 (1×)")  # 10 of 200 are 5 per cent
    texts = [text.get_text() for text in handmade().plot().axes[0].texts]
    assert texts[:4] == ["34 %", "50", "50 %", "100"]


# Runs


def test_plans_have_the_seed_of_their_set_and_a_mark_at_half_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Plan] = []

    def stop(plans: dict[str, Plan], **_: Any) -> None:
        made[:] = plans.values()
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules["tailproof.research.gauntlet.run"], "sweep", stop)
    for which, seed in (("tuning", SEEDS["tuning"]), ("report", SEEDS["report"])):
        with pytest.raises(KeyboardInterrupt):
            gauntlet.run({"UCB1": UCB1()}, problems=which, size="full")
        assert {plan.seed for plan in made} == {seed}
        for plan in made:
            assert plan.marks() == (plan.horizon // 2, plan.horizon)


def test_the_oracle_is_the_best_at_the_end() -> None:
    curves = {
        name: Curves(regret=np.array([regret]), decisions=np.array([1, 2]))
        for name, regret in {"early": [1.0, 9.0], "late": [2.0, 5.0]}.items()
    }
    assert _best(Result(pulls=np.array([1, 2]), curves=curves, settings={})) == 5


def test_tools_without_features_play_unit_vectors_only() -> None:
    wrapped: dict[str, Policy[Any]] = {
        "a": AutoFiltered(UCB1()),
        "b": Filtered(AutoFiltered(UCB1()), repeats=3, estimator=Median()),
        "c": ClippedSGDUCB(horizon=60),
        "linear": LinStudentUCB(),
    }
    score = quickly(wrapped, "fixed-t1", "k5-t1")
    assert set(score.regret["fixed-t1"]) == {"linear", CHANCE}
    assert set(score.regret["k5-t1"]) == {*wrapped, CHANCE}


def test_the_score_is_that_of_simulations() -> None:
    problem = PROBLEMS["k3-offset-10"]
    score = quickly({"OFUL": OFUL()}, problem)
    alone = simulate(
        {"OFUL": OFUL(), CHANCE: Uniform()},
        k_armed(noise.Cauchy(), locations=(10, 10.5, 11)),
        horizon=60,
        paths=3,
        seed=SEEDS["report"],
    )
    for name, curves in alone.curves.items():
        half = int(np.flatnonzero(alone.pulls == 30)[0])
        np.testing.assert_array_equal(
            score.regret[problem.name][name], curves.regret[:, [half, -1]]
        )


def test_a_stopped_run_resumes(tmp_path: Path) -> None:
    tools: dict[str, Policy[Any]] = {"OFUL": OFUL()}

    def stop(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        quickly(tools, "fresh-normal", "k3-ties", out=tmp_path, progress=stop)
    steps: list[int] = []
    score = quickly(
        *(tools, "fresh-normal", "k3-ties"),
        out=tmp_path,
        progress=lambda done, total: steps.append(done),
    )
    assert steps[0] == 3
    whole = quickly(tools, "fresh-normal", "k3-ties")
    for problem, found in whole.regret.items():
        for tool, regret in found.items():
            np.testing.assert_array_equal(score.regret[problem][tool], regret)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"size": "huge"}, "size must be one of smoke, quick, full, got 'huge'"),
        ({"policies": {}}, "policies must be a mapping with at least one policy"),
        ({"policies": {CHANCE: UCB1()}}, "policies: the name 'random arm' is reserved"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=f"^{words}"):
        gauntlet.run(**{"policies": {"a": UCB1()}, "problems": ["k3-ties"], **settings})


def test_the_recommended_tools_fit_somewhere() -> None:
    score = quickly(dict(RECOMMENDED), "k3-ties", "fixed-d1")
    assert score.tools == list(RECOMMENDED)
    assert set(score.regret["k3-ties"]) == {*RECOMMENDED, CHANCE}
    assert FromRegret not in {type(policy) for policy in RECOMMENDED.values()}


def test_the_command(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["gauntlet", "--policy", "ucb1", "--policy", "oful", "--problems", "k3-ties,fixed-d1"]
    settings = ["--size", "smoke", "--workers", "1", "--seed", "3", "--out", str(out)]
    found = CliRunner().invoke(app, [*words, *settings])
    assert found.exit_code == 0, found.output
    assert "–" in found.output
    assert {path.name for path in out.iterdir()} == {"score.npz", "gauntlet.md", "gauntlet.png"}
    assert Score.load(out / "score.npz").tools == ["ucb1", "oful"]
    page = (out / "gauntlet.md").read_text(encoding="utf-8")
    typed = "tailproof gauntlet --problems k3-ties,fixed-d1 --size smoke --policy ucb1"
    assert f"`{typed} --policy oful --seed 3`" in page
    again = CliRunner().invoke(app, [*words, "--policy", "ucb1", *settings[:4]])
    assert again.exit_code == 2
    assert "policy must be given only once, got 'ucb1'" in again.output
