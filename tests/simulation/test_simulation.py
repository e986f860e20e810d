"""The loop: accounting, pairing, seeds, filters moved into the noise.

All seeds are fixed. Where a test depends on chance it says how often another seed would fail it;
taken together, less often than once in a thousand.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest
from threadpoolctl import threadpool_info, threadpool_limits

from tailproof import (
    OFUL,
    UCB1,
    AutoFiltered,
    Filtered,
    FixedArm,
    HeavyOFUL,
    LinTS,
    Mean,
    MeanOfMedians,
    Median,
    MedianOfMeans,
    Policy,
    RobustUCB,
    TruncatedMean,
    Uniform,
    chunking,
    simulate,
)
from tailproof.environments import streams
from tailproof.environments.linear import (
    FreshArms,
    LinearBandit,
    k_armed,
    neutral,
    orthant,
)
from tailproof.noise import Cauchy, Normal, PerArm, Rademacher, Stable, StudentT
from tailproof.results.provenance import provenance
from tailproof.simulation import cells, loop

ARMS = k_armed(Cauchy(), locations=(0.0, 0.25, 1.0))


def test_regret_is_charged_per_pull() -> None:
    result = simulate({"worst": FixedArm(arm=0)}, ARMS, horizon=10, paths=2, checkpoints=10)
    np.testing.assert_allclose(result.curves["worst"].regret, [np.arange(1, 11)] * 2)


def test_a_last_decision_that_does_not_fit_is_charged() -> None:
    policy = Filtered(FixedArm(arm=1), repeats=4)
    result = simulate({"a": policy}, ARMS, horizon=10, paths=1, checkpoints=[3, 4, 7, 9])
    assert result.pulls.tolist() == [3, 4, 7, 9, 10]
    np.testing.assert_allclose(result.curves["a"].regret[0], 0.75 * result.pulls)
    assert result.curves["a"].decisions.tolist() == [0, 1, 1, 2, 2]


def test_the_error_is_that_of_the_decisions_that_fit() -> None:
    policy = Filtered(OFUL(), repeats=15, estimator=Median())
    bandit = neutral(Cauchy(), arms=5, dim=3)
    fits, more = (
        simulate({"it": policy}, bandit, horizon=horizon, paths=4).curves["it"].error
        for horizon in (15, 20)
    )
    assert fits is not None
    assert more is not None
    np.testing.assert_array_equal(fits[:, -1], more[:, -1])


def test_a_horizon_shorter_than_one_decision_is_played_and_charged() -> None:
    with pytest.warns(UserWarning, match="decides once, without any knowledge, and learns nothing"):
        result = simulate({"a": Filtered(OFUL(), repeats=100)}, ARMS, horizon=7, paths=3)
    assert result.curves["a"].decisions.max() == 0
    assert (np.diff(result.curves["a"].regret, axis=1) >= 0).all()


def test_every_policy_meets_the_same_arms() -> None:
    """Regret of a fixed first arm shows the contexts; a filter holds each of them longer."""
    bandit = neutral(Normal(), arms=4, dim=3)
    held = Filtered(FixedArm(), repeats=5)
    result = simulate(
        {"one": FixedArm(), "five": held}, bandit, horizon=50, paths=3, checkpoints=50
    )
    gaps = {name: np.diff(c.regret, axis=1, prepend=0) for name, c in result.curves.items()}
    np.testing.assert_allclose(gaps["five"][:, ::5], gaps["one"][:, :10])
    np.testing.assert_allclose(gaps["five"].reshape(3, 10, 5).std(axis=2), 0, atol=1e-9)


def test_a_further_policy_changes_no_other_curve() -> None:
    bandit = neutral(Cauchy(), arms=4, dim=3)
    settings: dict[str, Any] = {"horizon": 60, "paths": 5, "seed": 3}
    alone = simulate({"OFUL": OFUL()}, bandit, **settings)
    both = simulate({"u": Uniform(), "OFUL": OFUL()}, bandit, **settings)
    np.testing.assert_array_equal(alone.curves["OFUL"].regret, both.curves["OFUL"].regret)
    other = simulate({"OFUL": OFUL()}, bandit, **{**settings, "seed": 4})
    assert not np.array_equal(alone.curves["OFUL"].regret, other.curves["OFUL"].regret)


def test_workers_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "CHUNK", 3)
    policies: dict[str, Policy[Any]] = {"OFUL": OFUL(), "UCB1": UCB1()}
    bandit = neutral(Cauchy(), arms=4, dim=3, fresh=False)
    steps: list[tuple[int, int]] = []
    one, two = (
        simulate(
            policies,
            bandit,
            horizon=40,
            paths=8,
            workers=workers,
            progress=lambda done, total: steps.append((done, total)),
        )
        for workers in (1, 2)
    )
    assert steps == [(i, 6) for i in range(7)] * 2
    for name in policies:
        assert one.curves[name].regret.shape == (8, 40)
        np.testing.assert_array_equal(one.curves[name].regret, two.curves[name].regret)


CASES: dict[str, tuple[Policy[Any], LinearBandit]] = {
    "fresh arms": (OFUL(), neutral(Cauchy(), arms=7, dim=3)),
    "noise of two numbers each": (UCB1(), k_armed(Stable(1.5), locations=(0, 1))),
    "even blocks": (
        Filtered(OFUL(), repeats=8, estimator=MeanOfMedians(block=4)),
        orthant(StudentT(1)),
    ),
    "a tuned filter": (AutoFiltered(UCB1()), k_armed(Cauchy(), locations=(0, 1))),
    "a long past": (
        HeavyOFUL(decisions=50, epsilon=1, moment_bound=1, bonus=1e-3),
        neutral(StudentT(3), arms=4, dim=3, fresh=False),
    ),
    "robust means": (RobustUCB(estimator="catoni"), k_armed(Normal(), locations=(0, 1))),
}


@pytest.mark.parametrize("case", CASES)
def test_the_size_of_the_cache_decides_nothing(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    policy, bandit = CASES[case]
    settings: dict[str, Any] = {"horizon": 50 * policy.pulls, "paths": 10}
    usual = simulate({"a": policy}, bandit, **settings).curves["a"].regret
    for floats in (1, 1 << 9, 1 << 24):
        monkeypatch.setattr(chunking, "_FLOATS", floats)
        other = simulate({"a": policy}, bandit, **settings).curves["a"].regret
        np.testing.assert_array_equal(usual, other)


def test_how_much_is_drawn_at_a_time_is_part_of_what_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So the constant is no cache size: this fails where it may be changed without a notice."""
    bandit = neutral(Stable(1.5), arms=4, dim=3)
    usual = simulate({"a": OFUL()}, bandit, horizon=50, paths=30).curves["a"].regret
    monkeypatch.setattr(streams, "_TOGETHER", 1 << 12)
    other = simulate({"a": OFUL()}, bandit, horizon=50, paths=30).curves["a"].regret
    assert not np.array_equal(usual, other)


