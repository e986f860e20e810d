"""Bandits of other libraries keep our whole contract, alone and behind filters."""

import importlib.util
import logging
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rotation import Check, briefly, everything, sample

from tailproof import OFUL, AutoFiltered, Filtered, Median, Policy, guests, recipes, testing

PACKAGES = {
    "mabwiser": "mabwiser",
    "river": "river",
    "vw": "vowpalwabbit",
    "bayesianbandits": "bayesianbandits",
    "coba": "coba",
    "pymab": "pymab",
    "contextualbandits": "contextualbandits",
}


def _mabwiser() -> dict[str, Policy[Any]]:
    from mabwiser.mab import LearningPolicy

    return {
        "MABWiser UCB1": guests.mabwiser(LearningPolicy.UCB1(1.25)),
        "MABWiser epsilon": guests.mabwiser(LearningPolicy.EpsilonGreedy(0.1)),
        "MABWiser softmax": guests.mabwiser(LearningPolicy.Softmax(1.0)),
        "MABWiser LinUCB": guests.mabwiser(LearningPolicy.LinUCB(1.0)),
        "MABWiser LinTS": guests.mabwiser(LearningPolicy.LinTS(0.5)),
    }


def _river() -> dict[str, Policy[Any]]:
    from river import bandit, proba, stats

    return {
        "River UCB": guests.river(bandit.UCB(delta=1)),
        "River epsilon": guests.river(bandit.EpsilonGreedy, epsilon=0.1, decay=0.001),
        "River epsilon median": guests.river(
            bandit.EpsilonGreedy(epsilon=0.1, reward_obj=stats.Quantile(0.5), burn_in=1)
        ),
        "River Thompson": guests.river(
            bandit.ThompsonSampling,
            reward_obj=guests.made(proba.Gaussian),
        ),
        "River LinUCB": guests.river(bandit.LinUCBDisjoint(alpha=1.0)),
    }


def _vw() -> dict[str, Policy[Any]]:
    adf = "--cb_explore_adf -b 8"
    return {
        "VW epsilon": guests.vw(f"{adf} --epsilon 0.1", view="arms"),
        "VW context": guests.vw(f"{adf} --epsilon 0.1 -q sa", view="context"),
        "VW softmax": guests.vw(f"{adf} --softmax --lambda 2"),
        "VW SquareCB": guests.vw(f"{adf} --squarecb"),
    }


def _bayesianbandits() -> dict[str, Policy[Any]]:
    from bayesianbandits import (
        NormalInverseGammaRegressor,
        NormalRegressor,
        ThompsonSampling,
        UpperConfidenceBound,
    )

    normal = NormalRegressor(alpha=1.0, beta=1.0)
    gamma = NormalInverseGammaRegressor()
    return {
        "bayesianbandits Thompson": guests.bayesianbandits(ThompsonSampling(), gamma),
        "bayesianbandits UCB": guests.bayesianbandits(UpperConfidenceBound(samples=50), normal),
        "bayesianbandits contextual": guests.bayesianbandits(ThompsonSampling(), normal, True),
    }


def _coba() -> dict[str, Policy[Any]]:
    from coba.learners import BanditEpsilonLearner, BanditUCBLearner, LinUCBLearner

    return {
        "coba UCB": guests.coba(BanditUCBLearner, view="arms"),
        "coba epsilon": guests.coba(BanditEpsilonLearner, view="arms", epsilon=0.1),
        "coba LinUCB": guests.coba(LinUCBLearner, features=[1, "a"]),
        "coba LinUCB context": guests.coba(LinUCBLearner, view="context"),
    }


def _pymab() -> dict[str, Policy[Any]]:
    from pymab.policies import GaussianThompsonSamplingPolicy, LinUCBPolicy, UCBPolicy

    return {
        "pymab UCB": guests.pymab(UCBPolicy),
        "pymab Thompson": guests.pymab(GaussianThompsonSamplingPolicy),
        "pymab LinUCB": guests.pymab(LinUCBPolicy),
    }


def _contextualbandits() -> dict[str, Policy[Any]]:
    from contextualbandits.online import LinTS, LinUCB

    return {
        "contextualbandits LinUCB": guests.contextualbandits(LinUCB, alpha=0.5),
        "contextualbandits LinTS": guests.contextualbandits(LinTS, sample_from="ci"),
    }


HERE = [name for name, package in PACKAGES.items() if importlib.util.find_spec(package)]
LIBRARIES: dict[str, dict[str, Any]] = {name: globals()[f"_{name}"]() for name in HERE}
GUESTS = {name: guest for found in LIBRARIES.values() for name, guest in found.items()}
FILTERS: dict[str, Callable[[Policy[Any]], Policy[Any]]] = {
    "alone": lambda policy: policy,
    "filtered": lambda policy: Filtered(policy, repeats=3, estimator=Median()),
    "auto": lambda policy: AutoFiltered(policy, repeats=3, settle=4),
}


@pytest.mark.parametrize("name", PACKAGES)
def test_the_package_of_each_guest_is_here(name: str) -> None:
    """A library whose guests cannot be tested is named among what was left out."""
    if name not in HERE:
        pytest.skip(f"{name} not tested: {PACKAGES[name]} is not installed")


