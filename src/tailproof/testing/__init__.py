"""The contract as checks: run them over a policy, noise or estimator of your own.

>>> from tailproof import OFUL, Filtered, Median
>>> check_policy(Filtered(OFUL(), repeats=5, estimator=Median()))

With pytest, one test for each check::

    @pytest.mark.parametrize("check", tailproof.testing.POLICY_CHECKS)
    def test_my_policy(check):
        check(MyPolicy())
"""

import copy
import io
import math
import pickle
import warnings
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, binom, kstest

from tailproof.bestarm.quantiles import QuantileBestArm
from tailproof.noise import Laplace, Noise
from tailproof.policies import (
    FixedArm,
    LinRevenueUCB,
    LinStudentUCB,
    OrderStatisticUCB,
    RevenueUCB,
    Uniform,
)
from tailproof.policies.base import Index, Policy, State
from tailproof.stats.estimators import Estimator
from tailproof.typing import Array
from tailproof.wrappers import AutoFiltered, Capped, Filtered, Scaled, Wrapper

__all__ = [
    "ESTIMATOR_CHECKS",
    "NOISE_CHECKS",
    "POLICY_CHECKS",
    "check_estimator",
    "check_noise",
    "check_policy",
    "invariances",
]

_PATHS, _ARMS, _DIM, _DECISIONS = 3, 4, 3, 200
_FALSE_ALARM = 1e-6
"""The false-alarm rate of each statistical check."""


def check_policy(policy: Policy[Any]) -> None:
    """Raise ``AssertionError`` unless the policy passes all `POLICY_CHECKS`."""
    for check in POLICY_CHECKS:
        check(policy)


def check_noise(noise: Noise) -> None:
    """Raise ``AssertionError`` unless the law passes all `NOISE_CHECKS`."""
    for check in NOISE_CHECKS:
        check(noise)


def check_estimator(estimator: Estimator) -> None:
    """Raise ``AssertionError`` unless the estimator passes all `ESTIMATOR_CHECKS`."""
    for check in ESTIMATOR_CHECKS:
        check(estimator)


def recipe_is_frozen(recipe: object) -> None:
    """A recipe compares by value, survives copying and pickling, and cannot be changed."""
    assert copy.deepcopy(recipe) == recipe
    assert pickle.loads(pickle.dumps(recipe)) == recipe
    assert hash(copy.deepcopy(recipe)) == hash(recipe)
    for name in [field.name for field in fields(recipe)] or ["anything"]:  # type: ignore[arg-type]
        try:
            setattr(recipe, name, None)
        except FrozenInstanceError:
            continue
        raise AssertionError(f"{name} of {recipe!r} could be changed")


def choices_are_arms(policy: Policy[Any]) -> None:
    """Each path gets the index of one of its arms, and decisions are counted."""
    state, trace = _play(policy, _arms(policy), _rewards(policy))
    assert trace.shape == (_DECISIONS, _PATHS)
    assert trace.dtype.kind == "i"
    assert trace.min() >= 0
    assert trace.max() < _ARMS
    assert state.decisions.tolist() == [_DECISIONS] * _PATHS


def choose_is_pure(policy: Policy[Any]) -> None:
    """Choosing changes nothing in the state; the same random numbers give the same choice."""
    state, _ = _play(policy, _arms(policy), _rewards(policy))
    before = state.to_arrays()
    first, second = (policy.choose(state, _arms(policy)[0], np.random.default_rng(5)) for _ in "ab")
    _assert_same(before, state.to_arrays())
    np.testing.assert_array_equal(first, second)