def test_streams_are_told_apart_by_their_whole_name() -> None:
    """Under crc32 these two names were one."""
    bandit = neutral(Cauchy(), arms=4, dim=3)
    policies = {"plumless": Uniform(), "buckeroo": Uniform()}
    result = simulate(policies, bandit, horizon=50, paths=3)
    first, second = (result.curves[name].regret for name in policies)
    assert not np.array_equal(first, second)
    numbers = [
        streams.stream(seed, name, chunk).random()
        for seed in (0, 1, 2**40)
        for name in ("noise", "environment", "policy a", "policy b")
        for chunk in (0, 1)
    ]
    assert len(set(numbers)) == len(numbers)
    sequence: Any = streams.stream(7, "noise", 3).bit_generator.seed_seq
    digest = sha256(b"noise").hexdigest()  # all of it, in words of 32 bits
    words = [int(digest[i : i + 8], 16) for i in range(0, 64, 8)]
    assert (sequence.entropy, sequence.spawn_key) == (7, (*words, 3))


@dataclass(frozen=True, kw_only=True)
class Counting(FixedArm):
    """A policy that looks at how many threads linear algebra may use."""

    seen: Any

    def _choose(self, state: Any, arms: Any, rng: Any) -> Any:
        self.seen.update(_blas_threads())
        return super()._choose(state, arms, rng)


