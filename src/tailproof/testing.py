"""The contract as checks: run them over a policy, noise or estimator of your own.

>>> from tailproof import OFUL, Filtered, Median
>>> check_policy(Filtered(OFUL(), repeats=5, estimator=Median()))

With pytest, one test for each promise::

    @pytest.mark.parametrize("check", tailproof.testing.POLICY_CHECKS)
    def test_my_policy(check):
        check(MyPolicy())
"""

import copy
import io
import math
import pickle
import warnings
from collections.abc import Callable, Sequence
from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, kstest

from tailproof.noise import Laplace, Noise
from tailproof.policies.base import Index, Policy, State
from tailproof.stats.estimators import Array, Estimator

__all__ = [
    "ESTIMATOR_CHECKS",
    "NOISE_CHECKS",
    "POLICY_CHECKS",
    "check_estimator",
    "check_noise",
    "check_policy",
]

_PATHS, _ARMS, _DIM, _DECISIONS = 3, 4, 3, 12
_FALSE_ALARM = 1e-6
"""The probability with which a statistical check fails a law that keeps its promises."""


def check_policy(policy: Policy[Any]) -> None:
    """Raise ``AssertionError`` unless the policy keeps every promise in `POLICY_CHECKS`."""
    for check in POLICY_CHECKS:
        check(policy)


def check_noise(noise: Noise) -> None:
    """Raise ``AssertionError`` unless the law keeps every promise in `NOISE_CHECKS`."""
    for check in NOISE_CHECKS:
        check(noise)


def check_estimator(estimator: Estimator) -> None:
    """Raise ``AssertionError`` unless the estimator keeps every promise in `ESTIMATOR_CHECKS`."""
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
    state, trace = _play(policy, _arms(), _rewards(policy))
    assert trace.shape == (_DECISIONS, _PATHS)
    assert trace.dtype.kind == "i"
    assert trace.min() >= 0
    assert trace.max() < _ARMS
    assert state.decisions.tolist() == [_DECISIONS] * _PATHS


def choose_is_pure(policy: Policy[Any]) -> None:
    """Choosing changes nothing that was learned."""
    state, _ = _play(policy, _arms(), _rewards(policy))
    before = state.to_arrays()
    first, second = (policy.choose(state, _arms()[0], np.random.default_rng(5)) for _ in "ab")
    _assert_same(before, state.to_arrays())
    np.testing.assert_array_equal(first, second)


def same_seed_same_trace(policy: Policy[Any]) -> None:
    """The same arms, rewards and random numbers give the same decisions."""
    first, second = (_play(policy, _arms(), _rewards(policy)) for _ in range(2))
    np.testing.assert_array_equal(first[1], second[1])
    _assert_same(first[0].to_arrays(), second[0].to_arrays())


def paths_do_not_mix(policy: Policy[Any]) -> None:
    """Whatever happens on one path, the others do not notice."""
    rewards = _rewards(policy)
    calm = _play(policy, _arms(), rewards)
    for shock in ([1e300], [-1e300], [math.inf], [-math.inf], [math.inf, -math.inf]):
        shocked = rewards.copy()
        shocked[2:8, 0] = np.resize(shock, 6)[:, None]
        wild = _play(policy, _arms(), shocked)
        np.testing.assert_array_equal(calm[1][:, 1:], wild[1][:, 1:])
        _assert_same(calm[0].take([1, 2]).to_arrays(), wild[0].take([1, 2]).to_arrays())


def state_round_trips(policy: Policy[Any]) -> None:
    """A state saved as plain arrays and restored goes on as if nothing had happened."""
    state, _ = _play(policy, _arms(), _rewards(policy))
    arrays = state.to_arrays()
    assert all(a.shape[0] == _PATHS for a in arrays.values() if a.ndim), "paths come first"
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    file.seek(0)
    with np.load(file, allow_pickle=False) as saved:
        restored = policy.restore(saved)
    _assert_same(arrays, restored.to_arrays())
    first, second = (_play(policy, _arms(7), _rewards(policy, 7), m) for m in (state, restored))
    np.testing.assert_array_equal(first[1], second[1])