def paths_do_not_mix(policy: Policy[Any]) -> None:
    """What happens on one path changes no bit on the others.

    Path 0 gets absurd rewards, or arms 10⁹ times as long or short as the others', less if the
    policy refuses such lengths.
    """
    arms, rewards = _arms(policy), _rewards(policy)
    calm = _play(policy, arms, rewards)
    wild = []
    for shock in ([1e300, -1e300], [math.inf], [math.inf, -math.inf]):
        shocked = rewards.copy()
        third = shocked[2 : 9 * _DECISIONS // 20 : 3, 0]
        third[:] = np.resize(shock, len(third))[:, None]
        wild.append(_play(policy, arms, shocked))
    long = min(1e9, policy._longest / 2)
    for lengths in ([long], [1 / long, long, 1.0]):
        stretched = arms.copy()
        shape = (_DECISIONS, 1, 1) if _wants_context(policy) else (_ARMS, 1)
        stretched[:, 0] *= np.resize(lengths, shape)
        wild.append(_play(policy, stretched, rewards))
    for state, trace in wild:
        np.testing.assert_array_equal(calm[1][:, 1:], trace[:, 1:])
        _assert_same(calm[0].take([1, 2]).to_arrays(), state.take([1, 2]).to_arrays())


def batch_equals_singles(policy: Policy[Any]) -> None:
    """A path in a batch does the same as alone; random draws have the paths axis first."""
    arms, rewards = _arms(policy), _rewards(policy)
    state, trace = _play(policy, arms, rewards)
    for path in range(_PATHS):
        rows = slice(path, path + 1)
        alone, own = _play(policy, arms[:, rows], rewards[:, rows], rng=_OnePath(path))
        np.testing.assert_array_equal(trace[:, rows], own)
        _assert_same(state.take([path]).to_arrays(), alone.to_arrays())


def state_round_trips(policy: Policy[Any]) -> None:
    """A state that is saved as plain arrays halfway and restored continues bit for bit.

    So does one that is pickled, copied, or split into paths and joined again.
    """
    arms, rewards, half = _arms(policy), _rewards(policy), _DECISIONS // 2
    state, _ = _play(policy, arms[:half], rewards[:half])
    arrays = state.to_arrays()
    paths_first = (a.shape[0] == _PATHS for a in arrays.values() if a.ndim)
    assert all(paths_first), "paths come first"
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    file.seek(0)
    with np.load(file, allow_pickle=False) as saved:
        restored = policy.restore(saved)
    again = state.take([0] * _PATHS)
    for path in range(_PATHS):
        again.put(np.array([path]), state.take([path]))
    others = [restored, pickle.loads(pickle.dumps(state)), state.copy(), again]
    for other in others:
        _assert_same(arrays, other.to_arrays())
    first, *rest = (_play(policy, arms[half:], rewards[half:], s) for s in (state, *others))
    for other in rest:
        np.testing.assert_array_equal(first[1], other[1])
        _assert_same(first[0].to_arrays(), other[0].to_arrays())


def arms_come_and_go(policy: Policy[Any]) -> None:
    """K may change from call to call, unless the state has `fixed_arms`.

    A state that starts with fewer arms becomes equal to one that started with all, once it sees
    them all. One that has seen more arms than are offered chooses among those offered.
    """
    more, rewards, rng = _arms(policy, 2 * _ARMS), _rewards(policy), np.random.default_rng(6)
    arms = more[:, :, :_ARMS]
    state, _ = _play(policy, arms[:9], rewards[:9])
    if state.fixed_arms:
        before = state.to_arrays()
        for offer in (arms[9, :, :-1], more[9]):
            _assert_raises(policy.choose, state, offer, rng)
            _assert_raises(policy.learn, state, offer, np.zeros(_PATHS, np.int64), rewards[9])
        _assert_same(before, state.to_arrays())
        return
    few = policy.init(_PATHS, _ARMS - 1, _DIM)
    grown = _play(policy, arms[:9], rewards[:9], few)[0]
    _assert_same(state.to_arrays(), grown.to_arrays())
    times = min(40, _DECISIONS - 9)
    offered = np.random.default_rng(7).integers(_ARMS - 1, 2 * _ARMS, times, endpoint=True)
    for t, most in enumerate(offered.tolist(), 9):
        offer = more[t, :, :most]
        before = state.to_arrays()
        chosen = policy.choose(state, offer, rng)
        assert chosen.max() < most
        _assert_same(before, state.to_arrays())
        policy.learn(state, offer, chosen, rewards[t])
    assert state.arms == offered.max()
    restored = policy.restore(before)
    policy.learn(restored, offer, chosen, rewards[t])
    _assert_same(state.to_arrays(), restored.to_arrays())


def propensities_are_frequencies(policy: Policy[Any]) -> None:
    """If a policy reports its propensities, its choices are as frequent as these say.

    Each share is tested at its part of a false-alarm rate of 10⁻⁶.
    """
    draws, arms, rng = 300, _arms(policy)[0], np.random.default_rng(2021)
    for state in (
        policy.init(_PATHS, _ARMS, _DIM),
        _play(policy, _arms(policy), _rewards(policy))[0],
    ):
        before = state.to_arrays()
        share = policy.propensities(state, arms)
        _assert_same(before, state.to_arrays())
        if share is None:
            return
        assert share.shape == (_PATHS, _ARMS)
        assert share.min() >= 0
        np.testing.assert_allclose(share.sum(axis=1), 1, rtol=1e-6)
        chosen = np.stack([policy.choose(state, arms, rng) for _ in range(draws)])
        seen = (chosen[..., None] == np.arange(_ARMS)).sum(axis=0)
        share = np.clip(share, 0, 1)
        tail = np.minimum(binom.cdf(seen, draws, share), binom.sf(seen - 1, draws, share))
        assert tail.min() > _FALSE_ALARM / (4 * share.size)


def foreign_states_are_refused(policy: Policy[Any]) -> None:
    """Arrays of another policy or shape, and damaged arrays, are not restored."""
    arrays = policy.init(_PATHS, _ARMS, _DIM).to_arrays()
    policy.restore(arrays)
    for spoiled in (
        arrays | {"policy": np.array("SomeoneElse")},
        arrays | {"format": np.array(0)},
        arrays | {"arms": np.array(_ARMS + 0.5)},
        arrays | {"decisions": arrays["decisions"][:0]},
        arrays | {"decisions": arrays["decisions"] - 1},
        arrays | {"more": np.zeros(_PATHS)},
        {name: a for name, a in arrays.items() if name != "format"},
        {},
    ):
        _assert_raises(policy.restore, spoiled)
    for name, array in arrays.items():
        if array.ndim:
            _assert_raises(policy.restore, arrays | {name: array[:, None]})
            if name != "decisions":  # which says how many paths there are
                _assert_raises(policy.restore, arrays | {name: array[:-1]})
            _assert_raises(policy.restore, arrays | {name: array.astype(str)})
    stranger = policy.init(1, _ARMS, _DIM)
    stranger.policy = "SomeoneElse"
    _assert_raises(policy.choose, stranger, _arms(policy)[0, :1], np.random.default_rng(0))


def lost_rewards_are_made_up_for(policy: Policy[Any]) -> None:
    """If rewards are lost, those that came are repeated in turn."""
    assert 1 <= policy.least <= policy.pulls
    few, full = (policy.init(_PATHS, _ARMS, _DIM) for _ in range(2))
    arms, chosen = _arms(policy)[0], np.zeros(_PATHS, dtype=np.int64)
    came = _rewards(policy)[0][:, : policy.least]
    policy.learn(few, arms, chosen, came)
    policy.learn(full, arms, chosen, came[:, np.arange(policy.pulls) % policy.least])
    _assert_same(few.to_arrays(), full.to_arrays())


def bad_input_is_refused(policy: Policy[Any]) -> None:
    """A NaN, a wrong shape or an impossible choice raises, and nothing is half learned.

    An arm that is not finite is refused even if it was not chosen.
    """
    state, trace = _play(policy, _arms(policy), _rewards(policy))
    arms, chosen, rewards = _arms(policy)[0], trace[0], _rewards(policy)[0]
    before, rng = state.to_arrays(), np.random.default_rng(0)
    with_nan = rewards.copy()
    with_nan[-1, -1] = np.nan
    lessons: list[tuple[Any, ...]] = [
        (arms, chosen, with_nan),
        (arms, chosen, rewards[:-1]),
        (arms, chosen, rewards[:, : policy.least - 1]),
        (arms, chosen, np.hstack([rewards, rewards])),
        (arms, chosen + _ARMS, rewards),
        (arms, chosen - _ARMS, rewards),
        (arms, chosen * 1.0, rewards),
        (arms, chosen[:-1], rewards),
        *((arms, chosen, rewards, np.full(_PATHS, p)) for p in (0, -0.5, 1.5, math.nan)),
        (arms, chosen, rewards, np.full(_PATHS - 1, 0.5)),
    ]
    offers = [arms[0], arms[:-1], arms[:, :0], arms[..., :-1]]
    for value in (math.nan, math.inf, -math.inf, 1e80):
        for place in (0, (chosen[0] + 1) % _ARMS - chosen[0]):  # the chosen arm, and another
            spoiled = arms.copy()
            spoiled[0, chosen[0] + place, 1] = value
            offers.append(spoiled)
    for offer in offers:
        lessons.append((offer, chosen, rewards))
        _assert_raises(policy.choose, state, offer, rng)
    for lesson in lessons:
        _assert_raises(policy.learn, state, *lesson)
        _assert_same(before, state.to_arrays())
    for size in ((0, 1, 1), (1, 0, 1), (1, 1, 0), (1.5, 1, 1)):
        _assert_raises(policy.init, *size)


def view_is_as_declared(policy: Policy[Any]) -> None:
    """A policy that knows arms by number ignores vectors; states declare their axes of arms."""
    if policy.view == "arms":
        first, second = (
            _play(policy, arms, _rewards(policy))[1]
            for arms in (_arms(policy), np.ones_like(_arms(policy)))
        )
        np.testing.assert_array_equal(first, second)
    _assert_axes(policy.init(1, _ARMS, _DIM), policy.init(1, _ARMS + 1, _DIM))


def _assert_axes(state: State, wider: State) -> None:
    """With one more arm, only the declared axis of each array is longer."""
    for name, array in vars(state).items():
        other = getattr(wider, name)
        if isinstance(array, State):
            _assert_axes(array, other)
        elif isinstance(array, np.ndarray):
            pairs = zip(array.shape, other.shape, strict=True)
            longer = [axis for axis, (a, b) in enumerate(pairs) if a != b]
            axis = state.arm_axis(name)
            assert longer == ([] if axis is None else [axis]), name


def invariances_hold(policy: Policy[Any]) -> None:
    """Changes of all rewards that are declared to be harmless change no decision.

    The rewards are multiples of 1/64, so that every change is exact or at least strictly
    increasing; in the second half some are infinite. Other units, even if they cause rounding,
    change no decision of the first half. All of this for arms with features, and for K arms that
    are known by their number, where those that were not tried yet are equal.
    """
    declared, half = invariances(policy), _DECISIONS // 2
    rewards = np.round(_rewards(policy) * 64) / 64
    rewards[half::10] = np.copysign(math.inf, rewards[half::10])
    numbered = np.broadcast_to(np.eye(_ARMS), (_DECISIONS, _PATHS, _ARMS, _ARMS))
    offers = [_arms(policy)] if _wants_context(policy) else [_arms(policy), numbered]
    for arms in offers if declared else []:
        _, trace = _play(policy, arms, rewards)
        for kind in declared:
            for change in _MAPS[kind]:
                _, other = _play(policy, arms, change(rewards))
                np.testing.assert_array_equal(trace, other, err_msg=kind)
        if "units" in declared:
            _, other = _play(policy, arms[:half], 1e-6 * rewards[:half])
            np.testing.assert_array_equal(trace[:half], other, err_msg="units")


@singledispatch
def invariances(policy: Policy[Any]) -> frozenset[str]:
    """Return the changes of all rewards that are declared to change no decision.

    "units" (multiples), "offset" (a constant is added), "increasing" (these and all other strictly
    increasing functions). Register those of your own policy::

        @tailproof.testing.invariances.register
        def _(policy: MyPolicy) -> frozenset[str]:
            return frozenset({"units"})
    """
    return frozenset()


@invariances.register(OrderStatisticUCB | Uniform | FixedArm | QuantileBestArm)
def _(policy: Any) -> frozenset[str]:
    return frozenset({"increasing"})


@invariances.register(RevenueUCB | LinRevenueUCB | Capped)
def _(policy: Any) -> frozenset[str]:
    return frozenset({"units"})


@invariances.register(LinStudentUCB | AutoFiltered)
def _(policy: Any) -> frozenset[str]:
    return frozenset({"units", "offset"} if policy.intercept else {"units"})


@invariances.register(Wrapper)
def _(policy: Any) -> frozenset[str]:
    return invariances(policy.policy)


@invariances.register
def _(policy: Scaled) -> frozenset[str]:
    """Those of A; with a centre, a change of unit is also an offset, which must not matter to A."""
    inside = invariances(policy.policy)
    return inside if policy.centre == 0 or "offset" in inside else inside - {"units"}


@invariances.register
def _(policy: Filtered) -> frozenset[str]:
    """Those of A that also pass through the estimator."""
    inside = invariances(policy.policy)
    if "increasing" in inside:
        inside |= {"units", "offset"}
    return inside - {"increasing"} if policy.estimator.equivariant else frozenset()


def law_is_symmetric(noise: Noise) -> None:
    """A law declared as symmetric is so: density, distribution function and quantiles."""
    u = np.linspace(0.01, 0.49, 25)
    x = noise.ppf(u)
    if not noise.symmetric:
        assert not np.allclose(noise.ppf(1 - u), -x), "it is symmetric, but not declared so"
        return
    np.testing.assert_allclose(noise.ppf(1 - u), -x, rtol=1e-6)
    if noise.continuous:
        np.testing.assert_allclose(noise.cdf(-x), 1 - noise.cdf(x), rtol=1e-9)
        np.testing.assert_allclose(noise.pdf(-x), noise.pdf(x), rtol=1e-9)


def quantiles_invert_the_distribution(noise: Noise) -> None:
    """P(η ≤ Q(u)) = u, far into the tail; with atoms P(η < Q(u)) ≤ u ≤ P(η ≤ Q(u))."""
    u = np.concatenate([np.geomspace(1e-15, 0.1, 30), np.linspace(0.1, 0.49, 14)])
    if noise.continuous and math.isinf(noise.support[0]):
        np.testing.assert_allclose(noise.cdf(noise.ppf(u)), u, rtol=1e-6)
    else:  # near a left end floats are not dense enough for more
        u = np.concatenate([u, 1 - u])
        low, high = _around(noise, noise.ppf(u))
        assert (low <= u * (1 + 1e-12)).all()
        assert (high >= u * (1 - 1e-12)).all()
    assert noise.ppf([0, 1]).tolist() == list(noise.support)


def centre_is_as_declared(noise: Noise) -> None:
    """The median splits the law in half, and the mean is the integral of ppf."""
    below, up_to = _around(noise, np.array(noise.median))
    assert below <= 0.5 + 1e-12
    assert up_to >= 0.5 - 1e-12
    try:
        mean = noise.mean
    except ValueError:  # not available for this law
        return
    assert math.isnan(mean) == (noise.alpha <= 1)
    if noise.alpha > 2:
        u = (np.arange(10**5) + 0.5) / 10**5
        x = noise.ppf(u)
        # The outermost cell may hold about as much as 3 deviations divided by √(number of cells).
        assert abs(x.mean() - mean) <= 3 * x.std() / math.sqrt(len(u)) + 1e-9 * noise.scale


def density_is_the_slope(noise: Noise) -> None:
    """The density is the derivative of the distribution function; a law with atoms has none."""
    if not noise.continuous:
        _assert_raises(noise.pdf, 0.0)
        return
    x = noise.ppf(np.linspace(0.03, 0.47, 12))
    h = 1e-4 * np.abs(x)
    slope = (noise.cdf(x + h) - noise.cdf(x - h)) / (2 * h)
    np.testing.assert_allclose(noise.pdf(x), slope, rtol=1e-5)


def samples_follow_the_law(noise: Noise) -> None:
    """Samples, and medians of odd and even blocks, have the declared distribution."""
    rng = np.random.default_rng(2021)
    assert noise.sample(rng, (2, 3)).shape == (2, 3)
    single = _levels(noise, noise.sample(rng, (4000,)), lambda u: u)
    assert kstest(single, "uniform").pvalue > _FALSE_ALARM
    medians = _levels(noise, noise.sample_median(9, rng, (4000,)), beta(5, 5).cdf)
    assert kstest(medians, "uniform").pvalue > _FALSE_ALARM
    raw = np.median(noise.sample(rng, (4000, 4)), axis=1)
    assert kstest(noise.sample_median(4, rng, (4000,)), raw).pvalue > _FALSE_ALARM


def tail_is_as_declared(noise: Noise) -> None:
    """P(|η| > y) ≤ c/y^α everywhere, and no smaller c would do; or no c is declared."""
    alpha = min(noise.alpha, 2.0)
    if not (noise.symmetric and noise.continuous):
        _assert_raises(noise.tail_constant, alpha)
        _assert_raises(lambda: noise.fisher_information)
        return
    y = noise.scale * np.geomspace(1e-6, 1e6 ** max(1, 1 / alpha), 2000)
    product = y**alpha * 2 * noise.cdf(-y)
    assert product.max() <= noise.tail_constant(alpha) * (1 + 1e-9)
    assert product.max() >= noise.tail_constant(alpha) * (1 - 1e-3)
    np.testing.assert_allclose(noise.unit_scale(alpha) ** alpha, noise.tail_constant(alpha))


def last_axis_is_reduced(estimator: Estimator) -> None:
    """Any axis can be reduced; the others stay."""
    x = np.random.default_rng(0).standard_cauchy((4, 40, 3))
    along = estimator(x, axis=1)
    assert along.shape == (4, 3)
    np.testing.assert_array_equal(along, estimator(np.moveaxis(x, 1, -1)))
    np.testing.assert_allclose(along[2, 1], estimator(x[2, :, 1]), rtol=1e-12)


def estimator_refuses_nan(estimator: Estimator) -> None:
    """A NaN anywhere, or no sample at all, is refused; infinities are not."""
    x = np.random.default_rng(0).standard_normal((2, 40))
    for place in (0, 17, 39):
        spoiled = x.copy()
        spoiled[1, place] = np.nan
        _assert_raises(estimator, spoiled)
    _assert_raises(estimator, np.empty(0))
    x[:, ::7] = math.inf
    x[0, ::5] = -math.inf
    assert not np.isnan(estimator(x)).any()


def shift_is_as_declared(estimator: Estimator) -> None:
    """An equivariant estimator follows shifts and units; others do not."""
    x = np.random.default_rng(0).standard_cauchy((50, 40))
    follows = np.allclose(estimator(8 * x + 64), 8 * estimator(x) + 64)
    assert follows == estimator.equivariant


def draw_has_the_law(estimator: Estimator) -> None:
    """Direct draws have the same law as estimates from raw samples."""
    rng, noise = np.random.default_rng(2021), Laplace()
    drawn = estimator.draw(noise, rng, (4000, 40))
    assert drawn.shape == (4000,)
    assert kstest(drawn, estimator(noise.sample(rng, (4000, 40)))).pvalue > _FALSE_ALARM


_MAPS: dict[str, list[Callable[[Array], Array]]] = {
    "units": [lambda x: x / 1024, lambda x: x * 2.0**40],
    "offset": [lambda x: x + 10_000, lambda x: x - 2.0**20],
}
_MAPS["increasing"] = [
    *(change for changes in _MAPS.values() for change in changes),
    lambda x: 3 * x + 7,
    lambda x: x**3,
    np.exp,
    np.arctan,
]
POLICY_CHECKS: tuple[Callable[[Policy[Any]], None], ...] = (
    recipe_is_frozen,
    choices_are_arms,
    choose_is_pure,
    paths_do_not_mix,
    batch_equals_singles,
    state_round_trips,
    arms_come_and_go,
    propensities_are_frequencies,
    foreign_states_are_refused,
    lost_rewards_are_made_up_for,
    bad_input_is_refused,
    view_is_as_declared,
    invariances_hold,
)
"""The checks of a policy, one function each."""
NOISE_CHECKS: tuple[Callable[[Noise], None], ...] = (
    recipe_is_frozen,
    law_is_symmetric,
    quantiles_invert_the_distribution,
    centre_is_as_declared,
    density_is_the_slope,
    samples_follow_the_law,
    tail_is_as_declared,
)
"""The checks of a noise law, one function each."""
ESTIMATOR_CHECKS: tuple[Callable[[Estimator], None], ...] = (
    recipe_is_frozen,
    last_axis_is_reduced,
    estimator_refuses_nan,
    shift_is_as_declared,
    draw_has_the_law,
)
"""The checks of an estimator, one function each."""


def _around(noise: Noise, x: Array) -> tuple[Array, Array]:
    """Return the distribution function a little below and a little above each x."""
    h = 1e-9 * (np.abs(x) + noise.scale)
    with np.errstate(invalid="ignore"):
        return noise.cdf(x - h), noise.cdf(x + h)


def _levels(noise: Noise, x: Array, law: Callable[[Array], Array]) -> Array:
    """Return uniform variables if P(X ≤ x) = law(P(η ≤ x)); an atom is spread over its share."""
    if noise.continuous:
        return law(noise.cdf(x))
    low, high = (law(level) for level in _around(noise, x))
    return low + np.random.default_rng(0).random(x.shape) * (high - low)


class _OnePath:
    """A generator for one path: draws what a whole batch would get, and returns that path's row."""

    def __init__(self, path: int) -> None:
        self._path = path
        self._rng = np.random.default_rng(1)

    def __getattr__(self, method: str) -> Callable[..., NDArray[Any]]:
        def draw(*args: Any, **kwargs: Any) -> NDArray[Any]:
            *first, size = (*args, kwargs.pop("size")) if "size" in kwargs else args
            shape = (_PATHS, *np.atleast_1d(size)[1:])
            rows: NDArray[Any] = getattr(self._rng, method)(*first, size=shape, **kwargs)
            return rows[self._path : self._path + 1]

        return draw


def _play(
    policy: Policy[Any],
    arms: Array,
    rewards: Array,
    state: State | None = None,
    rng: Any = None,
) -> tuple[Any, Index]:
    """Play prepared decisions; return what was learned and the choices."""
    rng = np.random.default_rng(1) if rng is None else rng
    state = policy.init(*arms[0].shape) if state is None else state
    trace = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for offer, reward in zip(arms, rewards, strict=True):
            chosen = policy.choose(state, offer, rng)
            policy.learn(state, offer, chosen, reward)
            trace.append(chosen)
    return state, np.array(trace)


def _arms(policy: Policy[Any], arms: int = _ARMS) -> Array:
    """Return unit vectors; the same for all arms if a guest takes one context."""
    x = np.random.default_rng(3).standard_normal((_DECISIONS, _PATHS, arms, _DIM))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    return x[:, :, :1].repeat(arms, axis=2) if _wants_context(policy) else x


def _wants_context(policy: Policy[Any]) -> bool:
    return policy.view == "context"


def _rewards(policy: Policy[Any], seed: int = 4) -> Array:
    return np.random.default_rng(seed).standard_normal((_DECISIONS, _PATHS, policy.pulls))


def _assert_same(first: dict[str, NDArray[Any]], second: dict[str, NDArray[Any]]) -> None:
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)


def _assert_raises(action: Callable[..., object], *args: Any) -> None:
    try:
        action(*args)
    except ValueError:
        return
    raise AssertionError("bad input was accepted")
