"""Visitors' features: crossed with arms, shared by them, and scaled."""

import numpy as np
import pytest

from tailproof import LinRevenueUCB, LinStudentUCB, features
from tailproof.live import Agent


def test_crossed_vectors_are_a_regression_for_each_arm() -> None:
    found = features.cross(["a", "b", "c"], [2.0, 3.0])
    assert [x.shape for x in found.values()] == [(9,)] * 3
    gram = np.array([found[arm] for arm in "abc"])
    np.testing.assert_array_equal(gram @ gram.T, 14 * np.eye(3))
    assert found["b"][3:6].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("policy", "offer"),
    [(LinRevenueUCB(), features.share), (LinStudentUCB(), features.cross)],
    ids=["shared", "crossed"],
)
def test_agents_take_them(policy: LinRevenueUCB | LinStudentUCB, offer: object) -> None:
    agent = Agent(policy, ":memory:")
    for reward in (0.0, 3.0, 0.0, 1.0):
        ticket = agent.ask(offer(["a", "b"], [0.5, -1.0]))  # type: ignore[operator]
        assert ticket.arm in ("a", "b")
        agent.tell(ticket.id, reward)


def test_a_scaler_knows_no_units_and_fears_no_outlier() -> None:
    x = np.random.default_rng(0).normal(size=(500, 3))
    x[:, 2] = 7  # constant
    scaler = features.Scaler.of(x)
    other = features.Scaler.of(x * [1000, 0.01, 5] + [9, -3, 1])
    np.testing.assert_allclose(other(x * [1000, 0.01, 5] + [9, -3, 1]), scaler(x), atol=1e-12)
    assert np.linalg.norm(scaler([1e9, -1e9, 0]), axis=-1) <= 1
    wild = x.copy()
    wild[0] = 1e12
    np.testing.assert_allclose(features.Scaler.of(wild).spread[:2], scaler.spread[:2], rtol=0.02)
    flag = (np.arange(100) < 5).astype(float)[:, None]
    assert features.Scaler.of(flag)([1.0])[0] > 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: features.cross([], [1.0]), "arms must be names that differ"),
        (lambda: features.share(["a", "a"], [1.0]), "arms must be names that differ"),
        (lambda: features.cross(["a"], [np.nan]), "visitor must be a row of numbers"),
        (lambda: features.Scaler.of([1.0]), "visitors must be a row of numbers for each"),
        (lambda: features.Scaler.of([[1.0, 2.0]])([1.0]), "visitor must be 2 numbers"),
    ],
)
def test_bad_features_are_named(call: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()  # type: ignore[operator]
