"""K-armed policies against plain one-path references, golden traces, and their contract."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rotation import Check, briefly, by_class, everything, sample
from scipy.optimize import brentq
from traces import row, trace_of

from tailproof import Filtered, Median, Policy, Uniform, environments, noise, simulate, testing
from tailproof.policies.clipped_sgd import ClippedSGDUCB
from tailproof.policies.median_ucb import MedianUCB
from tailproof.policies.robust_ucb import RobustUCB
from tailproof.policies.state.robust_means import (
    CatoniMeans,
    MediansOfMeans,
    RobustMeans,
    TruncatedMeans,
)
from tailproof.policies.thompson import ThompsonSampling
from tailproof.typing import Array

Samples = list[list[float]]
Index = Callable[[Samples, int], list[float]]


def assert_follows(trace: NDArray[np.int64], table: Array, index: Index) -> None:
    """Replay each path: every choice has the largest index; ties (untried arms) may go any way.

    `index` takes the samples of each arm so far and the number t ≥ 1 of the decision.
    """
    ties = 0
    for path in range(trace.shape[1]):
        samples: Samples = [[] for _ in range(table.shape[2])]
        for t, chosen in enumerate(trace[:, path], start=1):
            values = index(samples, t)
            ties += values.count(max(values)) > 1
            assert values[chosen] == max(values), (path, t)
            samples[chosen].extend(table[t - 1, path, chosen])
    assert ties < trace.size / 2  # or the comparison would be worth little


def truncated_index(epsilon: float, u: float, bonus: float) -> Index:
    def index(samples: Samples, t: int) -> list[float]:
        values = []
        for xs in samples:
            if not xs:
                values.append(math.inf)
                continue
            log = math.log(t**2)
            kept = [
                x
                for j, x in enumerate(xs, start=1)
                if abs(x) <= (u * j / log) ** (1 / (1 + epsilon))
            ]
            width = 4 * u ** (1 / (1 + epsilon)) * (log / len(xs)) ** (epsilon / (1 + epsilon))
            values.append(sum(kept) / len(xs) + bonus * width)
        return values

    return index


def median_of_means_index(epsilon: float, v: float, bonus: float) -> Index:
    def index(samples: Samples, t: int) -> list[float]:
        values = []
        for xs in samples:
            if len(xs) < 2:
                values.append(math.inf)
                continue
            log = math.log(math.exp(1 / 8) * t**2)
            k = math.floor(min(8 * log, len(xs) / 2))
            size = math.floor(len(xs) / k)
            means = [np.mean(xs[j * size : (j + 1) * size]) for j in range(k)]
            width = (12 * v) ** (1 / (1 + epsilon))
            width *= (16 * log / len(xs)) ** (epsilon / (1 + epsilon))
            values.append(float(np.median(means)) + bonus * width)
        return values

    return index


def catoni_index(v: float, bonus: float) -> Index:
    def index(samples: Samples, t: int) -> list[float]:
        values = []
        for xs in samples:
            n, log = len(xs), math.log(t**2)
            if n == 0 or n < 4 * log:
                values.append(math.inf)
                continue
            x = np.array(xs)
            alpha = math.sqrt(2 * log / (n * (v + 2 * v * log / (n - 2 * log))))

            def influence(m: float, x: Array = x, alpha: float = alpha) -> float:
                z = alpha * (x - m)
                return float(np.sum(np.sign(z) * np.log(1 + np.abs(z) + z**2 / 2)))

            root = brentq(influence, x.min(), x.max(), xtol=1e-14, rtol=1e-14)
            values.append(root + bonus * 2 * math.sqrt(v * log / n))
        return values

    return index


def median_index(hazard: float, confidence: float, bonus: float) -> Index:
    def index(samples: Samples, t: int) -> list[float]:
        values = []
        for xs in samples:
            if not xs:
                values.append(math.inf)
                continue
            v, eps = 4 / (len(xs) * hazard**2), confidence * math.log(t - 1)
            width = math.sqrt(2 * v * eps) + 2 * eps * math.sqrt(v / len(xs))
            values.append(float(np.median(xs)) + bonus * width)
        return values

    return index


def clipped_sgd_index(horizon: int, bound: float, m: int, n: int, coefficient: float) -> Index:
    def index(samples: Samples, t: int) -> list[float]:
        values, each = [], (2 * m + 1) * n
        gamma = 1 / math.log(4 * (horizon + 1) / (1 / horizon**2))
        for xs in samples:
            if not xs:
                values.append(math.inf)
                continue
            x = min(max(float(np.median(xs[:each])), -bound), bound)
            for start in range(each, len(xs), each):
                gradients = [x - y for y in xs[start : start + each]]
                means = [sum(gradients[j * n : (j + 1) * n]) / n for j in range(2 * m + 1)]
                g = sorted(means)[m]
                x -= gamma * g * min(1, bound / abs(g))
            total = (t - 1) * each
            values.append(x + coefficient * math.sqrt(math.log(total) / len(xs)))
        return values

    return index


PLAIN: dict[str, tuple[Policy[Any], Index]] = {
    "truncated": (RobustUCB(estimator="truncated", moment_bound=3.0), truncated_index(1, 3, 1)),
    "truncated ε": (
        RobustUCB(estimator="truncated", epsilon=0.4, moment_bound=0.7, bonus=0.1),
        truncated_index(0.4, 0.7, 0.1),
    ),
    "median of means": (RobustUCB(moment_bound=0.5), median_of_means_index(1, 0.5, 1)),
    "median of means ε": (
        RobustUCB(estimator="median_of_means", epsilon=0.3, moment_bound=2.0, bonus=0.02),
        median_of_means_index(0.3, 2, 0.02),
    ),
    "catoni": (RobustUCB(estimator="catoni", moment_bound=0.3, bonus=0.3), catoni_index(0.3, 0.3)),
    "median": (MedianUCB(bonus=0.05), median_index(1, 4, 0.05)),
    "median α": (
        MedianUCB(hazard=0.6, confidence=1.5, bonus=0.3),
        median_index(0.6, 1.5, 0.3),
    ),
    # a short horizon, so that T + 1 differs from T
    "SGD": (ClippedSGDUCB(horizon=3, m=0, bonus=0.2), clipped_sgd_index(3, 1, 0, 1, 0.2)),
    "SGD-SMoM": (
        ClippedSGDUCB(horizon=9000, mean_bound=2.5, m=1, n=2),
        clipped_sgd_index(9000, 2.5, 1, 2, 0.1),
    ),
}


@pytest.mark.parametrize("name", PLAIN)
def test_policy_is_the_published_algorithm(name: str) -> None:
    """Cauchy rewards, so that truncation, clipping and large values all happen."""
    policy, index = PLAIN[name]
    table = np.random.default_rng(3).standard_cauchy((400, 2, 3, policy.pulls))
    table += np.array([0.0, 0.4, 0.8])[:, None]
    assert_follows(trace_of(policy, None, table), table, index)


@pytest.mark.parametrize(("noise_scale", "prior_scale"), [(1.0, 1.0), (0.5, 3.0)])
def test_thompson_is_the_published_algorithm(noise_scale: float, prior_scale: float) -> None:
    """Given the standard normals that the batch draws, before the lots for ties."""
    table, rng = np.random.default_rng(4).standard_normal((300, 2, 3, 1)), np.random.default_rng(0)
    normals = [(rng.standard_normal((2, 3)), rng.random(2))[0] for _ in range(300)]
    policy = ThompsonSampling(noise_scale=noise_scale, prior_scale=prior_scale)
    trace = trace_of(policy, None, table, np.random.default_rng(0))
    for path in range(2):
        mean, variance = [0.0] * 3, [prior_scale**2] * 3
        for t in range(300):
            z = normals[t][path]
            best = int(np.argmax([mean[a] + math.sqrt(variance[a]) * z[a] for a in range(3)]))
            assert trace[t, path] == best
            # Bayes' rule, one reward at a time
            gain = variance[best] / (variance[best] + noise_scale**2)
            mean[best] += gain * (table[t, path, best, 0] - mean[best])
            variance[best] *= 1 - gain


GOLDEN: dict[str, tuple[Policy[Any], str]] = {
    "truncated": (
        RobustUCB(estimator="truncated", moment_bound=20.0, bonus=0.1),
        "3102421024331122133333333333333333343003",
    ),
    "median of means": (RobustUCB(bonus=0.05), "3100442321444444444444444344444444444444"),
    "catoni": (
        RobustUCB(estimator="catoni", bonus=3.0),
        "4444444333344344443444434344434334444444",
    ),
    "median": (MedianUCB(bonus=0.1), "3102443443210444324414344444444443420444"),
    "SGD": (
        ClippedSGDUCB(horizon=40, mean_bound=4.0, m=0, bonus=1.5),
        "3102443443444444434344444344444444444344",
    ),
    "Thompson": (ThompsonSampling(prior_scale=3.0), "2023333413444444444444444444444444444444"),
}
"""The last 40 choices of one path; a change here changes results and belongs in the changelog."""


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_trace(name: str) -> None:
    policy, golden = GOLDEN[name]
    decisions = 400 if name == "catoni" else 40  # before, every arm's index may be infinite
    table = np.random.default_rng(5).standard_normal((decisions, 1, 5, 1)) + np.arange(5)[:, None]
    assert row(trace_of(policy, None, table)[-40:]) == golden


POLICIES: list[Policy[Any]] = [
    RobustUCB(estimator="truncated", epsilon=0.5),
    RobustUCB(estimator="median_of_means", bonus=0.01),
    RobustUCB(estimator="catoni", moment_bound=0.5),
    MedianUCB(bonus=0.1),
    ClippedSGDUCB(horizon=1000, m=0, n=1),
    ClippedSGDUCB(horizon=1000, m=2, n=3),
    ThompsonSampling(noise_scale=0.5),
]


@pytest.mark.parametrize(("policy", "check"), sample(by_class(POLICIES)))
def test_contract(policy: Policy[Any], check: Check) -> None:
    briefly(check, policy)


@pytest.mark.parametrize("policy", everything(by_class(POLICIES)))
def test_contract_in_full(policy: Policy[Any]) -> None:
    testing.check_policy(policy)
    testing.check_policy(Filtered(policy, repeats=3, estimator=Median()))


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_wild_path_disturbs_no_other_in_the_long_run(policy: Policy[Any]) -> None:
    """The contract again, for as long as it takes buffers to grow and Catoni's mean to exist."""
    table = np.random.default_rng(8).standard_cauchy((150, 3, 3, policy.pulls))
    calm = trace_of(policy, None, table)
    table[40:60, 0] = [[[math.inf]], [[-math.inf]]] * 10
    table[60:, 0] *= 1e200
    np.testing.assert_array_equal(trace_of(policy, None, table)[:, 1:], calm[:, 1:])