def batch_equals_singles(policy: Policy[Any]) -> None:
    """Many paths at once do what each would do alone; random draws have the paths axis first."""
    arms, rewards = _arms(), _rewards(policy)
    state, trace = _play(policy, arms, rewards)
    for path in range(_PATHS):
        rows = slice(path, path + 1)
        alone, own = _play(policy, arms[:, rows], rewards[:, rows], rng=_OnePath(path))
        np.testing.assert_array_equal(trace[:, rows], own)
        for name, value in state.take([path]).to_arrays().items():
            np.testing.assert_allclose(alone.to_arrays()[name], value, rtol=1e-9, atol=1e-12)


def read_only_arms_change_nothing(policy: Policy[Any]) -> None:
    """Arms that nobody can change may be remembered, but decide nothing differently."""
    arms, rewards = np.repeat(_arms()[:1], _DECISIONS, axis=0), _rewards(policy)
    usual = _play(policy, arms, rewards)[1]
    constant = arms[0].copy()
    constant.flags.writeable = False
    np.testing.assert_array_equal(usual, _play(policy, [constant] * _DECISIONS, rewards)[1])


def nan_is_refused(policy: Policy[Any]) -> None:
    """A NaN, a wrong shape or an impossible choice raises, and nothing is half-learned."""
    state, trace = _play(policy, _arms(), _rewards(policy))
    arms, chosen, rewards = _arms()[0], trace[0], _rewards(policy)[0]
    before = state.to_arrays()
    with_nan = rewards.copy()
    with_nan[-1, -1] = np.nan
    lessons: list[tuple[Any, Any, Any]] = [
        (arms, chosen, with_nan),
        (arms, chosen, rewards[:-1]),
        (arms, chosen, rewards[:, :-1]),
        (arms, chosen + _ARMS, rewards),
        (arms, chosen - _ARMS, rewards),
        (arms, chosen[:-1], rewards),
        (arms[:, :-1], chosen, rewards),
        (arms[..., :-1], chosen, rewards),
    ]
    for lesson in lessons:
        _assert_raises(policy.learn, state, *lesson)
        _assert_same(before, state.to_arrays())
    rng = np.random.default_rng(0)
    for wrong in (arms[0], arms[:-1], arms[:, :-1], arms[..., :-1]):
        _assert_raises(policy.choose, state, wrong, rng)
    for size in ((0, 1, 1), (1, 0, 1), (1, 1, 0), (1.5, 1, 1)):
        _assert_raises(policy.init, *size)


def law_is_symmetric(noise: Noise) -> None:
    """Density, distribution and quantiles are symmetric about zero."""
    u = np.linspace(0.01, 0.49, 25)
    x = noise.ppf(u)
    np.testing.assert_allclose(noise.ppf(1 - u), -x, rtol=1e-6)
    np.testing.assert_allclose(noise.cdf(-x), 1 - noise.cdf(x), rtol=1e-9)
    np.testing.assert_allclose(noise.pdf(-x), noise.pdf(x), rtol=1e-9)


def quantiles_invert_the_distribution(noise: Noise) -> None:
    """P(η ≤ Q(u)) = u, from the centre far into the tail."""
    u = np.concatenate([np.geomspace(1e-15, 0.1, 30), np.linspace(0.1, 0.49, 14)])
    np.testing.assert_allclose(noise.cdf(noise.ppf(u)), u, rtol=1e-6)
    assert noise.ppf([0, 1]).tolist() == [-math.inf, math.inf]


def density_is_the_slope(noise: Noise) -> None:
    """The density is the derivative of the distribution function."""
    x = noise.ppf(np.linspace(0.03, 0.47, 12))
    h = 1e-4 * np.abs(x)
    slope = (noise.cdf(x + h) - noise.cdf(x - h)) / (2 * h)
    np.testing.assert_allclose(noise.pdf(x), slope, rtol=1e-5)