def _blas_threads() -> set[int]:
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


def test_linear_algebra_has_one_thread_in_a_cell() -> None:
    seen: set[int] = set()
    with threadpool_limits(limits=2, user_api="blas"):
        simulate({"a": Counting(seen=seen)}, ARMS, horizon=3, paths=1)
        assert _blas_threads() == {2}
    assert seen == {1}


def test_provenance_names_the_kernels() -> None:
    found = provenance()
    kernels = [lib["architecture"] for lib in threadpool_info() if "architecture" in lib]
    assert all(kernel in found["blas"] for kernel in kernels)
    assert found["blas"]
    found.clear()
    assert provenance()


def test_full_chunks_do_not_depend_on_the_number_of_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "CHUNK", 4)
    few, many = (simulate({"o": OFUL()}, ARMS, horizon=30, paths=paths) for paths in (4, 9))
    np.testing.assert_array_equal(few.curves["o"].regret, many.curves["o"].regret[:4])


def test_estimation_error_is_recorded_where_there_is_an_estimate() -> None:
    """The error is 0.066 ± 0.016 on a path: 0.3 is 14 standard deviations away."""
    bandit = orthant(Normal(0.1))
    result = simulate({"OFUL": OFUL(), "u": Uniform()}, bandit, horizon=400, paths=4, checkpoints=8)
    assert result.curves["u"].error is None
    error = result.curves["OFUL"].error
    assert error is not None
    assert error.shape == (4, 8)
    assert (error[:, -1] < 0.3).all()
    unlearned = simulate(
        {"f": Filtered(OFUL(), repeats=50)}, bandit, horizon=100, paths=2, checkpoints=[49]
    )
    assert unlearned.curves["f"].error is not None
    np.testing.assert_allclose(unlearned.curves["f"].error[:, 0], 1)


@dataclass(frozen=True, kw_only=True)
class Listening(FixedArm):
    """A policy that keeps what it was told."""

    heard: Any

    def _learn(self, state: Any, arms: Any, chosen: Any, rewards: Any) -> None:
        self.heard.append(rewards.copy())


@pytest.mark.parametrize(
    "wrap",
    [
        lambda p: Filtered(p, repeats=15, estimator=Median()),
        lambda p: Filtered(p, repeats=30, estimator=MeanOfMedians(block=6)),
        lambda p: Filtered(p, repeats=21, estimator=MedianOfMeans(blocks=7)),
        lambda p: Filtered(p, repeats=9, estimator=TruncatedMean(threshold=3)),
        lambda p: Filtered(
            Filtered(p, repeats=4, estimator=Median()), repeats=9, estimator=Median()
        ),
        lambda p: Filtered(
            Filtered(p, repeats=3, estimator=TruncatedMean(threshold=1)),
            repeats=5,
            estimator=Median(),
        ),
        lambda p: Filtered(Filtered(p, repeats=3, estimator=Mean()), repeats=7, estimator=Median()),
    ],
)
def test_a_filter_moved_into_the_noise_changes_no_law(wrap: Any) -> None:
    """False-alarm rate 1e-4 for each of the seven compositions."""
    heard: list[Any] = []
    policy = wrap(Listening(arm=2, heard=heard))
    cost = policy.pulls
    simulate({"a": policy}, ARMS, horizon=10 * cost, paths=300)
    rng = np.random.default_rng(0)
    direct: list[Any] = []
    outer = wrap(Listening(arm=2, heard=direct))
    state = outer.init(3000, 3, 3)
    raw = 1.0 + rng.standard_cauchy((3000, cost))
    outer.learn(state, np.tile(np.eye(3), (3000, 1, 1)), np.full(3000, 2), raw)
    assert kstest(np.concatenate(heard).ravel(), direct[0].ravel()).pvalue > 1e-4


