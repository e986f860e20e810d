"""The seams between wrappers and what they wrap: nothing is lost, in any order."""

import copy
import inspect
import io
import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from playing import offers, play

from tailproof import (
    OFUL,
    UCB1,
    AutoFiltered,
    Filtered,
    FromRegret,
    LinStudentUCB,
    LinTS,
    Mean,
    Median,
    MedianUCB,
    Policy,
    RobustUCB,
    State,
    SupBMM,
    ThompsonSampling,
    Wrapper,
    bestarm,
    calibrate,
    testing,
)
from tailproof.noise import Cauchy
from tailproof.wrappers.base import altered, innermost

MEDIAN: Any = {"repeats": 3, "estimator": Median()}
NESTED: list[Wrapper[Any]] = [
    AutoFiltered(AutoFiltered(OFUL(), repeats=3, settle=2), repeats=3, settle=4),
    FromRegret(FromRegret(OFUL(), decisions=4), decisions=7),
    Filtered(AutoFiltered(LinTS(), repeats=3, settle=3), **MEDIAN),
    AutoFiltered(Filtered(UCB1(), **MEDIAN), repeats=3, settle=3),
    FromRegret(AutoFiltered(MedianUCB(), repeats=3, settle=3), decisions=9),
    AutoFiltered(FromRegret(OFUL(), decisions=5), repeats=3, settle=3),
    Filtered(FromRegret(Filtered(OFUL(), **MEDIAN), decisions=5), repeats=2, estimator=Mean()),
    AutoFiltered(bestarm.LinGapE(), repeats=3, settle=3),
    AutoFiltered(
        SupBMM(horizon=99, epsilon=1, moment_bound=1, replicates=3, layered=False),
        repeats=3,
        settle=3,
    ),
]


def table(policy: Policy[Any], decisions: int, paths: int, seed: int = 1) -> tuple[Any, Any]:
    """Return arms, four of dimension three, and Cauchy rewards for every one of their pulls."""
    rng = np.random.default_rng(seed)
    rewards = rng.standard_cauchy((decisions, paths, 4, policy.pulls))
    return offers(decisions, paths, 4, 3, seed), rewards


def assert_same(first: Any, second: Any, but: str | None = None) -> None:
    """Two states hold the same arrays, bit for bit; `but` may name some that do not count."""
    one, two = first.to_arrays(), second.to_arrays()
    assert one.keys() == two.keys()
    for name, value in one.items():
        if but is None or but not in name:
            np.testing.assert_array_equal(two[name], value, err_msg=name)


def test_a_wrapper_forwards_the_whole_contract() -> None:
    """Whatever a policy may answer for itself, a wrapper asks the policy inside."""
    open_methods = {
        name
        for name, thing in vars(Policy).items()
        if not name.startswith("_")
        and (inspect.isfunction(thing) or isinstance(thing, property))
        and not getattr(thing, "__final__", False)
    }
    assert {"propose", "estimate", "recommend", "with_scale", "pulls"} <= open_methods
    assert open_methods <= vars(Wrapper).keys()


@dataclass(eq=False)
class Heard(State):
    """How probable the last choice was said to be."""

    propensity: Any


@dataclass(frozen=True)
class Listener(Policy[Heard]):
    """A policy that wants to know how probable its choice was: 3/4 for the last arm."""

    uses_propensity = True

    def _init(self, paths: int, arms: int, dim: int) -> Heard:
        decisions = np.zeros(paths, dtype=np.int64)
        return Heard(arms=arms, dim=dim, decisions=decisions, propensity=np.zeros(paths))

    def _choose(self, state: Heard, arms: Any, rng: np.random.Generator) -> Any:
        return np.where(rng.random(state.paths) < 3 / 4, arms.shape[1] - 1, 0)

    def _propensities(self, state: Heard, arms: Any) -> Any:
        share = np.zeros(arms.shape[:2])
        share[:, 0], share[:, -1] = 1 / 4, 3 / 4
        return share

    def _learn(
        self, state: Heard, arms: Any, chosen: Any, rewards: Any, propensity: Any = None
    ) -> None:
        state.propensity = propensity