BEHIND = {
    library: [wrap(guest) for guest in found.values() for wrap in FILTERS.values()]
    for library, found in LIBRARIES.items()
}
"""The guests from each library, alone and behind filters; see rotation.py."""


@pytest.mark.parametrize(("policy", "check"), sample(BEHIND))
def test_contract(policy: Policy[Any], check: Check) -> None:
    """Thirty decisions, as many guests learn all lessons again at each of them."""
    briefly(check, policy, decisions=30)


@pytest.mark.parametrize("policy", everything(BEHIND))
def test_contract_in_full(policy: Policy[Any]) -> None:
    testing.check_policy(policy)


def here(name: str) -> Any:
    """Return a guest, or leave the test out where its package is missing."""
    if name not in GUESTS:
        pytest.skip(f"{name} not tested: its package is not installed")
    return GUESTS[name]


def lessons(policy: Policy[Any], arms: Any, decisions: int = 60, seed: int = 0) -> Any:
    """Return a state after some decisions with Cauchy rewards."""
    rng, state = np.random.default_rng(seed), policy.init(*arms.shape)
    for _ in range(decisions):
        chosen = policy.choose(state, arms, rng)
        policy.learn(state, arms, chosen, chosen + rng.standard_cauchy((1, policy.pulls)))
    return state


_AGAIN = """
import sys
import numpy as np
sys.path.append("../../support")
import test_guests
for file in sys.argv[1:]:
    name, filtered = file.removesuffix(".npz").split("/")[-1].split(", ")
    policy = test_guests.FILTERS[filtered](test_guests.GUESTS[name])
    with np.load(file) as arrays:
        print(test_guests.course(policy, policy.restore(arrays)))
"""


def course(policy: Policy[Any], state: Any) -> str:
    """Return the next 100 choices as a text."""
    rng, arms = np.random.default_rng(7), np.ones((1, 4, 3)) / 2
    trace = ""
    for _ in range(100):
        chosen = policy.choose(state, arms, rng)
        policy.learn(state, arms, chosen, chosen + rng.standard_cauchy((1, policy.pulls)))
        trace += str(chosen[0])
    return trace


@pytest.mark.parametrize(
    "cases",
    [
        [("MABWiser UCB1", "auto"), ("River UCB", "filtered"), ("VW context", "auto")],
        pytest.param(
            [(name, filtered) for name in GUESTS for filtered in FILTERS], marks=pytest.mark.slow
        ),
    ],
    ids=["three", "all"],
)
def test_a_new_process_goes_on_with_the_same_choices(
    cases: list[tuple[str, str]], tmp_path: Path
) -> None:
    choices, files = {}, []
    for name, filtered in cases:
        policy = FILTERS[filtered](here(name))
        state = lessons(policy, np.ones((1, 4, 3)) / 2)
        files.append(tmp_path / f"{name}, {filtered}.npz")
        np.savez(files[-1], allow_pickle=False, **state.to_arrays())
        choices[name, filtered] = course(policy, state)
    child = subprocess.run(
        [sys.executable, "-c", _AGAIN, *map(str, files)],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert dict(zip(choices, child.stdout.split(), strict=True)) == choices


def test_a_reward_too_large_is_cut_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    policy = FILTERS["filtered"](here("River UCB"))
    state, arms = policy.init(2, 2, 1), np.ones((2, 2, 1))
    with caplog.at_level(logging.WARNING, logger="tailproof.integrations.guests"):
        policy.learn(state, arms, [0, 1], [[math.inf] * 3, [1.0] * 3])
        policy.learn(state, arms, [0, 1], [[-1e300] * 3, [1.0] * 3])
    assert guests.rewards_cut(state).tolist() == [2, 0]
    assert len(caplog.records) == 1
    assert "reward inf was clipped to 1e+30" in caplog.text
    assert state.inner.rewards[:, :2].tolist() == [[1e30, -1e30], [1.0, 1.0]]
    with pytest.raises(ValueError, match="state must be that of a guest"):
        guests.rewards_cut(Filtered(OFUL(), repeats=3).init(1, 2, 1))


def test_a_guest_says_what_it_wants_to_see() -> None:
    policy = here("MABWiser LinUCB")
    rng, x = np.random.default_rng(0), np.array([0.5, -1.0])
    blocks = np.kron(np.eye(3), x)[None]
    state = policy.init(*blocks.shape)
    policy.learn(state, blocks, [1], [[2.0]])
    assert state.seen[0, 0, : state.width[0, 0]].tolist() == x.tolist()
    others = rng.standard_normal(blocks.shape)
    for wrap in FILTERS.values():
        with pytest.raises(ValueError, match="this guest needs one context for all arms"):
            wrap(policy).choose(wrap(policy).init(*blocks.shape), others, rng)
    with pytest.raises(ValueError, match="no longer than 10000"):
        policy.choose(state, blocks * 1e5, rng)


def test_a_context_is_seen_through_the_intercept_of_a_filter() -> None:
    """Each arm has a θ of its own and rewards have an offset; the best one is found."""
    policy, rng = AutoFiltered(here("MABWiser LinUCB"), repeats=3), np.random.default_rng(0)
    theta, right, state = np.array([1.0, 0.0, 0.0, 1.0]), 0, policy.init(1, 2, 4)
    for t in range(200):
        blocks = np.kron(np.eye(2), rng.standard_normal(2))[None]
        chosen = policy.choose(state, blocks, rng)
        best = blocks[0] @ theta
        right += t >= 100 and best[chosen[0]] == best.max()
        policy.learn(state, blocks, chosen, 50 + best[chosen] + rng.standard_normal((1, 3)) / 9)
    assert state.inner.width[0, 0] == 3
    assert right > 90


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("MABWiser UCB1", "mabwiser('UCB1', alpha=1.25)"),
        ("River UCB", "river('UCB', delta=1)"),
        ("VW epsilon", "vw('--cb_explore_adf -b 8 --epsilon 0.1', view='arms')"),
        (
            "bayesianbandits UCB",
            "bayesianbandits(made('UpperConfidenceBound', samples=50), "
            "made('NormalRegressor', alpha=1.0, beta=1.0))",
        ),
        ("coba epsilon", "coba('BanditEpsilonLearner', view='arms', epsilon=0.1)"),
        ("pymab UCB", "pymab('UCBPolicy')"),
        ("contextualbandits LinUCB", "contextualbandits('LinUCB', alpha=0.5)"),
    ],
)
def test_a_recipe_may_name_a_guest(name: str, text: str) -> None:
    arms, guest = np.ones((1, 4, 3)) / 2, here(name)
    built = recipes.build("policy", text)
    assert course(built, built.init(*arms.shape)) == course(guest, guest.init(*arms.shape))
    behind = recipes.build("policy", f"filtered({text}, repeats=3, estimator=median)")
    assert behind == FILTERS["filtered"](built)