def test_a_filter_of_filtered_noise_keeps_their_order() -> None:
    """Medians of means of three signs are ±1 or ±⅓; a median of signs would be ±1."""
    law = loop._Reduced(Rademacher(), Mean(), 3)
    drawn = law.sample_median(3, np.random.default_rng(0), (500,))
    assert set((3 * drawn).round().tolist()) == {-3, -1, 1, 3}


def test_huge_filters_cost_no_memory() -> None:
    policy = Filtered(OFUL(), repeats=10**6, estimator=MeanOfMedians(block_exponent=0.75))
    result = simulate({"a": policy}, ARMS, horizon=10**7, paths=20)
    assert result.curves["a"].decisions[-1] == 10


@pytest.mark.parametrize("df", [3, 1, 0.5])
def test_the_filter_learns_where_there_is_no_mean(df: float) -> None:
    """Over seeds the ratio is at most 0.10 ± 0.01: 0.25 is 17 standard deviations away."""
    policies: dict[str, Policy[Any]] = {
        "filtered": Filtered(OFUL(noise_scale=0.5), repeats=15, estimator=Median()),
        "uniform": Uniform(),
    }
    bandit = neutral(StudentT(df), arms=10, dim=4)
    result = simulate(policies, bandit, horizon=3000, paths=20, seed=1)
    assert (result.mean("filtered")[-1] < 0.25 * result.mean("uniform")[-1]).all()


def test_infinite_rewards_are_survived() -> None:
    """Student-t with 0.01 degrees of freedom gives infinities all the time."""
    policies: dict[str, Policy[Any]] = {
        "OFUL": OFUL(),
        "UCB1": UCB1(),
        "f": Filtered(OFUL(), repeats=9),
    }
    result = simulate(policies, k_armed(StudentT(0.01), locations=(0, 1)), horizon=90, paths=10)
    assert all(np.isfinite(curves.regret).all() for curves in result.curves.values())


def test_whole_numbers_of_numpy_are_welcome(tmp_path: Path) -> None:
    one: Any = np.int64(1)
    result = simulate({"u": Uniform()}, ARMS, horizon=one, paths=one, seed=one, checkpoints=one)
    result.save(tmp_path / "r.npz")


def test_nested_filters_survive_opposite_infinities() -> None:
    policy = Filtered(
        Filtered(OFUL(), repeats=2, estimator=Median()), repeats=2, estimator=Median()
    )
    simulate({"a": policy}, k_armed(StudentT(0.0005), locations=(0, 1)), horizon=80, paths=10)


@pytest.mark.parametrize(
    ("policy", "bandit"),
    [
        (UCB1(bonus=0.7), ARMS),
        (LinTS(), neutral(Normal(), arms=4, dim=3)),
        (AutoFiltered(UCB1()), k_armed(PerArm((Normal(), Cauchy())), locations=(0, 1))),
    ],
)
def test_the_loop_plays_as_the_checked_calls_do(policy: Policy[Any], bandit: LinearBandit) -> None:
    """The loop trusts what it made itself; who plays by hand is checked at every call."""
    paths, decisions = 5, 40
    found = simulate({"a": policy}, bandit, horizon=decisions * policy.pulls, paths=paths, seed=3)
    own, eta, rng = (streams.stream(3, name, 0) for name in ("policy a", "noise", "environment"))
    world, state = bandit.start(paths, rng), policy.init(paths, *_size(bandit))
    ahead = (streams.drawn_together(paths * policy.pulls), paths)
    draw = loop._drawing(bandit.noise, eta, policy.pulls, ahead)
    total = np.zeros(paths)
    for t in range(decisions):
        chosen = policy.choose(state, world.arms, own)
        location = np.take_along_axis(world.locations, chosen[:, None], axis=1)
        rewards = location + draw(chosen, t * policy.pulls)
        policy.learn(state, world.arms, chosen, rewards)
        total += (world.best - location[:, 0]) * policy.pulls
        world.advance()
    np.testing.assert_array_equal(found.curves["a"].regret[:, -1], total)
    assert state.decisions.tolist() == [decisions] * paths