MEANS: dict[str, tuple[type[RobustMeans], Callable[[float, float, float], Index]]] = {
    "truncated": (TruncatedMeans, truncated_index),
    "median of means": (MediansOfMeans, median_of_means_index),
    "catoni": (CatoniMeans, lambda epsilon, v, bonus: catoni_index(v, bonus)),
}


@pytest.mark.parametrize("name", MEANS)
def test_robust_means_are_exact_for_many_samples(name: str) -> None:
    """Means that are seldom refreshed equal means from scratch, also on uneven paths."""
    kind, reference = MEANS[name]
    rng, index = np.random.default_rng(6), reference(1.0, 2.0, 0.0)
    state = kind.start(3, 2, 1)
    samples: list[Samples] = [[[], []] for _ in range(3)]
    for decision in range(1500):
        chosen = (rng.random(3) < [0.5, 0.9, 0.02]).astype(np.int64)
        rewards = rng.standard_t(1.5, 3) * 2 + 5
        state.update(chosen, rewards, 1.0, 2.0)
        state.decisions += 1
        for path in range(3):
            samples[path][chosen[path]].append(rewards[path])
        if decision % 50 == 49:
            for path in range(3):
                expected = np.array(index(samples[path], decision + 2))
                found = np.where(np.isinf(expected), np.inf, state.means[path])
                np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("drift", [0.0, 0.05, -0.05])
