"""Best-arm recipes: the contract, answers that stand, designs, one-path references."""

import inspect
import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from instances import BEST_ARM
from rotation import Check, briefly, by_class, everything, sample
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import betainc, betaincinv, betaln
from traces import play, race

from tailproof import OFUL, UCB1, Filtered, FromRegret, Mean, Median, Policy, bestarm, testing
from tailproof.bestarm import (
    ALBA,
    RAGE,
    BestArm,
    GAllocation,
    HeavyTrackAndStop,
    LazyTrackAndStop,
    LinGapE,
    QuantileElimination,
    QuantileLUCB,
    SuccessiveElimination,
    TrackAndStop,
    XYAdaptive,
    XYAllocation,
    behind_filter,
    complexity,
    lower_bound,
    optimal_design,
)
from tailproof.bestarm.base import PENALTY, Race
from tailproof.bestarm.design import greedy, pairs, rounded
from tailproof.bestarm.track_and_stop import optimal_proportions
from tailproof.environments.linear import near_tie
from tailproof.noise import Cauchy, Noise, Normal, Pareto, StudentT, TwoPoint, Uniform
from tailproof.policies.base import Recommends
from tailproof.stats.medians import median_scale
from tailproof.stats.order_statistics import rank
from tailproof.typing import Array

RECIPES: list[Policy[Any]] = [
    ALBA(),
    HeavyTrackAndStop(moment_bound=4),
    LinGapE(),
    LinGapE(norm_bound=2, ridge=0.1, gap_tolerance=0.2),
    GAllocation(),
    XYAllocation(),
    XYAdaptive(),
    RAGE(),
    LazyTrackAndStop(),
    TrackAndStop(),
    TrackAndStop(threshold="experiments"),
    SuccessiveElimination(),
    QuantileElimination(),
    QuantileLUCB(),
    FromRegret(OFUL(), decisions=5),
    FromRegret(UCB1(), decisions=100),
]
SURE: list[Policy[Any]] = [  # so little noise that twelve decisions are enough, and eager ones
    *(r.with_scale(1e-3) for r in RECIPES[2:] if hasattr(r, "noise_scale")),
    QuantileElimination(),
    QuantileLUCB(quantile=0.7),
    RECIPES[-2],
]
OTHERS = {
    **by_class(SURE),
    "named soon, filtered": [Filtered(r, repeats=3, estimator=Median()) for r in SURE],
    "other settings": [r for r in RECIPES if r not in BEST_ARM],
}
NEAR_TIE = near_tie(Normal()).start(1, np.random.default_rng(0))


@pytest.mark.parametrize(("policy", "check"), sample(OTHERS))
def test_recipes_keep_the_contract(policy: Policy[Any], check: Check) -> None:
    briefly(check, policy)


@pytest.mark.parametrize("policy", everything(OTHERS))
def test_recipes_keep_the_contract_in_full(policy: Policy[Any]) -> None:
    testing.check_policy(policy)


def test_no_recipe_is_left_out() -> None:
    exported = {getattr(bestarm, name) for name in bestarm.__all__}
    recipes = {thing for thing in exported if inspect.isclass(thing)}
    recipes -= {BestArm}
    assert recipes == {type(recipe) for recipe in RECIPES} - {FromRegret}
    for recipe in recipes:
        assert all(word in (recipe.__doc__ or "") for word in ("Source", "Differences", ">>>"))


@pytest.mark.parametrize("policy", SURE, ids=repr)
def test_an_answer_is_right_consistent_pure_and_stands(policy: Any) -> None:
    arms = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    theta = np.array([0.5, 1.0])  # the third arm is best
    state, trace = race(policy, arms, lambda arm, t: float(arms[arm] @ theta), 500)
    assert len(trace) < 500
    before = state.to_arrays()
    assert policy.stopped(state).tolist() == [True]
    assert policy.recommend(state).tolist() == [2] or isinstance(policy, FromRegret)
    policy.recommend(state)[0] = 0  # what a caller does with an answer is his own business
    for name, value in state.to_arrays().items():
        np.testing.assert_array_equal(value, before[name])
    first = policy.recommend(state)
    other = [(int(first[0]) + 1) % 3]
    for _ in range(100):  # later plays and rewards speak for another arm
        policy.learn(state, arms[None], other, [[100.0] * policy.pulls])
    np.testing.assert_array_equal(policy.recommend(state), first)


@pytest.mark.parametrize("policy", RECIPES, ids=repr)
def test_nothing_is_named_too_soon(policy: Any) -> None:
    state = policy.init(3, 4, 2)
    assert policy.recommend(state).tolist() == [-1] * 3
    assert not policy.stopped(state).any()


