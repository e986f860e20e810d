"""RMM-UCB and HTINF against plain one-path references, golden traces, and what they promise."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom
from traces import row, trace_of

from tailproof import HTINF, RMMUCB, Policy, Uniform, environments, noise, simulate
from tailproof.policies.rmm_ucb import _flips
from tailproof.policies.state.medians import median_of_rows


def median_of_means(values: list[float], blocks: int) -> float:
    return float(np.median([np.mean(values[b::blocks]) for b in range(blocks)]))


def bound(xs: list[float], flips: Any, blocks: int) -> float:
    """The largest θ over the resamples up to which the left side is not above the right one."""
    if len(xs) < blocks:
        return math.inf
    found = -math.inf
    for flip in flips:
        signs = [-1.0 if one else 1.0 for one in flip[: len(xs)]]

        def above(theta: float, signs: list[float] = signs) -> bool:
            moved = [sign * (x - theta) for sign, x in zip(signs, xs, strict=True)]
            lead = median_of_means(moved, blocks) - (median_of_means(xs, blocks) - theta)
            return lead > 1e-9

        low, high = -1e5, 1e5
        if not above(high):
            return math.inf
        if above(low):
            continue
        while high - low > 1e-8:
            middle = (low + high) / 2
            low, high = (low, middle) if above(middle) else (middle, high)
        found = max(found, high)
    return found


@pytest.mark.parametrize("count", [1, 3, 5, 15, 33, 35])
def test_a_network_finds_the_median_of_rows(count: int) -> None:
    x = np.random.default_rng(0).integers(0, 9, (3, count, 200)).astype(float)
    x[0, 0, 0], x[1, 0, 1] = math.inf, -math.inf
    assert median_of_rows(x.copy()).tolist() == np.median(x, axis=1).tolist()


@pytest.mark.parametrize("blocks", [1, 3, 5])
def test_rmm_bounds_are_the_roots_of_the_definition(blocks: int) -> None:
    policy, rng = RMMUCB(blocks=blocks, resamples=64, seed=3), np.random.default_rng(1)
    state, arms, xs = policy.init(1, 2, 1), np.zeros((1, 2, 1)), []
    flips, finite = _flips(3, 64, 64).T, 0
    for n in range(16):
        xs.append(float(rng.standard_t(2)))
        policy.learn(state, arms, [1], [[xs[-1]]])
        for level, count in ((0, 1), (3, 8), (5, 32)):
            expected = bound(xs, flips[:count], blocks)
            finite += math.isfinite(expected)
            assert state.bounds[0, 1, level] == pytest.approx(expected, abs=1e-6), n
    assert finite > 10


def test_rmm_uses_more_resamples_as_time_passes() -> None:
    policy, arms = RMMUCB(blocks=1, resamples=64), np.zeros((1, 1, 1))
    state = policy.init(1, 1, 1)
    state.bounds[0, 0] = np.arange(7)
    found = []
    for t in (1, 2, 3, 4, 5, 64, 65, 10**6):
        state.decisions[:] = t - 1
        found.append(float(policy._index(state, arms)[0, 0]))
    assert found == [0, 1, 2, 2, 3, 6, 6, 6]


@pytest.mark.parametrize(("blocks", "law"), [(1, noise.StudentT(2)), (5, noise.Cauchy())])
def test_rmm_confidence_is_exact(blocks: int, law: noise.Noise) -> None:
    """P(μ > bound) = 1/(m + 1); false alarms with probability 1e-6 on either side."""
    paths, policy = 5_000, RMMUCB(blocks=blocks, resamples=64)
    state, arms = policy.init(paths, 1, 1), np.zeros((paths, 1, 1))
    zeros, rng = np.zeros(paths, dtype=np.int64), np.random.default_rng(2)
    for _ in range(35):
        policy.learn(state, arms, zeros, law.sample(rng, (paths, 1)))
    missed = int((state.bounds[:, 0, -1] < 0).sum())
    low, high = binom(paths, 1 / 65).ppf([5e-7, 1 - 5e-7])
    assert low <= missed <= high


def weights(losses: list[float], rate: float, alpha: float) -> list[float]:
    """The optimality condition, solved for its multiplier by bisection."""
    power = -alpha / (alpha - 1)
    scaled = [rate * loss for loss in losses]
    least = min(scaled)

    def excess(y: float) -> float:
        return math.fsum((s - least + y) ** power for s in scaled) - 1

    y = brentq(excess, 0.5, 1e3, xtol=1e-15, rtol=1e-15)
    return [(s - least + y) ** power for s in scaled]


@pytest.mark.parametrize(("epsilon", "moment"), [(1.0, 1.0), (0.4, 3.0)])
def test_htinf_is_the_published_algorithm(epsilon: float, moment: float) -> None:
    policy, alpha = HTINF(epsilon=epsilon, moment_bound=moment), 1 + epsilon
    sigma = moment ** (1 / alpha)
    share = 1 - 2 ** (-(alpha - 1) / (2 * alpha - 1))
    if alpha < 2:
        share = min(share, (2 - 2 / alpha) ** (1 / (2 - alpha)))
    rng, arms = np.random.default_rng(5), np.zeros((1, 3, 1))
    state, losses, skipped = policy.init(1, 3, 1), [0.0] * 3, 0
    for t in range(1, 300):
        rate = 1 / (sigma * t ** (1 / alpha))
        x = weights(losses, rate, alpha)
        shares = policy.propensities(state, arms)
        assert shares is not None
        np.testing.assert_allclose(shares[0], x, rtol=1e-9)
        chosen = int(policy.choose(state, arms, rng)[0])
        loss = float(rng.standard_t(1.5) - chosen)
        policy.learn(state, arms, [chosen], [[-loss]])
        if abs(loss) <= share / rate * x[chosen] ** (1 / alpha):
            losses[chosen] += loss / x[chosen]
        else:
            skipped += 1
        np.testing.assert_allclose(state.losses[0], losses, rtol=1e-9)
    assert 10 < skipped < 290


def test_htinf_draws_arms_with_its_weights() -> None:
    """False alarms with probability 1e-6 on either side of each arm."""
    paths, policy = 100_000, HTINF()
    state, arms = policy.init(paths, 3, 1), np.zeros((paths, 3, 1))
    state.losses[:] = [0.0, 1.0, -0.5]
    chosen = policy.choose(state, arms, np.random.default_rng(7))
    shares = policy.propensities(state, arms)
    assert shares is not None
    for arm, share in enumerate(shares[0]):
        low, high = binom(paths, share).ppf([1e-6, 1 - 1e-6])
        assert low <= (chosen == arm).sum() <= high


def test_htinf_follows_an_adversary_that_favours_another_arm() -> None:
    """Losses that swap halfway: the sum of both is the same, so no arm may be left for ever."""
    policy, arms, rng = HTINF(), np.zeros((1, 2, 1)), np.random.default_rng(3)
    state, shares = policy.init(1, 2, 1), []
    for t in range(6000):
        chosen = policy.choose(state, arms, rng)
        better = int(t >= 2000)
        policy.learn(state, arms, chosen, [[-0.5 * (int(chosen[0]) != better)]])
        found = policy.propensities(state, arms)
        assert found is not None
        shares.append(found[0, 1])
    assert shares[1999] < 0.1
    assert shares[-1] > 0.5


GOLDEN: dict[str, tuple[Policy[Any], str]] = {
    "RMM": (RMMUCB(blocks=3, resamples=64), "3333333333332223333333333333333333333333"),
    "MARS": (RMMUCB(blocks=1), "3333333333333333333333333333333333333333"),
    "HTINF": (HTINF(), "3223132303330333133321331223022020223030"),
}
"""The last 40 choices of one path; a change here changes results and belongs in the changelog."""


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_trace(name: str) -> None:
    policy, golden = GOLDEN[name]
    table = np.random.default_rng(5).standard_normal((120, 1, 4, 1)) + np.arange(4)[:, None]
    assert row(trace_of(policy, None, table)[-40:]) == golden


@pytest.mark.parametrize(
    ("policy", "law"),
    [(RMMUCB(resamples=64), noise.Cauchy(scale=0.3)), (HTINF(), noise.StudentT(3, scale=0.3))],
    ids=["RMM", "HTINF"],
)
def test_policy_beats_uniform_play(policy: Policy[Any], law: noise.Noise) -> None:
    """A sign test as in test_k_armed, with the same false-alarm rate of 1e-6."""
    bandit = environments.k_armed(law, locations=(-0.5, 0.0, 0.5))
    settings: Any = {"horizon": 1500, "paths": 40, "checkpoints": 1}
    result = simulate({"policy": policy, "uniform": Uniform()}, bandit, seed=1, **settings)
    ours, theirs = (result.curves[which].regret[:, -1] for which in ("policy", "uniform"))
    assert (ours < theirs).sum() >= 35


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"blocks": 4}, "blocks must be odd, got 4"), ({"resamples": 100}, "a power of two, got 100")],
)
def test_settings_are_checked(settings: dict[str, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        RMMUCB(**settings)
