"""The loop that names best arms: accounting, budgets, files, errors kept below δ."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, binomtest

from tailproof import (
    OFUL,
    Filtered,
    FixedArm,
    FromRegret,
    Identification,
    Mean,
    Median,
    Policy,
    Result,
    Uniform,
    Verdicts,
    environments,
    identify,
    simulate,
)
from tailproof.bestarm import (
    RAGE,
    BestArm,
    GAllocation,
    LazyTrackAndStop,
    LinGapE,
    SuccessiveElimination,
    TrackAndStop,
    XYAdaptive,
    XYAllocation,
    behind_filter,
)
from tailproof.environments import GivenArms, LinearBandit
from tailproof.environments.linear import k_armed, near_tie, neutral, orthant, unit_ball
from tailproof.environments.streams import stream
from tailproof.figures import pulls_figure
from tailproof.noise import Cauchy, Noise, Normal, StudentT
from tailproof.policies.base import Array, Index, Recommends, State

FALSE_ALARM = 1e-6
"""The probability with which a statistical test here fails code that keeps its promise."""
EASY = near_tie(Normal(), angle=1.0)


@dataclass(frozen=True, kw_only=True)
class Slow(Policy[State], Recommends):
    """A policy that names arm 0 after as many decisions as its first reward says."""

    def _init(self, paths: int, arms: int, dim: int) -> Any:
        return _Waiting(arms=arms, dim=dim, decisions=np.zeros(paths, int), wait=np.zeros(paths))

    def _choose(self, state: State, arms: Array, rng: np.random.Generator) -> Index:
        return np.zeros(state.paths, dtype=np.int64)

    def _learn(self, state: Any, arms: Array, chosen: Index, rewards: Array) -> None:
        first = state.decisions == 0
        state.wait = np.where(first, np.ceil(np.abs(rewards[:, 0])), state.wait)

    def recommend(self, state: Any) -> Index:
        over = (state.decisions > 0) & (state.decisions >= state.wait)
        return np.where(over, 0, -1)


@dataclass(eq=False)
class _Waiting(State):
    wait: NDArray[np.float64]


def few_errors(found: Identification, policy: str, delta: float) -> bool:
    """Whether the errors are no more than a probability δ explains, at the false-alarm rate."""
    paths = len(found.verdicts[policy].recommended)
    return found.errors(policy) <= binom.isf(FALSE_ALARM, paths, delta)


def test_finished_paths_drop_out_and_keep_their_place() -> None:
    bandit = k_armed(Normal(10), locations=(1.0, 0.0))
    found = identify({"slow": Slow()}, bandit, paths=40, max_pulls=1000).verdicts["slow"]
    first = np.ceil(np.abs(1 + 10 * _first_noise("slow", 40)))
    np.testing.assert_array_equal(found.pulls, np.maximum(first, 1))
    np.testing.assert_array_equal(found.decisions, found.pulls)
    assert found.correct.all()


def _first_noise(name: str, paths: int) -> Array:
    return Normal().sample(stream(0, f"noise {name}", 0), (paths, 1))[:, 0]


def test_pulls_are_counted_raw() -> None:
    inner = FromRegret(FixedArm(arm=1), decisions=7)
    policies: dict[str, Policy[Any]] = {
        "plain": inner,
        "median": Filtered(inner, repeats=5, estimator=Median()),
        "nested": Filtered(
            Filtered(inner, repeats=5, estimator=Median()), repeats=2, estimator=Mean()
        ),
    }
    bandit = k_armed(Cauchy(), locations=(0.0, 1.0))
    found = identify(policies, bandit, paths=3, max_pulls=100)
    for name, pulls in (("plain", 7), ("median", 35), ("nested", 70)):
        assert found.verdicts[name].pulls.tolist() == [pulls] * 3
        assert found.verdicts[name].decisions.tolist() == [7] * 3
        assert found.verdicts[name].recommended.tolist() == [1] * 3


@pytest.mark.parametrize(("budget", "answer", "used"), [(34, -1, 30), (35, 1, 35), (36, 1, 35)])
def test_a_budget_that_runs_out_names_no_arm(budget: int, answer: int, used: int) -> None:
    policy = Filtered(FromRegret(FixedArm(arm=1), decisions=7), repeats=5, estimator=Median())
    bandit = k_armed(Cauchy(), locations=(0.0, 1.0))
    found = identify({"it": policy}, bandit, paths=2, max_pulls=budget)
    assert found.verdicts["it"].recommended.tolist() == [answer] * 2
    assert found.verdicts["it"].correct.tolist() == [answer == 1] * 2
    assert found.verdicts["it"].pulls.tolist() == [used] * 2
    assert found.undecided("it") == 2 * (answer < 0)
    assert found.errors("it") == 0


def test_each_path_is_judged_by_its_own_arms() -> None:
    bandit = neutral(Normal(1e-6), arms=6, dim=3, fresh=False)
    names: dict[str, Policy[Any]] = {
        "LinGapE": LinGapE(noise_scale=0.05, ridge=1e-3),
        "XY": XYAllocation(noise_scale=0.02),
    }
    found = identify(names, bandit, paths=30, max_pulls=20_000)
    world = bandit.start(30, _environment_stream())
    for name in names:
        best = world.locations.argmax(axis=1)
        np.testing.assert_array_equal(found.verdicts[name].recommended, best)
        assert len(set(found.verdicts[name].pulls.tolist())) > 3
        assert found.verdicts[name].correct.all()


def _environment_stream() -> np.random.Generator:
    return stream(0, "environment", 0)


def test_a_near_best_arm_counts_where_the_recipe_is_content() -> None:
    for epsilon, right in ((0.0, False), (0.5, True)):
        policy = SuccessiveElimination(gap_tolerance=epsilon)
        bandit = k_armed(Normal(1e-9), locations=(1.0, 1.0 + 1e-7, -9.0))
        if right:
            found = identify({"it": policy}, bandit, paths=20, max_pulls=5000)
            assert found.verdicts["it"].correct.all()
            assert found.undecided("it") == 0
        else:
            found = identify({"it": policy}, bandit, paths=2, max_pulls=500)
            assert found.undecided("it") == 2


def test_adding_a_policy_or_a_chunk_changes_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    one = identify({"a": LinGapE(norm_bound=2)}, EASY, paths=7, max_pulls=5000, seed=3)
    both: dict[str, Policy[Any]] = {"b": RAGE(offset=-1), "a": LinGapE(norm_bound=2)}
    two = identify(both, EASY, paths=7, max_pulls=5000, seed=3)
    np.testing.assert_array_equal(one.verdicts["a"].pulls, two.verdicts["a"].pulls)
    other = identify({"a": LinGapE(norm_bound=2)}, EASY, paths=7, max_pulls=5000, seed=4)
    assert one.verdicts["a"].pulls.tolist() != other.verdicts["a"].pulls.tolist()
    monkeypatch.setattr("tailproof.simulation.cells.CHUNK", 3)
    parts = identify({"a": LinGapE(norm_bound=2)}, EASY, paths=7, max_pulls=5000, seed=3)
    assert len(parts.verdicts["a"].pulls) == 7
    assert parts.errors("a") + parts.undecided("a") == 0


def test_the_loop_plays_as_the_checked_calls_do() -> None:
    """The loop trusts what it made itself; whoever plays by hand is checked at every call."""
    policy, paths = LinGapE(norm_bound=2), 9
    found = identify({"a": policy}, EASY, paths=paths, max_pulls=2000, seed=3).verdicts["a"]
    own, eta, rng = (stream(3, name, 0) for name in ("policy a", "noise a", "environment"))
    world, state = EASY.start(paths, rng), policy.init(paths, 6, 5)
    racing, decisions = np.arange(paths), np.zeros(paths, dtype=np.int64)
    while len(racing):
        arms = world.arms[racing]
        chosen = policy.choose(state, arms, own)
        location = world.locations[racing, chosen]
        policy.learn(
            state, arms, chosen, location[:, None] + Normal().sample(eta, (len(racing), 1))
        )
        decisions[racing] += 1
        going = ~policy.stopped(state)
        state, racing = state.take(going), racing[going]
    np.testing.assert_array_equal(found.decisions, decisions)
    assert len(set(decisions.tolist())) > 3


@dataclass(frozen=True)
class Undefined(Normal):
    """A law of someone's own that is broken: now and then it gives NaN."""

    def _sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        drawn = super()._sample(rng, shape)
        return np.where(drawn > 2, np.nan, drawn)


