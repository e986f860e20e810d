"""Rules of every kind become probabilities."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import tailproof as tp
from tailproof.judging.rules import named, probabilities
from tailproof.tables import Records, records
from tailproof.typing import Array

RNG = np.random.default_rng(0)


def log(n: int = 8, **more: Any) -> Records:
    arm = np.array(["A", "B"])[np.arange(n) % 2]
    return records(arm=arm, reward=np.arange(float(n)), propensity=np.full(n, 0.5), **more)


def shares(rule: Any, own: Records) -> Array:
    return probabilities("rule", rule, own, RNG)


def test_arms_mixtures_and_tables() -> None:
    groups = log(group=["m", "d"] * 4)
    assert shares("B", log())[0].tolist() == [0, 1]
    assert shares("always:B", log())[0].tolist() == [0, 1]
    assert shares("even", log())[0].tolist() == [0.5, 0.5]
    assert shares({"A": 0.3, "B": 0.7}, log())[0].tolist() == [0.3, 0.7]
    table = {"m": "B", "d": {"A": 0.9, "B": 0.1}}
    assert shares(table, groups)[:2].tolist() == [[0, 1], [0.9, 0.1]]
    with pytest.raises(ValueError, match="the group 'd'"):
        shares({"m": "B", "x": "A"}, groups)


def test_functions_get_the_features_and_give_arms_or_probabilities() -> None:
    x = np.linspace(-1, 1, 8)[:, None]
    plain = log(features=x)
    assert shares(lambda v: np.where(v[:, 0] > 0, "B", "A"), plain)[:, 1].sum() == 4
    frame = pd.DataFrame({"age": x[:, 0]})
    own = records(
        frame.assign(arm=["A", "B"] * 4, reward=0.0, propensity=0.5, group="m"), features=["age"]
    )
    assert (
        shares(lambda t: np.where(t["age"] > 0, "B", t["group"].map({"m": "A"})), own)[:, 1].sum()
        == 4
    )
    half = pd.DataFrame({"B": np.full(8, 0.25), "A": np.full(8, 0.75)})
    assert shares(half, plain)[0].tolist() == [0.75, 0.25]


def test_offers_are_respected() -> None:
    offered = np.ones((8, 2), bool)
    offered[0, 1] = False
    assert shares("even", log(offered=offered))[:2].tolist() == [[1, 0], [0.5, 0.5]]
    with pytest.raises(ValueError, match="chooses B in row 1, where it was not offered"):
        shares("B", log(offered=offered))


def test_a_policy_is_asked_as_it_stands() -> None:
    ucb = tp.UCB1()
    state = ucb.init(1, 2, 2)
    for arm, reward in ((0, 0.0), (1, 5.0)):
        ucb.learn(state, np.eye(2)[None], [arm], [[reward]])
    assert shares((ucb, state), log())[:, 1].tolist() == [1.0] * 8
    assert state.counts.sum() == 2  # nothing was learned


@pytest.mark.parametrize("policy", [tp.LinRevenueUCB(), tp.LinStudentUCB(), tp.LinTS()])
def test_a_policy_with_features_is_asked_as_in_production(policy: Any) -> None:
    """Row by row, the probabilities are those of asking it with that visitor; LinTS draws."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((8, 2))
    own = log(features=x)
    by = tp.features.share if policy.view == "context" else tp.features.cross

    def arms(visitor: Array) -> Array:
        return np.stack(list(by(["A", "B"], visitor).values()))[None]

    state = policy.init(1, 2, arms(x[0]).shape[2])
    for visitor in rng.standard_normal((40, 2)):
        chosen = policy.choose(state, arms(visitor), rng)
        policy.learn(state, arms(visitor), chosen, [[float(visitor[0] * (1 - 2 * chosen[0])) + 2]])
    found = shares((policy, state), own)
    assert found.shape == (8, 2)
    for row, visitor in zip(found, x, strict=True):
        right = policy.propensities(state, arms(visitor))
        if right is not None:
            np.testing.assert_allclose(row, right[0])


def test_rules_have_names() -> None:
    given = ["A", "even", {"A": 0.5, "B": 0.5}, (tp.UCB1(), None), tp.UCB1()]
    assert list(named(given)) == [
        "always A",
        "even",
        "50% A, 50% B",
        "UCB1 as it stands",
        "UCB1 from scratch",
    ]
    assert list(named({"mine": "A", "table": {"m": "B"}})) == ["mine", "table"]
    with pytest.raises(ValueError, match="names of their own"):
        named(["A", "A"])