@pytest.mark.parametrize(
    "wrap",
    [
        lambda policy: Filtered(policy, **MEDIAN),
        lambda policy: AutoFiltered(policy, repeats=3, settle=1),
        lambda policy: AutoFiltered(Filtered(policy, **MEDIAN), repeats=3, settle=4),
        lambda policy: FromRegret(policy, decisions=5),
    ],
)
def test_propensities_pass_through(wrap: Callable[[Any], Any]) -> None:
    policy, arms = wrap(Listener()), np.ones((2, 3, 1))
    state, rewards = policy.init(2, 3, 1), np.ones((2, policy.pulls))
    assert policy.propensities(state, arms).tolist() == [[0.25, 0, 0.75]] * 2
    for told, heard in ((None, [0.25, 0.75]), ([0.5, 0.125], [0.5, 0.125]), (None, [0.25, 0.75])):
        policy.learn(state, arms, [0, 2], rewards, told)
        inner = state
        while hasattr(inner, "inner"):
            inner = inner.inner
        assert inner.propensity.tolist() == heard
    before = state.to_arrays()
    with pytest.raises(ValueError, match="propensity must be above 0 and at most 1"):
        policy.learn(state, arms, [0, 1], rewards)  # the middle arm is never chosen
    assert all(np.array_equal(before[name], a) for name, a in state.to_arrays().items())


