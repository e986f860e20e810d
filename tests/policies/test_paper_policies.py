"""The paper's baselines and the layered policies, against plain one-path references."""

import math
from typing import Any

import numpy as np
import pytest
from references import Reference, crt, menu, mom, sup, tofu, tofu_theta
from rotation import Check, briefly, by_class, everything, sample
from traces import play, row, trace_of

from tailproof import (
    CRT,
    MENU,
    TOFU,
    Filtered,
    Mean,
    MoM,
    Policy,
    SupBMM,
    SupBTC,
    SupLinRel,
    SupLinUCB,
    Uniform,
    compositions,
    simulate,
    testing,
)
from tailproof.environments.linear import neutral
from tailproof.noise import StudentT
from tailproof.typing import Array


def stage(decisions: int, paths: int, pulls: int, noise: str, seed: int = 0) -> tuple[Array, Array]:
    """Return arms (decisions, paths, 6, 3) and rewards for each pull of each arm."""
    rng = np.random.default_rng(seed)
    arms = rng.standard_normal((decisions, paths, 6, 3))
    arms /= np.linalg.norm(arms, axis=-1, keepdims=True)
    arms *= np.linspace(0.6, 1, 6)[:, None]  # so that rounding decides nothing
    shape = (*arms.shape[:3], pulls)
    eta = rng.standard_cauchy(shape) if noise == "cauchy" else rng.standard_normal(shape)
    return arms, arms[..., :1] * 0.9 + eta


T = 10_000
CASES: dict[str, tuple[Any, Reference]] = {
    "CRT": (CRT(epsilon=1, moment_bound=3, bonus=0.1), crt),
    "CRT, half": (CRT(epsilon=0.5, moment_bound=2, delta=0.1), crt),
    "MoM": (MoM(horizon=1000, epsilon=1, moment_bound=1, blocks=18, bonus=0.05), mom),
    "MoM, all blocks": (MoM(horizon=9000, epsilon=1, moment_bound=1, bonus=0.05), mom),
    "MoM, half": (MoM(horizon=3000, epsilon=0.5, moment_bound=2, delta=0.5, bonus=0.02), mom),
    "MENU": (MENU(horizon=T, epsilon=1, moment_bound=1, replicates=9, bonus=0.05), menu),
    "MENU, half": (
        MENU(horizon=T, epsilon=0.5, moment_bound=3, replicates=8, ridge=2, bonus=0.02),
        menu,
    ),
    "TOFU": (TOFU(horizon=T, epsilon=1, moment_bound=2, bonus=0.05), tofu),
    "TOFU, half": (
        TOFU(horizon=T, epsilon=0.5, moment_bound=9, ridge=2, norm_bound=2, bonus=0.02),
        tofu,
    ),
    "SupBMM": (SupBMM(horizon=T, epsilon=1, moment_bound=1, replicates=5, bonus=0.1), sup),
    "SupBMM, flat": (
        SupBMM(horizon=T, epsilon=0.5, moment_bound=1, replicates=4, bonus=0.1, layered=False),
        sup,
    ),
    "SupBMM, experiments": (
        SupBMM(
            horizon=T,
            epsilon=1,
            moment_bound=1,
            replicates=5,
            bonus=0.1,
            layered=False,
            width="experiments",
        ),
        sup,
    ),
    "SupBTC": (SupBTC(horizon=T, epsilon=1, moment_bound=1, bonus=0.02), sup),
    "SupBTC, half": (SupBTC(horizon=T, epsilon=0.5, moment_bound=1, bonus=0.02), sup),
    "SupBTC, flat": (SupBTC(horizon=T, epsilon=1, moment_bound=1, bonus=0.02, layered=False), sup),
    "SupBTC, experiments": (
        SupBTC(
            horizon=T,
            epsilon=0.5,
            moment_bound=1,
            bonus=0.2,
            layered=False,
            threshold="euclidean",
            width="experiments",
        ),
        sup,
    ),
    "SupLinUCB": (SupLinUCB(horizon=T, bonus=0.1), sup),
    "SupLinUCB, flat": (SupLinUCB(horizon=T, layered=False), sup),
    "SupLinRel": (SupLinRel(horizon=T, bonus=0.1), sup),
}


@pytest.mark.parametrize("noise", ["normal", "cauchy"])
@pytest.mark.parametrize("name", CASES)
def test_the_batch_decides_as_the_reference(name: str, noise: str) -> None:
    """One of two paths, the first under normal and the second under Cauchy noise."""
    policy, reference = CASES[name]
    arms, rewards = stage(120, 2, policy.pulls, noise)
    trace, path = trace_of(policy, arms, rewards), int(noise == "cauchy")
    assert trace[:, path].tolist() == reference(policy, arms[:, path], rewards[:, path])
    assert len(np.unique(trace)) > 2