def test_running_medians_are_exact(drift: float) -> None:
    """A drift moves the median out of the window again and again; ties are frequent."""
    rng, state = np.random.default_rng(7), MedianUCB().init(4, 2, 1)
    samples: list[Samples] = [[[], []] for _ in range(4)]
    for decision in range(1500):
        chosen = (rng.random(4) < 0.8).astype(np.int64)
        rewards = np.round(rng.standard_cauchy(4), 1) + drift * decision
        state.update(chosen, rewards)
        state.decisions += 1
        for path in range(4):
            samples[path][chosen[path]].append(rewards[path])
            mine = samples[path][chosen[path]]
            assert state.medians[path, chosen[path]] == pytest.approx(np.median(mine), abs=1e-12)


WINS: dict[str, tuple[Policy[Any], noise.Noise]] = {
    "truncated": (RobustUCB(estimator="truncated", moment_bound=1.0), noise.StudentT(3, scale=0.3)),
    "median of means": (RobustUCB(moment_bound=0.27), noise.StudentT(3, scale=0.3)),
    "catoni": (RobustUCB(estimator="catoni", moment_bound=0.27), noise.StudentT(3, scale=0.3)),
    "median": (MedianUCB(hazard=2 / math.pi, bonus=0.1), noise.Cauchy()),
    "SGD": (ClippedSGDUCB(horizon=3000, m=1), noise.Cauchy()),
    "Thompson": (ThompsonSampling(), noise.Normal()),
}