def test_naming_guests_loads_no_library() -> None:
    code = (
        "import sys; from tailproof import recipes; named = recipes.names('guest');"
        "assert {'river', 'vw'} < named.keys();"
        "assert not {'river', 'vowpalwabbit', 'mabwiser'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_a_recipe_cannot_name_is_refused() -> None:
    pytest.importorskip("river", reason="River not tested")
    for text in ("river('_x')", "river('envs')", "river('no.such')", "river('Ucb')"):
        with pytest.raises(ValueError, match="guest must be the name of a class of"):
            recipes.build("policy", text)
    with pytest.raises(ValueError, match=r"UCB does not take these settings: .*'Delta'"):
        recipes.build("policy", "auto_filtered(river('UCB', Delta=1))")
    with pytest.raises(ValueError, match="policy must be one of"):
        recipes.build("policy", "made('UCB')")
    with pytest.raises(ValueError, match="a part of a guest must be a class, got 'UCB'"):
        guests.made("UCB")()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymab", None)
    with pytest.raises(ImportError, match=r"needs pymab: pip install 'pymab>=2.0.1'"):
        guests.pymab(object)


def test_what_does_not_fit_is_refused() -> None:
    bandit: Any = pytest.importorskip("river.bandit", reason="River not tested")
    pytest.importorskip("vowpalwabbit", reason="VW not tested")
    with pytest.raises(ValueError, match="remembers its last pull"):
        guests.river(bandit.Exp3, gamma=0.1)
    with pytest.raises(ValueError, match=r"policy must be a policy of river\.bandit"):
        guests.river(dict)
    with pytest.raises(ValueError, match="a string that contains --cb_explore_adf"):
        guests.vw("--cb 4")


def test_vw_is_told_the_probability_of_its_choice() -> None:
    """The line that is learned names the cost, and the probability at the time of the choice."""
    policy = here("VW epsilon")
    state, arms = policy.init(1, 4, 1), np.ones((1, 4, 1))
    for _ in range(5):
        policy.learn(state, arms, [2], [[1.0]])
    (share,) = policy.propensities(state, arms).tolist()
    assert share == pytest.approx([0.025, 0.025, 0.925, 0.025])
    policy.learn(state, arms, [0], [[3.0]])
    assert state.propensity[0, 5] == pytest.approx(0.025)
    policy.learn(state, arms, [0], [[3.0]], propensity=[0.5])
    assert state.propensity[0, 6] == 0.5


def test_vw_weighs_a_lesson_by_its_probability() -> None:
    """A choice that was improbable counts for more."""
    pytest.importorskip("vowpalwabbit", reason="VW not tested")
    arms, shares = np.ones((1, 4, 1)), []
    policy = guests.vw("--cb_explore_adf --softmax --lambda 2 -b 8", view="arms")
    for told in (1.0, 0.05):
        state = policy.init(1, 4, 1)
        policy.learn(state, arms, [1], [[1.0]], propensity=[told])
        shares.append(np.asarray(policy.propensities(state, arms))[0, 1])
    assert shares[1] > shares[0] + 0.01


def test_only_public_names_are_listed() -> None:
    assert dir(guests) == sorted(guests.__all__)