@pytest.mark.parametrize("check", testing.POLICY_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("policy", NESTED, ids=repr)
def test_wrappers_nest_in_any_order(policy: Any, check: Callable[[object], None]) -> None:
    check(policy)


@pytest.mark.parametrize("policy", NESTED, ids=repr)
def test_states_pickle_copy_and_restore(policy: Any) -> None:
    """Each goes on bit for bit, and the original does not notice."""
    arms, rewards = table(policy, 14, 2)
    state, _ = play(policy, arms[:4], rewards[:4])
    before = state.to_arrays()
    file = io.BytesIO()
    np.savez(file, **before)
    file.seek(0)
    with np.load(file) as saved:
        others = [policy.restore(dict(saved))]
    others += [pickle.loads(pickle.dumps(state)), copy.deepcopy(state), state.copy()]
    ends = [
        play(policy, arms[4:], rewards[4:], np.random.default_rng(5), other) for other in others
    ]
    for name, value in before.items():
        np.testing.assert_array_equal(state.to_arrays()[name], value)
    end, trace = play(policy, arms[4:], rewards[4:], np.random.default_rng(5), state)
    for other, same in ends:
        assert_same(end, other)
        np.testing.assert_array_equal(trace, same)


@pytest.mark.parametrize("policy", NESTED, ids=repr)
def test_recipes_pickle_and_print_themselves(policy: Any) -> None:
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert replace(policy) == policy
    assert repr(innermost(policy)) in repr(policy)


def test_one_setting_is_replaced() -> None:
    policy = Filtered(OFUL(), **MEDIAN)
    assert replace(policy, repeats=31) == Filtered(OFUL(), repeats=31, estimator=Median())
    assert replace(policy, repeats=31).pulls == 31
    assert replace(AutoFiltered(OFUL()), repeats=9, settle=2).pulls == 9
    assert replace(FromRegret(OFUL(), decisions=3), decisions=8).decisions == 8
    with pytest.raises(ValueError, match=r"repeats must be a whole number of at least 1.*, got 0"):
        replace(policy, repeats=0)
    inside = altered(FromRegret(policy, decisions=3), bonus=0.5)
    assert inside == FromRegret(Filtered(OFUL(bonus=0.5), **MEDIAN), decisions=3)


def test_a_state_of_another_inside_is_refused() -> None:
    """The wrapper's name is the same; what it wraps is not."""
    oful, lin_ts = Filtered(OFUL(), **MEDIAN), Filtered(LinTS(), **MEDIAN)
    state, arms = oful.init(1, 4, 3), offers(1, 1, 4, 3)[0]
    with pytest.raises(ValueError, match="LinTS"):
        lin_ts.choose(state, arms, np.random.default_rng(0))
    with pytest.raises(ValueError, match="policy must be LinTS, got 'OFUL'"):
        lin_ts.restore(state.to_arrays())
    with pytest.raises(ValueError, match="settle must be 4, got"):
        AutoFiltered(OFUL(), settle=4).restore(AutoFiltered(OFUL()).init(1, 4, 3).to_arrays())


def test_a_refused_lesson_leaves_every_layer_as_it_was() -> None:
    for policy in NESTED:
        arms, rewards = table(policy, 4, 2)
        state, _ = play(policy, arms[:3], rewards[:3])
        before = state.copy()
        for bad in (np.full_like(arms[3], math.nan), np.full_like(arms[3], 1e200)):
            with pytest.raises(ValueError, match="arms must be"):
                policy.learn(state, bad, [0, 1], rewards[3, :, 0])
        with pytest.raises(ValueError, match="rewards must be"):
            policy.learn(state, arms[3], [0, 1], np.full_like(rewards[3, :, 0], math.nan))
        assert_same(before, state)


# What passes through


def test_a_self_tuning_filter_passes_the_answer_through() -> None:
    """Cauchy rewards of scale 50, gaps of at least ten units.

    A wrong answer has a probability of at most δ = 1e-6 in each of 20 paths.
    """
    inside = bestarm.LinGapE(delta=1e-6, norm_bound=60.0)
    policy, rng = AutoFiltered(inside, repeats=21), np.random.default_rng(2)
    state, arms = policy.init(20, 3, 3), np.tile(np.eye(3), (20, 1, 1))
    assert policy.recommend(state).tolist() == [-1] * 20
    locations = np.array([0.0, 600.0, 300.0])
    for _ in range(400):
        chosen = policy.choose(state, arms, rng)
        rewards = locations[chosen][:, None] + 50 * rng.standard_cauchy((20, 21))
        policy.learn(state, arms, chosen, rewards)
        if policy.stopped(state).all():
            break
    assert policy.recommend(state).tolist() == [1] * 20


@pytest.mark.parametrize(
    "policy",
    [
        FromRegret(OFUL(), decisions=9),
        FromRegret(FromRegret(OFUL(), decisions=2), decisions=9),
        Filtered(FromRegret(OFUL(), decisions=9), repeats=1),
    ],
    ids=repr,
)
def test_proposals_pass_through(policy: Any) -> None:
    plain = OFUL()
    state, other = policy.init(3, 1, 2), plain.init(3, 1, 2)
    for t in range(5):
        x = policy.propose(state, np.random.default_rng(t))
        np.testing.assert_array_equal(x, plain.propose(other, np.random.default_rng(t)))
        rewards = x[:, :1] + 0.1 * t
        policy.learn(state, x[:, None], [0] * 3, rewards)
        plain.learn(other, x[:, None], [0] * 3, rewards)


def test_the_outermost_answer_counts() -> None:
    """Each counts the plays of its own time: four decisions and then seven."""
    policy = FromRegret(FromRegret(UCB1(), decisions=4), decisions=7)
    arms, rewards = table(policy, 7, 1)
    for decisions in (4, 6, 7):
        state, trace = play(policy, arms[:decisions], rewards[:decisions])
        most = np.bincount(trace[:, 0], minlength=4)
        assert state.plays[0].tolist() == most.tolist()
        assert policy.recommend(state).tolist() == [most.argmax() if decisions == 7 else -1]
        assert policy.policy.recommend(state.inner).tolist() == [
            np.bincount(trace[:4, 0], minlength=4).argmax()
        ]


def test_estimates_are_in_the_units_of_the_rewards_through_two_filters() -> None:
    """Of 60 other paths the ridge took off up to 17, and the standard deviation was 2.5.

    False alarms below 1e-6.
    """
    theta, policy = np.array([300.0, -400.0, 0.0]), AutoFiltered(AutoFiltered(OFUL(), repeats=5))
    rng, arms = np.random.default_rng(0), offers(80, 2, 4, 3)
    noise = 10 * rng.standard_cauchy((80, 2, 4, policy.pulls))
    state, _ = play(policy, arms, (arms @ theta)[..., None] + noise)
    found = policy.estimate(state)
    assert found is not None
    np.testing.assert_allclose(found, np.tile(theta, (2, 1)), atol=30)
    nothing = AutoFiltered(UCB1())
    assert nothing.estimate(nothing.init(1, 2, 1)) is None


# The scale that a filter leaves


@pytest.mark.parametrize(
    "policy",
    [
        bestarm.LinGapE(),
        bestarm.RAGE(),
        bestarm.TrackAndStop(),
        ThompsonSampling(),
        Filtered(bestarm.LinGapE(), **MEDIAN),
        Filtered(Filtered(bestarm.LinGapE(), **MEDIAN), **MEDIAN),
        FromRegret(OFUL(), decisions=5),
        Filtered(FromRegret(LinTS(bonus=0.1), decisions=5), **MEDIAN),
    ],
    ids=repr,
)
def test_the_scale_reaches_the_recipe_inside(policy: Policy[Any]) -> None:
    settings: Any = {"noise": Cauchy(10), "pulls": 41}
    filtered, scale = Filtered.calibrated(policy, **settings), calibrate(**settings).scale
    assert scale == pytest.approx(2.68, abs=0.005)
    assert innermost(filtered).noise_scale == scale
    assert filtered.policy == altered(policy, noise_scale=scale)
    assert filtered.repeats == 41


@pytest.mark.parametrize(
    "policy",
    [
        UCB1(),
        MedianUCB(),
        RobustUCB(),
        LinStudentUCB(),
        Filtered(UCB1(), **MEDIAN),
        FromRegret(UCB1(), decisions=4),
    ],
    ids=repr,
)
def test_a_policy_without_a_scale_says_what_to_do(policy: Policy[Any]) -> None:
    words = (
        r"^policy must be one with a noise scale, such as OFUL, got \w+\(.*\); "
        "AutoFiltered brings the rewards of any policy to scale one$"
    )
    with pytest.raises(ValueError, match=words):
        Filtered.calibrated(policy, noise=Cauchy(10), pulls=41)
    with pytest.raises(ValueError, match=words):
        policy.with_scale(2.0)


@pytest.mark.parametrize(
    "policy",
    [AutoFiltered(OFUL()), Filtered(AutoFiltered(OFUL()), **MEDIAN)],
    ids=repr,
)
def test_a_self_tuning_filter_refuses_a_scale(policy: Policy[Any]) -> None:
    with pytest.raises(ValueError, match="policy must be one that does not learn its noise scale"):
        policy.with_scale(2.0)
    with pytest.raises(ValueError, match="policy must be one that does not learn its noise scale"):
        Filtered.calibrated(policy, noise=Cauchy(10), pulls=41)


# Paths of different age

AGED: list[Policy[Any]] = [
    *NESTED,
    *(
        AutoFiltered(policy, repeats=3, settle=8)
        for policy in (OFUL(), LinTS(), UCB1(), MedianUCB(), RobustUCB(estimator="truncated"))
    ),
]


@pytest.mark.parametrize("policy", AGED, ids=repr)
def test_each_path_is_treated_at_its_own_age(policy: Policy[Any]) -> None:
    """Paths of twelve, three and one decisions go on together as each goes on alone."""
    arms, rewards = table(policy, 30, 3)
    ages, places = (12, 3, 1), [slice(0, 1), slice(1, 2), slice(2, 3)]
    alone = [
        play(policy, arms[:n, p], rewards[:n, p])[0] for n, p in zip(ages, places, strict=True)
    ]
    together = policy.init(3, 4, 3)
    for path, state in enumerate(alone):
        together.put(np.array([path]), state)
    for t in range(12, 30):
        chosen = np.array([t % 4, t % 3, t % 2])
        lesson = rewards[t, [0, 1, 2], chosen]
        policy.learn(together, arms[t], chosen, lesson)
        apart = together.copy()
        for path, (state, place) in enumerate(zip(alone, places, strict=True)):
            policy.learn(state, arms[t, place], chosen[place], lesson[place])
            apart.put(np.array([path]), state)
        # What each learned alone is there already; pilots wait for the youngest path to settle.
        assert_same(apart, together, but="pilot_")
    assert_same(apart, together)
    assert together.decisions.tolist() == [30, 21, 19]