@pytest.mark.parametrize("name", [name for name in CASES if name[:4] in ("TOFU", "SupB")])
def test_the_batch_decides_as_the_reference_when_arms_grow(name: str) -> None:
    """What was settled for short arms is not settled for long ones."""
    policy, reference = CASES[name]
    arms, rewards = stage(120, 2, policy.pulls, "cauchy", seed=3)
    grown = 1 + np.arange(720).reshape(120, 1, 6, 1) / 100  # longer than all before
    grown[:50] *= 0.02  # long enough for rewards to be settled, short enough to teach little
    arms *= grown / np.linalg.norm(arms, axis=-1, keepdims=True)
    state, trace = play(policy, arms, rewards)
    for path in range(2):
        assert trace[:, path].tolist() == reference(policy, arms[:, path], rewards[:, path])
    if isinstance(policy, TOFU):
        found = policy.estimate(state)
        for path in range(2):
            at = np.arange(120), path, trace[:, path]
            exact = tofu_theta(policy, list(arms[at]), rewards[at][:, 0].tolist())
            np.testing.assert_allclose(found[path], exact, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("path", "quiet"), [(0, slice(10, 40)), (1, slice(0, 90))])
@pytest.mark.parametrize("name", ["SupBTC", "SupBMM", "SupLinUCB", "SupLinRel"])
def test_the_batch_decides_as_the_reference_when_it_does_not_always_learn(
    name: str, path: int, quiet: slice
) -> None:
    """Arms without length are known for sure: a layered policy learns nothing from them."""
    policy, reference = CASES[name]
    arms, rewards = stage(180, 2, policy.pulls, "cauchy", seed=5)
    arms[quiet] = 0
    trace = trace_of(policy, arms, rewards)
    expected = reference(policy, arms[:, path], rewards[:, path])
    loud = (arms[:, path] != 0).any(axis=(1, 2))  # among equal arms any will do
    assert trace[loud, path].tolist() == np.array(expected)[loud].tolist()


def test_a_state_that_learned_little_is_restored() -> None:
    policy = SupBTC(horizon=T, epsilon=1, moment_bound=1)
    state, _ = play(policy, np.zeros((40, 1, 6, 3)), np.ones((40, 1, 6)))
    again = policy.restore(state.to_arrays()).y
    used = again.shape[-1]  # what the decisions need, not what was made room for
    np.testing.assert_array_equal(again, state.y[..., :used])
    assert not state.y[..., used:].any()


PUBLISHED: dict[str, Any] = {
    "SupLinUCB": SupLinUCB(horizon=300),
    "SupLinRel": SupLinRel(horizon=300),
    "SupBMM": SupBMM(horizon=300, epsilon=1, moment_bound=0.2, replicates=3),
    "SupBTC": SupBTC(horizon=300, epsilon=1, moment_bound=0.01, delta=0.9),
}
"""The published width, `bonus=1`, played until more than one level has samples."""


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_sieve_is_the_reference(name: str) -> None:
    policy = PUBLISHED[name]
    decisions = 700 if name == "SupBTC" else 300
    arms, rewards = stage(decisions, 1, policy.pulls, "normal", seed=4)
    arms = arms[:, :, :3, :1]  # one dimension is soon known well
    learned: list[int] = []
    trace = trace_of(policy, arms, rewards[:, :, :3])
    assert trace[:, 0].tolist() == sup(policy, arms[:, 0], rewards[:, 0, :3], learned)
    assert learned.count(1) > 3
    assert learned.count(2) > 3


POLICIES: list[Policy[Any]] = [policy for policy, _ in CASES.values()]


@pytest.mark.parametrize(("policy", "check"), sample(by_class(POLICIES)))
def test_contract(policy: Policy[Any], check: Check) -> None:
    briefly(check, policy)


@pytest.mark.parametrize("policy", everything(by_class(POLICIES)))
def test_contract_in_full(policy: Policy[Any]) -> None:
    testing.check_policy(policy)
    testing.check_policy(Filtered(policy, repeats=3, estimator=Mean()))


GOLDEN = {
    "CRT": "555554555334154515542154554545",
    "CRT, half": "555555555535555555545455555545",
    "MoM": "554555555313555530243454445545",
    "MoM, half": "554540552313552510243454453545",
    "MENU": "554553153343553510442454453545",
    "MENU, half": "554555354344554510242454443545",
    "TOFU": "555555554544555545545454455545",
    "TOFU, half": "545545555525555535243434555545",
    "SupBMM": "555555555535555333245455555545",
    "SupBMM, flat": "553445425153555110242454452545",
    "SupBTC": "555555555345555533545455555445",
    "SupBTC, half": "555555555555545555555545545315",
    "SupBTC, flat": "554551534105552530213354453545",
    "SupLinUCB": "555555451445554525514354453545",
    "SupLinUCB, flat": "553545555455135334245454553545",
    "SupLinRel": "545343555544544445445535555545",
}
"""The choices of one path; a change here changes results and belongs in the changelog."""


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_trace(name: str) -> None:
    policy = CASES[name][0]
    assert row(trace_of(policy, *stage(30, 1, policy.pulls, "normal", seed=1))) == GOLDEN[name]


