"""What a simulation measures besides regret."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tailproof as tp
from tailproof import environments, noise
from tailproof.simulation import Snapshot, memory

BANDIT = environments.k_armed(noise.Normal(), locations=(0.0, 1.0, 3.0))
NAMES = ["share_of_best", "simple_regret", "pulls_by_arm"]


def play(policy: Any, **settings: Any) -> tp.Curves:
    given: dict[str, Any] = {"horizon": 20, "paths": 3, "engine": "serial", "metrics": NAMES}
    result = tp.simulate({"a": policy}, BANDIT, **(given | settings))
    return result.curves["a"]


def test_a_fixed_arm_has_known_metrics() -> None:
    worst, best = play(tp.FixedArm(arm=0)), play(tp.FixedArm(arm=2))
    assert (worst.metrics["share_of_best"] == 0).all()
    assert (worst.metrics["simple_regret"] == 3).all()
    assert (best.metrics["share_of_best"] == 1).all()
    assert (best.metrics["simple_regret"] == 0).all()
    assert worst.metrics["pulls_by_arm"].shape == (3, 20, 3)
    assert worst.metrics["pulls_by_arm"][1, 4].tolist() == [5, 0, 0]


def test_metrics_agree_with_the_log_of_actions() -> None:
    """Recomputed from the log by hand, for a policy that pulls every arm."""
    curves = play(tp.UCB1(), actions=True, checkpoints=(7, 13), paths=600)
    log = curves.actions
    assert log is not None
    assert log.shape == (600, 20)
    gaps = np.array([3.0, 2.0, 0.0])
    np.testing.assert_allclose(curves.regret[:, -1], gaps[log].sum(axis=1))
    for place, mark in enumerate((7, 13, 20)):
        counts = np.stack([(log[:, :mark] == arm).sum(axis=1) for arm in range(3)], axis=1)
        np.testing.assert_array_equal(curves.metrics["pulls_by_arm"][:, place], counts)
        share = curves.metrics["share_of_best"][:, place]
        np.testing.assert_allclose(share, counts[:, 2] / mark)
        most = counts == counts.max(axis=1, keepdims=True)
        wanted = [gaps[row].mean() for row in most]
        np.testing.assert_allclose(curves.metrics["simple_regret"][:, place], wanted)


def test_only_complete_decisions_count() -> None:
    """A filter of 8 in 20 pulls: two decisions are complete, the third is in the log alone."""
    filtered = tp.Filtered(tp.FixedArm(arm=1), repeats=8, estimator=tp.Median())
    curves = play(filtered, actions=True, checkpoints=(4, 16))
    assert curves.actions is not None
    assert curves.actions.tolist() == [[1, 1, 1]] * 3
    assert curves.metrics["pulls_by_arm"][0].tolist() == [[0, 0, 0], [0, 16, 0], [0, 16, 0]]
    assert np.isnan(curves.metrics["share_of_best"][0, 0])
    assert curves.decisions.tolist() == [0, 2, 2]


def test_a_policy_that_recommends_is_asked() -> None:
    curves = play(tp.bestarm.QuantileLUCB(delta=0.2), horizon=4000, metrics=["simple_regret"])
    assert (curves.metrics["simple_regret"][:, -1] == 0).all()


def test_a_metric_of_ones_own_sees_the_simulation() -> None:
    def means(now: Snapshot) -> Any:
        assert now.arms.shape == (2, 3, 3)
        return now.state.sums

    curves = play(tp.UCB1(), paths=2, metrics={"means": means, "n": lambda now: now.counts[:, 0]})
    assert curves.metrics["means"].shape == (2, 20, 3)
    assert (curves.metrics["n"][:, -1] >= 1).all()


def test_measuring_changes_nothing_and_is_kept(tmp_path: Path) -> None:
    plain, measured = play(tp.UCB1(), metrics=()), play(tp.UCB1(), actions=True)
    np.testing.assert_array_equal(plain.regret, measured.regret)
    assert plain.metrics == {}
    assert plain.actions is None
    settings: Any = {"horizon": 20, "paths": 501, "actions": True, "out": tmp_path / "cells"}
    policies = {f"p{i}": tp.UCB1(bonus=1 + i) for i in range(12)}
    metrics: Any = {"m": lambda now: now.pulls + now.counts[:, 1], "m1": lambda now: now.counts}
    runs = [tp.simulate(policies, BANDIT, metrics=metrics, **settings) for _ in range(2)]
    loaded = tp.Result.load(runs[0].save(tmp_path / "result.npz"))
    for name in policies:
        for other in (runs[1], loaded):
            one, two = runs[0].curves[name], other.curves[name]
            assert one.metrics.keys() == two.metrics.keys() == {"m", "m1"}
            np.testing.assert_array_equal(one.metrics["m1"], two.metrics["m1"])
            np.testing.assert_array_equal(one.metrics["m"], two.metrics["m"])
            np.testing.assert_array_equal(one.actions, two.actions)
    changed: Any = {"m": lambda now: now.pulls + now.counts[:, 2], "m1": metrics["m1"]}
    again = tp.simulate(policies, BANDIT, metrics=changed, **settings)
    assert (again.metric("p0", "m") != runs[0].metric("p0", "m")).any()


def test_metrics_are_tables_and_pictures() -> None:
    result = tp.simulate({"a": tp.UCB1()}, BANDIT, horizon=20, paths=3, metrics=NAMES)
    assert result.plot(metric="share_of_best").axes[0].get_ylabel() == "share of best"
    assert "<th>simple regret</th>" in result._repr_html_()
    frame = result.to_pandas()
    assert {"share_of_best", "simple_regret"} <= set(frame.columns)
    assert frame["share_of_best"].to_numpy()[-1] == result.metric("a", "share_of_best")[-1, -1]
    with pytest.raises(ValueError, match="metric must be a metric with a number for each path"):
        result.plot(metric="pulls_by_arm")


FRESH = environments.neutral(noise.Normal(), arms=4, dim=3)
BALL = environments.unit_ball(noise.Normal(), dim=3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"metrics": ["simple_regrets"]}, "did you mean simple_regret"),
        ({"metrics": "simple_regret"}, "metrics must be a list of names"),
        ({"metrics": [len]}, "functions are given by name, as {'my_metric': my_metric}"),
        ({"metrics": {"a": 3}}, r"metrics\['a'\] must be a function of a Snapshot"),
        ({"metrics": {"a.b": len}}, "a name in metrics must be another word without a dot"),
        ({"metrics": {"regret": len}}, "a name in metrics must be another word"),
        ({"metrics": {"a": lambda now: 3}}, r"metrics\['a'\] must be a function that returns 3"),
        ({"metrics": ["simple_regret"], "environment": FRESH}, "simple_regret needs arms that"),
        ({"metrics": ["share_of_best"], "environment": BALL}, "a unit ball has none"),
        ({"actions": True, "environment": BALL}, "a unit ball has none"),
        ({"actions": 1}, "actions must be True or False"),
        ({"progress": 1}, "progress must be True, False, or a function"),
        ({"policies": {"a": tp.UCB1}}, r"policies\['a'\] must be a policy, such as UCB1\(\)"),
        ({"policies": [tp.UCB1()]}, "policies must be a mapping from names to policies, such as"),
        ({"environment": noise.Normal()}, "environment must be a bandit to play, such as"),
        ({"horizon": 1.5}, "horizon must be a whole number"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], words: str) -> None:
    policies = {"a": tp.PEGE() if change.get("environment") is BALL else tp.UCB1()}
    given: dict[str, Any] = {"policies": policies, "environment": BANDIT, "horizon": 9, "paths": 3}
    with pytest.raises(ValueError, match=words):
        tp.simulate(**(given | change))


def test_compiled_code_measures_regret_alone() -> None:
    pytest.importorskip("numba")
    with pytest.raises(ValueError, match="compiled code measures regret alone"):
        play(tp.UCB1(), engine="compiled")


def test_whole_numbers_may_be_written_as_floats() -> None:
    result = tp.simulate({"a": tp.UCB1()}, BANDIT, horizon=1e2, paths=3.0, checkpoints=1e1)  # type: ignore[arg-type]
    assert result.settings["horizon"] == result.pulls[-1] == 100
    assert result.curves["a"].regret.shape == (3, 10)


def test_a_filter_longer_than_the_horizon_is_said() -> None:
    with pytest.warns(UserWarning, match=r"policies\['f'\] wants 500 pulls for a decision"):
        tp.simulate({"f": tp.Filtered(tp.UCB1(), repeats=500)}, BANDIT, horizon=100, paths=2)


def test_what_does_not_fit_into_memory_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_memory", lambda: 2.0**30)
    wide = environments.neutral(noise.Normal(), arms=5, dim=600)
    with pytest.raises(ValueError, match=r"600 dimensions takes about [\d.]+ GiB for 500 paths"):
        tp.simulate({"a": tp.OFUL()}, wide, horizon=10, paths=1000)
    tp.Plan(policies={"a": tp.OFUL()}, environment=wide, horizon=10, paths=2)
    with pytest.raises(ValueError, match=r"the result would take 1.49 GiB, twice that.*has 1 GiB"):
        tp.simulate({"a": tp.UCB1()}, BANDIT, horizon=1000, paths=10**6)
    with pytest.raises(ValueError, match=r"the result would take 0.52\d* GiB, twice that"):
        tp.simulate({"a": tp.UCB1()}, BANDIT, horizon=1000, paths=350_000)  # fits without its parts


def test_a_single_location_is_refused() -> None:
    with pytest.raises(ValueError, match="locations must be a sequence of at least two numbers"):
        environments.k_armed(noise.Normal(), locations=(1.0,))