def test_noise_that_is_not_a_number_is_refused() -> None:
    """A value above 2 is missing among 2000 with probability 1e-20."""
    policy = FromRegret(Uniform(), decisions=10**6)
    with pytest.raises(ValueError, match="noise must not draw NaN, as Undefined"):
        identify({"a": policy}, near_tie(Undefined()), paths=10, max_pulls=200)


def test_delta_takes_the_place_of_the_recipes_own() -> None:
    own = identify({"a": LinGapE(delta=1e-6)}, EASY, paths=5, max_pulls=9000)
    given = identify({"a": LinGapE(delta=0.3)}, EASY, paths=5, max_pulls=9000, delta=1e-6)
    np.testing.assert_array_equal(own.verdicts["a"].pulls, given.verdicts["a"].pulls)
    assert given.settings["policies"]["a"] == repr(LinGapE(delta=1e-6))
    assert given.settings["delta"] == 1e-6


def test_progress_counts_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailproof.simulation.cells.CHUNK", 4)
    seen: list[tuple[int, int]] = []
    policies: dict[str, Policy[Any]] = {
        "a": LinGapE(norm_bound=2),
        "b": FromRegret(Uniform(), decisions=10**6),
    }
    identify(policies, EASY, paths=6, max_pulls=300, progress=lambda *at: seen.append(at))
    assert seen == [(done, 4) for done in range(5)]