LEARNERS: dict[str, Policy[Any]] = {
    "CRT": CRT(epsilon=1, moment_bound=3, bonus=0.1),
    "MoM": MoM(horizon=500, epsilon=1, moment_bound=3, blocks=18, bonus=1 / 40),
    "MENU": MENU(horizon=500, epsilon=1, moment_bound=3, replicates=11, bonus=1 / 50),
    "TOFU": TOFU(horizon=500, epsilon=1, moment_bound=3, bonus=0.05),
    "SupBMM": SupBMM(horizon=500, epsilon=1, moment_bound=3, replicates=11, bonus=0.01),
    "SupBTC": SupBTC(horizon=500, epsilon=1, moment_bound=3, bonus=0.01),
    "SupLinUCB": SupLinUCB(horizon=500, bonus=0.2),
    "SupLinRel": SupLinRel(horizon=500, bonus=0.1),
}
"""With one bonus multiplier each: the published bonuses explore throughout so short a horizon."""


@pytest.mark.parametrize("name", LEARNERS)
def test_it_beats_chance_where_its_assumptions_hold(name: str) -> None:
    """By more than five standard errors of the paired difference: a false alarm in 10⁶.

    On four seeds the difference was at least 16 standard errors.
    """
    policies = {name: LEARNERS[name], "chance": Uniform()}
    bandit = neutral(StudentT(3, scale=0.5), arms=8, dim=3)
    result = simulate(policies, bandit, horizon=500, paths=12, seed=2, checkpoints=1)
    gain = result.curves["chance"].regret[:, -1] - result.curves[name].regret[:, -1]
    assert gain.mean() > 5 * gain.std(ddof=1) / math.sqrt(12)


@pytest.mark.parametrize("label", compositions.LABELS)
def test_the_papers_names_are_compositions(label: str) -> None:
    settings: dict[str, dict[str, Any]] = {
        "mom_filtered": {"horizon": 3000, "moment_bound": 1, "delta": 0.2},
        "crt_filtered": {"moment_bound": 1},
        "menu_filtered": {"horizon": 3000, "moment_bound": 1, "replicates": 5},
        "tofu_filtered": {"horizon": 3000, "moment_bound": 1},
        "sup_bmm_filtered": {"horizon": 3000, "moment_bound": 1, "replicates": 5},
        "sup_btc_filtered": {"horizon": 3000, "moment_bound": 1},
    }
    policy = getattr(compositions, label)(repeats=16, **settings[label])
    assert isinstance(policy, Filtered)
    assert policy.pulls == 16 * policy.policy.pulls
    assert compositions.LABELS[label] == f"{type(policy.policy).__name__}_mom"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: CRT(epsilon=0, moment_bound=1),
            "epsilon must be a number above 0 and at most 1, got 0",
        ),
        (
            lambda: CRT(epsilon=1, moment_bound=-1),
            "moment_bound must be a finite number above 0, got -1",
        ),
        (
            lambda: MoM(horizon=30, epsilon=1, moment_bound=1),
            "horizon=30 leaves 5 pulls for 56 blocks: raise horizon, or set fewer",
        ),
        (
            lambda: MENU(horizon=50, epsilon=1, moment_bound=1),
            "horizon must be at least the 229 pulls of one decision .or set replicates., got 50",
        ),
        (lambda: MENU(horizon=50, epsilon=1.1, moment_bound=1), "epsilon"),
        (
            lambda: TOFU(horizon=50, epsilon=1, moment_bound=0),
            "moment_bound must be a finite number above 0, got 0",
        ),
        (
            lambda: SupBMM(horizon=50, epsilon=1, moment_bound=1),
            "pass either arms or replicates, got arms=None, replicates=None",
        ),
        (
            lambda: SupBMM(horizon=50, epsilon=1, moment_bound=1, arms=20),
            "horizon must be at least the 109 pulls of one decision",
        ),
        (lambda: SupBMM(horizon=50, epsilon=1, moment_bound=1, replicates=0), "replicates"),
        (
            lambda: SupBTC(horizon=50, epsilon=1, moment_bound=1, threshold="x"),  # type: ignore[arg-type]
            "threshold must be one of",
        ),
        (lambda: SupBTC(horizon=1, epsilon=1, moment_bound=1), "horizon"),
        (lambda: SupLinUCB(horizon=50, delta=0), "delta"),
        (lambda: SupLinRel(horizon=50, bonus=-1), "bonus"),
    ],
)
def test_bad_settings_are_named(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_settling_changes_no_value() -> None:
    """Truncation that looks at all samples again gives the same values as one that settles."""
    policy = SupBTC(horizon=T, epsilon=1, moment_bound=1, layered=False, bonus=0.1)
    arms, rewards = stage(400, 3, 1, "cauchy")
    state, _ = play(policy, arms, rewards)
    assert (state.settled > 1).all()
    everyone = np.arange(3)
    value, _ = policy._predict(state, arms[0], 0, everyone)
    state.settled[:] = -1
    state.moment[:] = 0
    again, _ = policy._predict(state, arms[0], 0, everyone)
    np.testing.assert_allclose(value, again, rtol=1e-9, atol=1e-12)