@pytest.mark.parametrize("name", WINS)
def test_policy_beats_uniform_play(name: str) -> None:
    """The published widths where their assumptions hold (the median's width reduced to a tenth).

    A sign test: were regrets equal in law, 35 of 40 paths would favour the policy with a
    probability below 1e-6, the false-alarm rate.
    """
    policy, law = WINS[name]
    bandit = environments.k_armed(law, locations=(-0.5, 0.0, 0.5))
    settings: Any = {"horizon": 500 if name == "catoni" else 3000, "paths": 40, "checkpoints": 1}
    result = simulate({"policy": policy, "uniform": Uniform()}, bandit, seed=1, **settings)
    ours, theirs = (result.curves[which].regret[:, -1] for which in ("policy", "uniform"))
    assert (ours < theirs).sum() >= 35


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: RobustUCB(estimator="mean"),  # type: ignore[arg-type]
            "estimator must be one of truncated, median_of_means, catoni, got 'mean'",
        ),
        (lambda: RobustUCB(epsilon=0), "epsilon must be .* above 0 and at most 1, got 0"),
        (lambda: RobustUCB(epsilon=1.5), "epsilon must be .* got 1.5"),
        (
            lambda: RobustUCB(estimator="catoni", epsilon=0.5),
            'epsilon must be 1 for estimator="catoni", got 0.5',
        ),
        (lambda: RobustUCB(moment_bound=-1.0), "moment_bound must be .* got -1.0"),
        (lambda: RobustUCB(bonus=math.inf), "bonus must be .* got inf"),
        (lambda: MedianUCB(hazard=0), "hazard must be .* got 0"),
        (lambda: MedianUCB(confidence=-1), "confidence must be .* got -1"),
        (lambda: MedianUCB(bonus=math.nan), "bonus must be .* got nan"),
        (lambda: ClippedSGDUCB(horizon=0), "horizon must be .* got 0"),
        (lambda: ClippedSGDUCB(horizon=9, mean_bound=0), "mean_bound must be .* got 0"),
        (lambda: ClippedSGDUCB(horizon=9, m=-1), "m must be .* got -1"),
        (lambda: ClippedSGDUCB(horizon=9, n=0), "n must be .* got 0"),
        (lambda: ClippedSGDUCB(horizon=9, bonus=-2), "bonus must be .* got -2"),
        (lambda: ThompsonSampling(noise_scale=0), "noise_scale must be .* got 0"),
        (lambda: ThompsonSampling(prior_scale=-1), "prior_scale must be .* got -1"),
    ],
)
def test_bad_settings_are_named(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()