def _size(bandit: LinearBandit) -> tuple[int, int]:
    return bandit.contexts.arms, bandit.contexts.dim


@dataclass(frozen=True)
class Undefined(Normal):
    """A law of someone's own that is broken: now and then it gives NaN."""

    def _sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        drawn = super()._sample(rng, shape)
        return np.where(drawn > 2, np.nan, drawn)


@dataclass(frozen=True)
class OneForAll(Normal):
    """A law of someone's own that is broken: all paths get the same few numbers."""

    def _sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        return rng.standard_normal(1)


@pytest.mark.parametrize("delay", [0, 2])
def test_noise_of_another_shape_is_refused(delay: int) -> None:
    bandit = k_armed(OneForAll(), locations=(0, 1))
    with pytest.raises(ValueError, match=r"noise must draw samples of the shape.*drew \(1,\)"):
        simulate({"a": UCB1()}, bandit, horizon=50, paths=4, delay=delay)


@pytest.mark.parametrize("law", [Undefined(), PerArm((Undefined(), Normal()))])
def test_noise_that_is_not_a_number_is_refused(law: Any) -> None:
    """A value above 2 is missing among 2000 with probability 1e-20."""
    with pytest.raises(ValueError, match="noise must not draw NaN, as"):
        simulate({"a": UCB1()}, k_armed(law, locations=(0, 1)), horizon=200, paths=10)


@dataclass(frozen=True, kw_only=True)
class Astray(FixedArm):
    """A policy of someone's own that is broken: it chooses an arm there is not."""

    def _choose(self, state: Any, arms: Any, rng: Any) -> Any:
        return np.full(len(arms), -1)


def test_a_choice_that_is_no_arm_is_refused() -> None:
    with pytest.raises(ValueError, match="chosen must be whole numbers from 0 to 2"):
        simulate({"a": Astray()}, ARMS, horizon=20, paths=2)


@dataclass(frozen=True, kw_only=True)
class Spoilt(UCB1):
    """One that divides by zero: its means are NaN, so that it plays chance."""

    def _learn(self, state: Any, arms: Any, chosen: Any, rewards: Any) -> None:
        super()._learn(state, arms, chosen, rewards)
        state.sums[0] = np.nan