def samples_follow_the_law(noise: Noise) -> None:
    """Samples, and medians of odd and even blocks, have the declared distribution."""
    rng = np.random.default_rng(2021)
    assert noise.sample(rng, (2, 3)).shape == (2, 3)
    levels = noise.cdf(noise.sample(rng, (4000,)))
    assert kstest(levels, "uniform").pvalue > _FALSE_ALARM
    medians = noise.sample_median(9, rng, (4000,))
    assert kstest(noise.cdf(medians), beta(5, 5).cdf).pvalue > _FALSE_ALARM
    raw = np.median(noise.sample(rng, (4000, 4)), axis=1)
    assert kstest(noise.sample_median(4, rng, (4000,)), raw).pvalue > _FALSE_ALARM


def tail_is_as_declared(noise: Noise) -> None:
    """P(|η| > y) ≤ c/y^α everywhere, and no smaller c would do."""
    alpha = min(noise.alpha, 2.0)
    y = noise.scale * np.geomspace(1e-6, 1e6 ** max(1, 1 / alpha), 2000)
    product = y**alpha * 2 * noise.cdf(-y)
    assert product.max() <= noise.tail_constant(alpha) * (1 + 1e-9)
    assert product.max() >= noise.tail_constant(alpha) * (1 - 1e-3)
    np.testing.assert_allclose(noise.unit_scale(alpha) ** alpha, noise.tail_constant(alpha))


def last_axis_is_reduced(estimator: Estimator) -> None:
    """One axis, any of them, goes; the others stay."""
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
    """An estimator that declares itself equivariant follows every shift; others do not."""
    x = np.random.default_rng(0).standard_cauchy((50, 40))
    follows = np.allclose(estimator(x + 64), estimator(x) + 64)
    assert follows == estimator.equivariant


def draw_has_the_law(estimator: Estimator) -> None:
    """What is drawn directly is what reducing raw samples would give."""
    rng, noise = np.random.default_rng(2021), Laplace()
    drawn = estimator.draw(noise, rng, (4000, 40))
    assert drawn.shape == (4000,)
    assert kstest(drawn, estimator(noise.sample(rng, (4000, 40)))).pvalue > _FALSE_ALARM


POLICY_CHECKS: tuple[Callable[[Policy[Any]], None], ...] = (
    recipe_is_frozen,
    choices_are_arms,
    choose_is_pure,
    same_seed_same_trace,
    paths_do_not_mix,
    state_round_trips,
    batch_equals_singles,
    read_only_arms_change_nothing,
    nan_is_refused,
)
NOISE_CHECKS: tuple[Callable[[Noise], None], ...] = (
    recipe_is_frozen,
    law_is_symmetric,
    quantiles_invert_the_distribution,
    density_is_the_slope,
    samples_follow_the_law,
    tail_is_as_declared,
)
ESTIMATOR_CHECKS: tuple[Callable[[Estimator], None], ...] = (
    recipe_is_frozen,
    last_axis_is_reduced,
    estimator_refuses_nan,
    shift_is_as_declared,
    draw_has_the_law,
)


class _OnePath:
    """Random numbers for one path: the row that a batch would have given to it."""

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
    arms: Sequence[Array] | Array,
    rewards: Array,
    state: State | None = None,
    rng: Any = None,
) -> tuple[Any, Index]:
    """Play prepared decisions; return what was learned and the choices."""
    rng = np.random.default_rng(1) if rng is None else rng
    state = policy.init(len(arms[0]), _ARMS, _DIM) if state is None else state
    trace = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for offer, reward in zip(arms, rewards, strict=True):
            chosen = policy.choose(state, offer, rng)
            policy.learn(state, offer, chosen, reward)
            trace.append(chosen)
    return state, np.array(trace)


def _arms(seed: int = 3) -> Array:
    x = np.random.default_rng(seed).standard_normal((_DECISIONS, _PATHS, _ARMS, _DIM))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    return x


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