@pytest.mark.parametrize(("wrong", "paths"), [(0, 200), (5, 200), (3, 3), (1, 1), (0, 1)])
def test_the_interval_is_exact(wrong: int, paths: int) -> None:
    right = np.arange(paths) >= wrong
    verdicts = Verdicts(np.zeros(paths, dtype=np.int64), right, right * 1, right * 1)
    found = Identification(verdicts={"a": verdicts}, settings={})
    for level in (0.95, 0.5):
        rate, low, high = found.error_rate("a", level)
        expected = binomtest(wrong, paths).proportion_ci(level, method="exact")
        assert rate == wrong / paths
        assert (low, high) == pytest.approx((expected.low, expected.high))


def test_undecided_paths_are_no_errors_and_have_a_column() -> None:
    verdicts = Verdicts(
        recommended=np.array([-1, 0, 1, -1]),
        correct=np.array([False, True, False, False]),
        pulls=np.array([9, 1, 2, 9]),
        decisions=np.array([9, 1, 2, 9]),
    )
    row = Identification(verdicts={"a": verdicts}, settings={}).summary()["a"]
    assert (row["error"], row["undecided"], row["mean_pulls"]) == (0.25, 2, 5.25)


def test_files_keep_everything_and_are_never_overwritten(tmp_path: Path) -> None:
    policies: dict[str, Policy[Any]] = {"a": LinGapE(norm_bound=2), "b": GAllocation()}
    found = identify(policies, EASY, paths=4, max_pulls=3000)
    file = found.save(tmp_path / "it.npz")
    loaded = Identification.load(file)
    assert loaded.settings == found.settings
    assert list(loaded.verdicts) == ["a", "b"]
    for name, verdicts in found.verdicts.items():
        for part in ("recommended", "correct", "pulls", "decisions"):
            expected = getattr(verdicts, part)
            np.testing.assert_array_equal(getattr(loaded.verdicts[name], part), expected)
            assert getattr(loaded.verdicts[name], part).dtype == expected.dtype
    with pytest.raises(ValueError, match=r"path .* exists already: results are never overwritten"):
        found.save(file)
    with pytest.raises(ValueError, match=r"path .* is not a 'tailproof result 1' file"):
        Result.load(file)
    other = simulate({"a": Uniform()}, EASY, horizon=5, paths=2).save(tmp_path / "result.npz")
    with pytest.raises(ValueError, match=r"path .* is not a 'tailproof identification 1' file"):
        Identification.load(other)


ONE_ARM = LinearBandit(contexts=GivenArms(np.eye(1)), theta=np.ones(1), noise=Cauchy())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"policies": {}}, "policies must be a mapping from names to policies"),
        ({"policies": {"a": 3}}, r"policies\['a'\] must be a policy, got 3"),
        ({"policies": {"a": OFUL()}}, "names no best arm; the policies of tailproof.bestarm do"),
        ({"environment": 3}, "environment must be a bandit to play, such as .*, got 3"),
        ({"environment": orthant(Cauchy())}, "environment must be linear, with fixed arms, got"),
        ({"environment": unit_ball(Cauchy())}, "environment must be linear, with fixed arms, got"),
        (
            {"environment": k_armed(Cauchy(), locations=(1.0, 0.0, 1.0))},
            "environment must be one with a single best arm",
        ),
        ({"environment": ONE_ARM}, "arms must be a whole number of at"),
        ({"paths": 0}, "paths must be a whole number of at least 1 and at most 1e.07, got 0"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"max_pulls": 0}, "max_pulls must be a whole number of at least 1 .*, got 0"),
        (
            {"policies": {"a": Filtered(LinGapE(), repeats=9)}, "max_pulls": 8},
            "max_pulls must be a whole number of at least 9 .*, got 8",
        ),
        ({"delta": 0}, "delta must be a number above 0 and below 1, got 0"),
        ({"delta": 1.5}, "delta must be a number above 0 and below 1, got 1.5"),
        (
            {"policies": {"a": Filtered(LinGapE(), repeats=9)}, "delta": 0.1},
            r"delta cannot replace that of policies\['a'\], which is Filtered",
        ),
    ],
)
def test_bad_input(change: dict[str, Any], words: str) -> None:
    usual: dict[str, Any] = {
        "policies": {"a": LinGapE()},
        "environment": EASY,
        "paths": 2,
        "max_pulls": 50,
    }
    with pytest.raises(ValueError, match=words):
        identify(**(usual | change))