def test_a_state_that_is_not_a_number_is_said() -> None:
    with pytest.warns(UserWarning, match=r"policy 'a' has NaN in its state at the end \(sums\)"):
        simulate({"a": Spoilt()}, ARMS, horizon=20, paths=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simulate({"a": UCB1()}, ARMS, horizon=20, paths=2)


@dataclass(frozen=True, kw_only=True)
class Late(FixedArm):
    """One that goes astray at its fifth decision, to the first arm of the next path."""

    choice: Any = None

    def _choose(self, state: Any, arms: Any, rng: Any) -> Any:
        right = np.zeros(len(arms), dtype=np.int64)
        return self.choice(right) if state.decisions.max() == 4 else right


@pytest.mark.parametrize(
    "choice",
    [
        lambda right: np.where(np.arange(2) == 0, 3, right),
        lambda right: right - 1,
        lambda right: right[:1],
        lambda right: right * 1.0,
        lambda right: None,
    ],
)
def test_a_policy_of_a_user_is_watched_at_every_decision(choice: Any) -> None:
    with pytest.raises(ValueError, match="for each of 2 paths; policy 'mine' chose"):
        simulate({"mine": Filtered(Late(choice=choice), repeats=1)}, ARMS, horizon=20, paths=2)


@dataclass(frozen=True, kw_only=True)
class Growing(FreshArms):
    """Arms that are in order for ten draws, and then too long."""

    def draw(self, rng: np.random.Generator, paths: int) -> Any:
        x = super().draw(rng, paths)
        x[10:] *= 1e80
        return x


def test_arms_too_long_for_a_policy_are_refused() -> None:
    contexts = Growing(law="sphere", arms=3, dim=2)
    bandit = LinearBandit(contexts=contexts, theta="sphere", noise=Cauchy())
    simulate({"a": OFUL()}, bandit, horizon=5, paths=2)
    with pytest.raises(ValueError, match="arms must be finite, no longer than"):
        simulate({"a": OFUL()}, bandit, horizon=6, paths=2)


def test_the_error_of_no_parameter_is_undefined() -> None:
    bandit = k_armed(Cauchy(), locations=(0.0, 0.0))
    error = simulate({"a": OFUL()}, bandit, horizon=5, paths=1).curves["a"].error
    assert error is not None
    assert np.isnan(error).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"horizon": 0}, "horizon must be a whole number of at least 1 .*, got 0"),
        ({"paths": 0}, "paths"),
        ({"paths": 2.5}, "paths"),
        ({"seed": -1}, "seed"),
        ({"horizon": 10**19}, r"horizon must be a whole number of .* at most 1e\+15, got 1000"),
        ({"paths": 10**12}, r"paths must be a whole number of .* at most 1e\+07, got 1000"),
        ({"workers": -1}, "workers"),
        ({"workers": 100_000}, "workers must be a whole number of at least 0 and at most"),
        ({"engine": "x"}, "engine must be one of serial, processes, dask, ray, compiled, cuda"),
        ({"policies": [Uniform()]}, r"policies must be a mapping from .*, got \[Uniform"),
        ({"policies": {3: Uniform()}}, "a name in policies must be a string, got 3"),
        ({"checkpoints": 0}, "checkpoints"),
        ({"checkpoints": 2.5}, "checkpoints"),
        ({"checkpoints": None}, "checkpoints"),
        (
            {"checkpoints": [5, 101]},
            "checkpoints must be a whole number of at least 1 and at most 100",
        ),
        ({"policies": {}}, "policies must be a mapping from names to policies, such as"),
        ({"policies": {"a": "oful"}}, r"policies\['a'\] must be a policy, got 'oful'"),
        ({"policies": {"a": FixedArm(arm=3)}}, "arm=3 does not exist: with 3 arms use 0 to 2"),
        ({"environment": "paper"}, "environment must be a bandit to play, such as .*, got 'paper'"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], words: str) -> None:
    settings: dict[str, Any] = {
        "policies": {"a": Uniform()},
        "environment": ARMS,
        "horizon": 100,
        "paths": 2,
    }
    with pytest.raises(ValueError, match=words):
        simulate(**{**settings, **change})


@pytest.mark.parametrize(
    ("horizon", "checkpoints", "expected"),
    [(10, 5, [2, 4, 6, 8, 10]), (3, 200, [1, 2, 3]), (7, [2], [2, 7]), (5, [5, 1, 1], [1, 5])],
)
def test_checkpoints(horizon: int, checkpoints: int | Sequence[int], expected: list[int]) -> None:
    result = simulate({"u": Uniform()}, ARMS, horizon=horizon, paths=1, checkpoints=checkpoints)
    assert result.pulls.tolist() == expected


@pytest.mark.slow
def test_regret_bars_on_the_neutral_environment() -> None:
    """Cauchy noise, 10⁴ pulls, 100 paths: the filter learns, OFUL alone does not.

    Measured 475 ± 9 and 5190 ± 130: both bars are more than nine standard errors away.
    """
    policies: dict[str, Policy[Any]] = {
        "OFUL": OFUL(),
        "filtered": Filtered(OFUL(noise_scale=0.45), repeats=15, estimator=MeanOfMedians(block=15)),
    }
    result = simulate(policies, neutral(Cauchy()), horizon=10_000, paths=100, workers=2)
    assert result.mean("filtered")[-1] < 600
    assert result.mean("OFUL")[-1] > 4000
    assert math.isclose(result.curves["filtered"].decisions[-1], 666)