def test_regret_policies_have_no_answer() -> None:
    assert not isinstance(OFUL(), Recommends)
    policy = Filtered(OFUL(), repeats=3)
    with pytest.raises(
        ValueError, match=r"OFUL\(.*\) names no best arm; the policies of tailproof.bestarm do"
    ):
        policy.recommend(policy.init(1, 2, 2))


def test_a_filter_passes_the_answer_through() -> None:
    plain = LinGapE(noise_scale=0.1)
    state, trace = race(plain, np.eye(2), lambda arm, t: float(arm), 100)
    filtered = Filtered(plain, repeats=4, estimator=Mean())
    other, same = race(filtered, np.eye(2), lambda arm, t: float(arm), 100)
    assert trace == same
    assert filtered.recommend(other).tolist() == plain.recommend(state).tolist() == [1]


@pytest.mark.parametrize(
    "recipe",
    [
        LinGapE(norm_bound=2),
        GAllocation(),
        XYAllocation(),
        XYAdaptive(),
        RAGE(offset=-2),
        SuccessiveElimination(),
    ],
    ids=repr,
)
def test_content_with_less_means_fewer_pulls(recipe: Any) -> None:
    arms, theta = NEAR_TIE.arms[0], NEAR_TIE.theta[0]
    pulls = []
    for tolerance in (0.0, 0.5):
        policy = replace(recipe, gap_tolerance=tolerance, noise_scale=0.5)
        state, trace = race(policy, arms, lambda arm, t: float(arms[arm] @ theta), 30_000)
        gap = (arms @ theta).max() - arms[policy.recommend(state)[0]] @ theta
        assert policy.stopped(state).all()
        assert gap <= tolerance
        pulls.append(len(trace))
    assert pulls[1] < pulls[0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: LinGapE(delta=0), "delta must be a number above 0 and below 1, got 0"),
        (lambda: RAGE(delta=1.0), "delta must be a number above 0 and below 1, got 1.0"),
        (lambda: RAGE(offset=99), "offset must be a whole number of at least -10 and at most 10"),
        (lambda: XYAdaptive(alpha=1), "alpha must be a number above 0 and below 1, got 1"),
        (lambda: GAllocation(noise_scale=0), "noise_scale must be a finite number above 0, got 0"),
        (
            lambda: GAllocation(gap_tolerance=-1),
            "gap_tolerance must be a finite number at least 0, got -1",
        ),
        (lambda: LinGapE(ridge=0), "ridge must be a finite number at least 1e-08, got 0"),
        (lambda: LazyTrackAndStop(u=0), "u must be a finite number above 0, got 0"),
        (lambda: TrackAndStop(threshold="x"), "threshold must be one of proved, experiments"),  # type: ignore[arg-type]
        (lambda: FromRegret(OFUL(), decisions=0), "decisions must be a whole number of at least"),
        (lambda: FromRegret(3, decisions=1), "policy must be a policy, got 3"),  # type: ignore[arg-type]
        (lambda: LinGapE().init(1, 1, 2), "arms must be a whole number of at least 2, got 1"),
        (lambda: median_scale(Cauchy(), block=4, failure=0.1), "block must be odd, got 4"),
        (lambda: median_scale(Cauchy(), block=5, failure=0), "failure must be a number above 0"),
        (
            lambda: behind_filter(LinGapE(), Cauchy(), block=41, max_pulls=40),
            "max_pulls must be a whole number of at least 41, got 40",
        ),
        (
            lambda: behind_filter(OFUL(), Cauchy(), block=41, max_pulls=100),  # type: ignore[arg-type]
            r"policy must be a best-arm policy with a noise scale, such as LinGapE\(\), got OFUL",
        ),
    ],
)
def test_bad_input(make: Callable[[], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_arms_that_do_not_span_are_refused_where_that_matters() -> None:
    flat = np.array([[[1.0, 0.0], [0.5, 0.0]]])
    policy = LazyTrackAndStop()
    with pytest.raises(ValueError, match="the arms span 1 of 2 dimensions; add arms"):
        policy.choose(policy.init(1, 2, 2), flat, np.random.default_rng(0))


# Designs


def random_arms(paths: int, arms: int, dim: int) -> Array:
    return np.random.default_rng(7).standard_normal((paths, arms, dim))


def test_the_g_optimal_value_is_the_dimension() -> None:
    """Kiefer and Wolfowitz."""
    arms = random_arms(5, 12, 4)
    weights, value = optimal_design(arms, arms, tolerance=1e-3)
    np.testing.assert_allclose(value, 4, rtol=1.1e-3)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    assert (weights >= 0).all()


@pytest.mark.parametrize("dim", [2, 5])
def test_unit_vectors_deserve_even_weights(dim: int) -> None:
    basis = np.eye(dim)[None]
    for directions, value in ((basis, dim), (pairs(basis)[2], 2 * dim)):
        found = optimal_design(basis, directions)
        np.testing.assert_allclose(found[0], 1 / dim, atol=2e-3)
        np.testing.assert_allclose(found[1], value, rtol=1e-2)


def test_one_direction_is_elfvings() -> None:
    """For one y the value is the square of the least ℓ₁ norm of its coefficients."""
    arms = NEAR_TIE.arms
    y = arms[:, :1] - arms[:, 5:]
    _, value = optimal_design(arms, y, tolerance=1e-4)
    np.testing.assert_allclose(value, (1 - math.cos(0.3) + math.sin(0.3)) ** 2, rtol=1e-4)


def test_the_design_is_as_good_as_a_general_solver_finds() -> None:
    arms = random_arms(1, 5, 3)
    y = pairs(arms)[2]

    def worst(logits: Array) -> float:
        w = np.exp(logits) / np.exp(logits).sum()
        inverse = np.linalg.inv(arms[0].T @ np.diag(w) @ arms[0])
        return max(float(v @ inverse @ v) for v in y[0])

    found = min(
        minimize(worst, start, method="Nelder-Mead", options={"maxiter": 20_000, "xatol": 1e-9}).fun
        for start in (np.zeros(5), np.array([1.0, 0, 0, 0, -1]))
    )
    weights, value = optimal_design(arms, y, tolerance=1e-3)
    assert value[0] <= found * 1.001
    assert worst(np.log(np.maximum(weights[0], 1e-12))) == pytest.approx(value[0], rel=1e-3)


def test_a_path_has_the_same_design_alone() -> None:
    arms = random_arms(4, 8, 3)
    together = optimal_design(arms, pairs(arms)[2])
    for path in range(4):
        x = arms[path : path + 1]
        alone = optimal_design(x, pairs(x)[2])
        np.testing.assert_allclose(together[0][path], alone[0][0], rtol=1e-9)


def test_more_steps_make_no_design_worse_and_leave_no_tiny_weight() -> None:
    arms = random_arms(5, 12, 4)
    found = [optimal_design(arms, pairs(arms)[2], tolerance=1e-6, steps=n) for n in range(1, 25)]
    assert (np.diff([value for _, value in found], axis=0) <= 0).all()
    weights, _ = optimal_design(arms, pairs(arms)[2])
    assert ((weights == 0) | (weights > 1e-5)).all()
    assert (weights == 0).any()


def test_greedy_says_what_one_more_pull_would_leave() -> None:
    arms = random_arms(2, 4, 3)
    y, gram = pairs(arms)[2], arms.mT @ arms
    root = np.asarray(np.linalg.cholesky(np.linalg.inv(gram)), np.float64)
    found = greedy(root, arms, y)
    for path in range(2):
        for k in range(4):
            inverse = np.linalg.inv(gram[path] + np.outer(arms[path, k], arms[path, k]))
            assert found[path, k] == pytest.approx(max(v @ inverse @ v for v in y[path]))


def test_rounding_keeps_the_total_and_the_support() -> None:
    weights = np.random.default_rng(0).dirichlet(np.full(6, 0.5), 50)
    weights[weights < 0.02] = 0
    weights /= weights.sum(axis=1, keepdims=True)
    total = np.random.default_rng(1).integers(100, 1000, 50)
    pulls = rounded(weights, total)
    np.testing.assert_array_equal(pulls.sum(axis=1), total)
    assert ((pulls > 0) == (weights > 0)).all()
    assert np.abs(pulls - total[:, None] * weights).max() <= 3  # at most half the support


def test_the_complexity_of_unit_vectors_is_that_of_k_arms() -> None:
    means = np.array([1.0, 0.7, 0.2, 0.0])
    w = optimal_proportions(means[None])[0]
    cost = max((1 / w[0] + 1 / w[a]) / (means[0] - means[a]) ** 2 for a in (1, 2, 3))
    assert complexity(np.eye(4), means) == pytest.approx(cost, rel=2e-4)
    assert lower_bound(np.eye(4), means, delta=0.01, noise_scale=3) == pytest.approx(
        18 * cost * math.log(1 / 0.024), rel=2e-4
    )


def test_optimal_proportions_are_optimal() -> None:
    """All comparisons are equally hard, and the squares of the shares balance."""
    means = np.random.default_rng(3).standard_normal((20, 5))
    for mean, w in zip(means, optimal_proportions(means), strict=True):
        best = mean.argmax()
        others = np.arange(5) != best
        evidence = w[best] * w / (w[best] + w) * (mean[best] - mean) ** 2
        np.testing.assert_allclose(evidence[others], evidence[others][0], rtol=1e-9)
        assert (w[others] ** 2).sum() == pytest.approx(w[best] ** 2)


# Calibration


@pytest.mark.parametrize(("noise", "block"), [(Cauchy(), 21), (StudentT(0.5), 61), (Normal(2), 1)])
def test_the_median_scale_is_the_smallest_that_holds(noise: Noise, block: int) -> None:
    failure, half = 1e-4, (block + 1) / 2
    low = betaincinv(half, half, failure / 2)
    assert 2 * betainc(half, half, low) == pytest.approx(failure)
    scale = median_scale(noise, block=block, failure=failure)

    def needed(h: float) -> float:  # 2 ln E[cosh(hM)]/h², by another quadrature
        def mass(u: float) -> float:
            return math.exp((half - 1) * math.log(u * (1 - u)) - betaln(half, half))

        def part(u: float) -> float:
            return mass(u) * math.cosh(h * float(noise.ppf(u)))

        total = quad(part, low, 0.5, limit=400)[0] / ((1 - failure) / 2)
        return 2 * math.log(total) / h**2

    tried = [needed(h / scale) for h in np.geomspace(0.3, 12, 40)]
    assert max(tried) <= scale**2 * (1 + 1e-4)
    assert max(tried) >= scale**2 * (1 - 2e-2)


@pytest.mark.parametrize("failure", [0.5, 0.01])
def test_the_median_scale_of_a_uniform_law_is_its_deviation(failure: float) -> None:
    """Given |M| ≤ q one sample is uniform on [−q, q], which is sub-Gaussian with its variance."""
    scale = median_scale(Uniform(3), block=1, failure=failure)
    assert scale == pytest.approx(3 * (1 - failure) / math.sqrt(3), rel=2e-5)


def test_delta_is_shared_between_recipe_and_filter() -> None:
    policy = behind_filter(RAGE(delta=0.1), Cauchy(), block=21, max_pulls=21_000, blocks=4)
    scale = median_scale(Cauchy(), block=21, failure=0.05 / 1000)
    assert policy.policy == RAGE(delta=0.05, noise_scale=scale / 2)
    assert policy.pulls == 84
    assert policy.estimator.length(84) == 21  # type: ignore[attr-defined]


# Regressions


def test_least_squares_are_without_the_penalty() -> None:
    rng = np.random.default_rng(5)
    x, rewards, y = (rng.standard_normal(shape) for shape in ((6, 3), 6, (1, 4, 3)))
    state, path = Race.start(1, 4, 3, PENALTY), np.array([0])
    state.update(x[:1], rewards[:1, None])
    assert np.isinf(state.least_squares(path, y)[1]).all()
    assert np.isfinite(state.least_squares(path, x[None, :1])[1]).all()
    for arm, reward in zip(x[1:, None], rewards[1:, None, None], strict=True):
        state.update(arm, reward)
    value, norm = state.least_squares(path, y)
    np.testing.assert_allclose(value[0], y[0] @ np.linalg.lstsq(x, rewards)[0], rtol=1e-7)
    square = [v @ np.linalg.solve(x.T @ x, v) for v in y[0]]
    np.testing.assert_allclose(norm[0], np.sqrt(square), rtol=1e-7)
    state.restart(path)
    for name, array in Race.start(1, 4, 3, PENALTY).to_arrays().items():
        np.testing.assert_array_equal(state.to_arrays()[name], array)


@pytest.mark.parametrize("recipe", [GAllocation(), LazyTrackAndStop()], ids=repr)
def test_estimates_are_in_the_unit_of_the_arms(recipe: BestArm[Any]) -> None:
    arms, theta = 5 * np.eye(2), np.array([0.3, -0.7])
    state, _ = race(recipe, arms, lambda arm, t: float(arms[arm] @ theta), 40)
    np.testing.assert_allclose(np.asarray(recipe.estimate(state))[0], theta, rtol=1e-4)


# One-path references, written from the pseudo-code


def wave(seed: int, arms: Array, theta: Array, scale: float) -> Callable[[int, int], float]:
    noise = np.random.default_rng(seed).standard_normal(20_000)
    return lambda arm, t: float(arms[arm] @ theta + scale * noise[t])


def lin_gap_e(p: LinGapE, arms: Array, rewards: Callable[[int, int], float]) -> list[int]:
    count, dim = arms.shape
    a, b = p.ridge * np.eye(dim), np.zeros(dim)
    trace: list[int] = []
    for t in range(10_000):
        inverse = np.linalg.inv(a)
        theta = inverse @ b
        i = int(np.argmax(arms @ theta))
        ratio = math.sqrt(np.linalg.det(a) / p.ridge**dim)
        c = p.noise_scale * math.sqrt(2 * math.log(count**2 * ratio / p.delta))
        c += math.sqrt(p.ridge) * p.norm_bound
        index = [(x - arms[i]) @ theta + c * math.sqrt((x - arms[i]) @ inverse @ (x - arms[i]))
                 if k != i else -math.inf for k, x in enumerate(arms)]  # fmt: skip
        j = int(np.argmax(index))
        if t >= count and index[j] <= p.gap_tolerance:
            return [*trace, -1 - i]
        y = arms[i] - arms[j]
        left = [y @ np.linalg.inv(a + np.outer(x, x)) @ y for x in arms]
        k = t if t < count else int(np.argmin(left))
        a, b = a + np.outer(arms[k], arms[k]), b + rewards(k, t) * arms[k]
        trace.append(k)
    raise AssertionError


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("recipe", [LinGapE(norm_bound=2), LinGapE(ridge=0.3, gap_tolerance=0.05)])
def test_lin_gap_e_does_what_the_paper_says(recipe: LinGapE, seed: int) -> None:
    arms = np.array([[1.0, 0.1, 0.0], [0.0, 1.0, 0.2], [0.1, 0.0, 1.0], [0.9, 0.4, 0.1]])
    recipe = replace(recipe, noise_scale=0.3)
    rewards = wave(seed, arms, np.array([1.0, 0.1, 0.3]), 0.3)
    state, trace = race(recipe, arms, rewards, 5000)
    assert [*trace, -1 - int(recipe.recommend(state)[0])] == lin_gap_e(recipe, arms, rewards)


@pytest.mark.parametrize("seed", range(3))
def test_rage_goes_through_the_phases_of_the_paper(seed: int) -> None:
    """With unit vectors the design is even on the m arms left, and ρ = 2m."""
    means, k, sigma, delta = np.array([1.0, 0.9, 0.4, -0.5]), 4, 0.7, 0.1
    policy = RAGE(noise_scale=sigma, delta=delta, offset=-1)
    rewards, rng = wave(seed, np.eye(k), means, sigma), np.random.default_rng(0)
    state, active, t = policy.init(1, k, k), [0, 1, 2, 3], 0
    for phase in range(1, 20):
        log = math.log(2 * k**2 * phase**2 / delta)
        wanted = 8 * 4 ** (phase - 1) * sigma**2 * 2 * len(active) * 1.1 * log
        wanted = max(math.ceil(wanted), 20 * len(active))
        counts, sums = np.zeros(k), np.zeros(k)
        while state.phase[0] == phase:
            chosen = policy.choose(state, np.eye(k)[None], rng)
            reward = rewards(int(chosen[0]), t)
            policy.learn(state, np.eye(k)[None], chosen, [[reward]])
            counts[chosen], sums[chosen], t = counts[chosen] + 1, sums[chosen] + reward, t + 1
        left = [a for a in range(k) if a not in active]
        assert counts[left].sum() <= 0.02 * wanted  # the design is good to 1 %, and so is ρ
        assert counts.sum() == pytest.approx(wanted, rel=0.0 if len(active) == k else 0.01)
        assert np.ptp(counts[active]) <= 1 + 0.03 * wanted / len(active) * (len(active) < k)
        mean = sums[active] / counts[active]
        width = sigma * np.sqrt(2 * log * (1 / counts[active] + 1 / counts[active][:, None]))
        kept = ~(mean[None, :] - mean[:, None] >= width).any(axis=1)
        active = np.array(active)[kept].tolist()
        assert state.active[0].nonzero()[0].tolist() == active
        if len(active) == 1:
            break
        assert not policy.stopped(state).any()
    assert phase >= 2
    assert policy.recommend(state).tolist() == active == [0]


@pytest.mark.parametrize("offset", [1, -1])
def test_rage_measures_as_finely_as_the_phase_asks(offset: int) -> None:
    """Every phase halves the gap in sight, up to 2²⁵: N_t grows fourfold, and by its logarithm."""
    phases = np.array([1, 5, 6, 12, 20, 24])
    policy = RAGE(noise_scale=1e-2, offset=offset)
    state, arms = policy.init(len(phases), 2, 2), np.tile(np.eye(2), (len(phases), 1, 1))
    state.phase[:] = phases
    policy.learn(state, arms, np.zeros(len(phases), dtype=np.int64), np.zeros((len(phases), 1)))
    log = np.log(2 * 2**2 * phases**2 / 0.05)
    wanted = 8 * 4.0 ** (phases + offset) * 1e-4 * 4 * 1.1 * log  # ρ = 4 for two unit vectors
    np.testing.assert_allclose(state.plan.sum(axis=1) + 1, np.maximum(wanted, 40), rtol=0.01)


def test_an_arm_out_of_the_race_beats_no_other() -> None:
    """Arm 0 was dropped; in a later phase it looks best by far, and says nothing of 1 and 2."""
    state, arms = RAGE().init(1, 4, 4), np.eye(4)[None]
    state.active[0, 0] = False
    for arm, reward in enumerate([100.0, 1.0, 1.0, -50.0]):
        state.update(arms[:, arm], np.array([[reward]]))
    state.finish(arms, np.array([0]), np.array([5.0]), 0.0)
    assert state.active[0].tolist() == [False, True, True, False]
    assert state.answer.tolist() == [-1]


def lazy_track_and_stop(
    p: LazyTrackAndStop, arms: Array, basis: list[int], rewards: Callable[[int, int], float]
) -> list[int]:
    count, dim = arms.shape
    c1 = float(np.linalg.eigvalsh(arms[basis].T @ arms[basis])[0])
    a, b, n = np.zeros((dim, dim)), np.zeros(dim), np.zeros(count)
    w, total, turn, due = np.full(count, 1 / count), np.zeros(count), 0, dim
    trace: list[int] = []
    for t in range(1, 10_000):
        if np.linalg.eigvalsh(a)[0] < c1 * math.sqrt(t / dim) - 1e-9:
            k, turn = basis[turn % dim], turn + 1
        else:
            total = total + w
            k = min(np.flatnonzero(total > 0), key=lambda i: (n - total)[i])
        a, b = a + np.outer(arms[k], arms[k]), b + rewards(int(k), t - 1) * arms[k]
        n[k] += 1
        trace.append(int(k))
        if t < dim:
            continue
        theta = np.linalg.solve(a, b)
        best = int(np.argmax(arms @ theta))
        others = [i for i in range(count) if i != best]
        y = arms[best] - arms[others]
        norms = np.array([v @ np.linalg.solve(a, v) for v in y])
        z = ((y @ theta) ** 2 / (2 * norms)).min()
        log = math.log(math.sqrt(np.linalg.det(a / (p.u * c1) + np.eye(dim))) / p.delta)
        if z > (1 + p.u) * p.noise_scale**2 * log:
            return [*trace, -1 - best]
        if t == due:
            directions = np.zeros((1, count, dim))
            directions[0, others] = y / (y @ theta)[:, None] * (y @ theta).max()
            w, due = optimal_design(arms[None], directions)[0][0], 2 * due
    raise AssertionError


@pytest.mark.parametrize("seed", range(3))
def test_lazy_track_and_stop_does_what_the_paper_says(seed: int) -> None:
    arms = np.array([[1.0, 0.1, 0.0], [0.0, 1.1, 0.2], [0.1, 0.0, 1.3], [0.9, 0.3, 0.1]])
    recipe = LazyTrackAndStop(noise_scale=0.2)
    rewards = wave(seed, arms, np.array([1.0, 0.1, 0.3]), 0.2)
    state, trace = race(recipe, arms, rewards, 5000)
    basis = state.basis[0].tolist()
    assert len(set(basis)) == 3
    expected = lazy_track_and_stop(recipe, arms, basis, rewards)
    assert len(expected) > 20
    assert [*trace, -1 - int(recipe.recommend(state)[0])] == expected


def worst(gram: Array, pool: list[Array]) -> float:
    return max(float(y @ np.linalg.solve(gram, y)) for y in pool)


def greedy_arm(gram: Array, arms: Array, pool: list[Array]) -> int:
    left = [worst(gram + np.outer(x, x), pool) for x in arms]
    return int(np.argmin(left))


def allocation(
    p: GAllocation | XYAllocation, arms: Array, rewards: Callable[[int, int], float]
) -> list[int]:
    count, dim = arms.shape
    gram: Array = 1e-4 * np.eye(dim)
    moment: Array = np.zeros(dim)
    trace: list[int] = []
    pool = [x - z for x in arms for z in arms] if isinstance(p, XYAllocation) else list(arms)
    for n in range(1, 10_000):
        k = greedy_arm(gram, arms, pool)
        gram = gram + np.outer(arms[k], arms[k])
        moment = moment + rewards(k, n - 1) * arms[k]
        trace.append(k)
        theta = np.linalg.solve(gram, moment)
        best = int(np.argmax(arms @ theta))
        log = math.log(6 / math.pi**2 * n**2 * count**2 / p.delta)
        sure = True
        for z in np.delete(arms, best, axis=0):
            y = arms[best] - z
            width = 2 * math.sqrt(2) * p.noise_scale * math.sqrt(worst(gram, [y]) * log)
            sure = sure and bool(y @ theta >= width)
        if sure:
            return [*trace, -1 - best]
    raise AssertionError


@pytest.mark.parametrize("recipe", [GAllocation(noise_scale=0.1), XYAllocation(noise_scale=0.1)])
def test_allocations_do_what_the_paper_says(recipe: GAllocation | XYAllocation) -> None:
    arms = np.array([[1.0, 0.1], [0.2, 1.1], [0.9, 0.45]])
    rewards = wave(5, arms, np.array([1.0, 0.1]), 0.1)
    state, trace = race(recipe, arms, rewards, 5000)
    assert [*trace, -1 - int(recipe.recommend(state)[0])] == allocation(recipe, arms, rewards)
    assert len(trace) > 50


def test_xy_adaptive_goes_through_the_phases_of_the_paper() -> None:
    arms, sigma, delta = np.array([[1.0, 0.1], [0.2, 1.1], [0.9, 0.45]]), 0.5, 0.1
    policy = XYAdaptive(noise_scale=sigma, delta=delta)
    rewards = wave(2, arms, np.array([1.0, 0.1]), sigma)
    state, trace = race(policy, arms, rewards, 5000)
    active, goal, j, t = {0, 1, 2}, 1 / 7, 1, 0
    while len(active) > 1:
        gram: Array = 1e-4 * np.eye(2)
        moment: Array = np.zeros(2)
        pool: list[Array] = [arms[i] - arms[k] for i, k in itertools.permutations(active, 2)]
        n = 0
        while n == 0 or worst(gram, pool) / n > 0.1 * goal:
            k = greedy_arm(gram, arms, pool)
            assert trace[t] == k
            gram = gram + np.outer(arms[k], arms[k])
            moment = moment + rewards(k, t) * arms[k]
            n, t = n + 1, t + 1
        theta = np.linalg.solve(gram, moment)
        log = math.log(2 * math.pi**2 * 9 * j**2 / (6 * delta))
        goal, j = worst(gram, pool) / n, j + 1
        for i, k in itertools.permutations(tuple(active), 2):
            y = arms[k] - arms[i]
            if y @ theta >= sigma * math.sqrt(2 * log * worst(gram, [y])):
                active = active - {i}
    assert j > 3
    assert t == len(trace)
    assert set(policy.recommend(state).tolist()) == active


@pytest.mark.parametrize("threshold", ["proved", "experiments"])
def test_track_and_stop_does_what_the_paper_says(
    threshold: Literal["proved", "experiments"],
) -> None:
    means, k, sigma, delta = np.array([0.2, 1.0, 0.6, 0.8]), 4, 0.5, 0.1
    policy = TrackAndStop(noise_scale=sigma, delta=delta, threshold=threshold)
    rewards = wave(4, np.eye(k), means, sigma)
    state, trace = race(policy, np.eye(k), rewards, 5000)
    n: Array = np.zeros(k)
    sums: Array = np.zeros(k)
    for t, arm in enumerate(trace):  # t pulls were made before this one
        if t < k:
            assert arm == t
        elif n.min() < math.sqrt(t) - k / 2:
            assert arm == n.argmin()
        else:
            assert arm == (t * optimal_proportions((sums / n)[None])[0] - n).argmax()
        n[arm], sums[arm] = n[arm] + 1, sums[arm] + rewards(arm, t)
        if t + 1 < k:
            continue
        best, now = int((sums / n).argmax()), t + 1
        evidence: Array = n[best] * n / (n[best] + n) * (sums[best] / n[best] - sums / n) ** 2
        z = float(np.delete(evidence, best).min()) / (2 * sigma**2)
        proved = math.log(2 * now * (k - 1) / delta)
        beta = proved if threshold == "proved" else math.log((math.log(now) + 1) / delta)
        assert (z > beta) == (now == len(trace))
    assert policy.recommend(state).tolist() == [best] == [1]


def test_successive_elimination_is_content_when_the_interval_is_short() -> None:
    recipe = SuccessiveElimination(noise_scale=0.5, delta=0.1, gap_tolerance=1)
    _, trace = race(recipe, np.eye(2), lambda arm, t: 0.0, 400)
    rounds = (t for t in itertools.count(1) if math.sqrt(2 * math.log(80 * t**2) / t) <= 1)
    assert len(trace) == 2 * next(rounds)


def test_the_first_round_may_be_the_last() -> None:
    recipe = LinGapE(noise_scale=1e-3, ridge=1e-8)
    state, trace = race(recipe, np.eye(3), lambda arm, t: float(arm), 10)
    assert trace == [0, 1, 2]
    assert recipe.recommend(state).tolist() == [2]


def test_track_and_stop_waits_until_every_direction_is_known() -> None:
    """A ≥ c₁I, also if the pulls were others than it would have made."""
    recipe, arms = LazyTrackAndStop(noise_scale=1e-6), np.array([[1.0, 0], [0, 1], [0, 0.1]])
    state = recipe.init(1, 3, 2)
    for t in range(220):
        recipe.learn(state, arms[None], [2 * (t % 2)], [[arms[2 * (t % 2), 0]]])
        assert recipe.stopped(state)[0] == (t >= 199)  # c₁ = 1 = λ_min of 100 times 0.1²
    assert recipe.recommend(state).tolist() == [0]


@pytest.mark.parametrize("quantile", [0.5, 0.8])
def test_intervals_are_the_order_statistics_of_the_paper(quantile: float) -> None:
    """U = X_(J) and L = X_(n+1−J'), J' at level 1 − π."""
    policy, n = QuantileLUCB(delta=0.1, quantile=quantile), 90
    state = policy.init(1, 2, 1)
    for reward in np.random.default_rng(0).permutation(np.arange(1.0, n + 1)):
        policy.learn(state, np.ones((1, 2, 1)), [0], [[reward]])
    assert state.upper[0, 0] == rank(n, math.log(20), quantile)
    assert state.lower[0, 0] == n + 1 - rank(n, math.log(20), 1 - quantile)


def test_intervals_that_touch() -> None:
    """An arm is named when L reaches U of all others, and eliminated only when its U is below L."""
    state, trace = race(QuantileLUCB(), np.eye(2), lambda arm, t: float(arm or t % 2), 200)
    assert len(trace) < 200
    assert QuantileLUCB().recommend(state).tolist() == [1]
    assert state.lower[0, 1] == state.upper[0, 0] == 1
    state, trace = race(QuantileElimination(), np.eye(2), lambda arm, t: 1.0, 100)
    assert len(trace) == 100
    assert state.active.all()


def test_an_infinite_bound_is_no_missing_one() -> None:
    """L = +∞ of one arm does not reach the U of another that has no bound yet."""
    policy, arms = QuantileLUCB(), np.ones((1, 2, 1))
    state = policy.init(1, 2, 1)
    for _ in range(30):
        policy.learn(state, arms, [1], [[math.inf]])
    assert state.lower[0, 1] == state.upper[0, 0] == math.inf
    assert policy.recommend(state).tolist() == [-1]
    while not policy.stopped(state)[0]:
        policy.learn(state, arms, [0], [[0.0]])
    assert policy.recommend(state).tolist() == [1]


def test_from_regret_names_what_the_policy_played_most() -> None:
    policy = FromRegret(UCB1(), decisions=30)
    state, trace = race(policy, np.eye(3), lambda arm, t: float(arm == 1), 100)
    assert len(trace) == 30
    assert state.plays[0].tolist() == [trace.count(a) for a in range(3)]
    assert policy.recommend(state)[0] == np.bincount(trace).argmax() == 1
    table = np.tile([0.0, 1.0, 0.0], (30, 1, 1))
    _, inner = play(UCB1(), None, table)
    assert trace == inner[:, 0].tolist()


def test_successive_elimination_keeps_the_rounds_of_the_paper() -> None:
    policy = SuccessiveElimination(noise_scale=0.5, delta=0.1)
    means = np.array([0.0, 1.0, 0.3])
    rewards = wave(1, np.eye(3), means, 0.5)
    state, trace = race(policy, np.eye(3), rewards, 5000)
    active, sums, t, place = [0, 1, 2], np.zeros(3), 0, 0
    while len(active) > 1:
        t += 1
        for a in active:
            assert trace[place] == a
            sums[a] += rewards(a, place)
            place += 1
        radius = 0.5 * math.sqrt(2 * math.log(4 * 3 * t**2 / 0.1) / t)
        top = max(sums[a] / t for a in active)
        active = [a for a in active if top - sums[a] / t < 2 * radius]
    assert place == len(trace)
    assert policy.recommend(state).tolist() == active == [1]


@pytest.mark.parametrize("law", [Pareto(1.3), TwoPoint(9.0, 0.0, 0.1)])
def test_a_filter_of_skewed_rewards_names_what_to_use(law: Noise) -> None:
    with pytest.raises(ValueError, match=r"symmetric with a density, got .*QuantileLUCB\(\)"):
        behind_filter(LinGapE(), law, block=41, max_pulls=10**5)