def test_unknown_names_are_refused() -> None:
    found = identify({"a": LinGapE()}, EASY, paths=1, max_pulls=9)
    for ask in (found.errors, found.undecided, found.error_rate):
        with pytest.raises(ValueError, match="policy must be one of a, got 'b'"):
            ask("b")
    with pytest.raises(ValueError, match="level must be a number above 0 and below 1, got 1"):
        found.error_rate("a", 1)


def test_the_figure_has_a_panel_for_each_axis_and_open_markers_where_undecided() -> None:
    done = identify({"a": LinGapE(norm_bound=2)}, EASY, paths=3, max_pulls=5000)
    short = identify({"a": LinGapE(norm_bound=2)}, EASY, paths=3, max_pulls=9)
    figure = pulls_figure({"δ": {0.1: done, 1e-9: short}, "df": {1.0: done, 2.0: done}})
    assert [axes.get_xlabel() for axes in figure.axes] == ["δ", "df"]
    fills = [line.get_markerfacecolor() for line in figure.axes[0].lines[1:]]
    assert fills[0] == "white"  # the smallest δ comes first
    assert fills[1] != "white"
    nothing: list[dict[str, dict[float, Identification]]] = [{}, {"δ": {}}]
    for panels in nothing:
        with pytest.raises(ValueError, match="must be at least one"):
            pulls_figure(panels)


def test_errors_stay_below_delta_with_light_tails() -> None:
    policies: dict[str, Policy[Any]] = {
        "LinGapE": LinGapE(norm_bound=2, delta=0.1),
        "LazyTrackAndStop": LazyTrackAndStop(delta=0.1),
        "RAGE": RAGE(offset=-1, delta=0.1),
        "XYAdaptive": XYAdaptive(delta=0.1),
        "TrackAndStop": TrackAndStop(delta=0.1, threshold="experiments"),
    }
    found = identify(policies, near_tie(Normal(), angle=0.7), paths=60, max_pulls=20_000)
    for name in policies:
        assert found.undecided(name) == 0
        assert few_errors(found, name, 0.1)


def test_errors_stay_below_delta_without_a_mean_only_behind_the_filter() -> None:
    law, bandit = Cauchy(), near_tie(Cauchy(), angle=0.7)
    plain = LinGapE(norm_bound=2, ridge=0.1, delta=0.1)
    filtered = behind_filter(plain, law, block=41, max_pulls=10**5)
    found = identify({"plain": plain, "filtered": filtered}, bandit, paths=100, max_pulls=10**5)
    assert few_errors(found, "filtered", 0.1)
    assert found.undecided("filtered") == 0
    assert not few_errors(found, "plain", 0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("law", "block"), [(Normal(), 1), (Cauchy(), 41), (StudentT(0.5), 101)])
@pytest.mark.parametrize(
    "recipe",
    [LinGapE(norm_bound=2, ridge=0.1), LazyTrackAndStop(), RAGE(offset=-1), XYAllocation()],
    ids=lambda recipe: type(recipe).__name__,
)
def test_the_bars_of_the_hard_instance(recipe: BestArm[Any], law: Noise, block: int) -> None:
    """200 paths each, at δ = 0.05 and an angle of 0.3."""
    policy = behind_filter(recipe, law, block=block, max_pulls=200_000)
    found = identify({"it": policy}, near_tie(law), paths=200, max_pulls=200_000)
    assert found.undecided("it") == 0
    assert few_errors(found, "it", 0.05)


@pytest.mark.slow
def test_no_mean_costs_less_than_three_times_the_pulls() -> None:
    recipe = LinGapE(norm_bound=2, ridge=0.1)
    filtered = behind_filter(recipe, Cauchy(), block=41, max_pulls=200_000)
    heavy = identify({"it": filtered}, near_tie(Cauchy()), paths=200, max_pulls=200_000)
    normal = replace(recipe, noise_scale=math.sqrt(2))
    light = identify({"it": normal}, near_tie(Normal(math.sqrt(2))), paths=200, max_pulls=200_000)
    assert heavy.verdicts["it"].pulls.mean() <= 3 * light.verdicts["it"].pulls.mean()


def test_the_near_tie_is_the_published_instance() -> None:
    world = environments.near_tie(Normal(), dim=3, angle=0.3).start(1, np.random.default_rng(0))
    np.testing.assert_allclose(world.arms[0, 3], [math.cos(0.3), math.sin(0.3), 0])
    assert world.locations[0].tolist() == [2, 0, 0, pytest.approx(2 * math.cos(0.3))]
    bad: list[tuple[Callable[[], object], str]] = [
        (lambda: near_tie(Normal(), dim=1), "dim must be a whole number of at least 2, got 1"),
        (lambda: near_tie(Normal(), angle=0), "angle must be a number above 0 and below 3.14"),
    ]
    for make, words in bad:
        with pytest.raises(ValueError, match=words):
            make()
