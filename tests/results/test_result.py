"""Results: summaries, provenance, files."""

from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_rel

from tailproof import (
    OFUL,
    Curves,
    Identification,
    Result,
    Uniform,
    Verdicts,
    environments,
    noise,
    simulate,
)
from tailproof.results.provenance import provenance


@pytest.fixture(scope="module")
def result() -> Result:
    bandit = environments.neutral(noise.Cauchy(), arms=4, dim=3)
    return simulate(
        {"OFUL": OFUL(), "u": Uniform()}, bandit, horizon=40, paths=11, checkpoints=4, seed=9
    )


def test_summaries(result: Result) -> None:
    regret = result.curves["u"].regret
    np.testing.assert_allclose(result.mean("u"), regret.mean(axis=0))
    np.testing.assert_allclose(result.median("u"), np.median(regret, axis=0))
    np.testing.assert_allclose(result.quantile("u", 0.9), np.quantile(regret, 0.9, axis=0))
    row = result.summary()["u"]
    assert row["mean"] == pytest.approx(regret[:, -1].mean(), rel=1e-12)
    assert row["standard_error"] == pytest.approx(regret[:, -1].std(ddof=1) / np.sqrt(11))
    assert row["median"] == pytest.approx(np.median(regret[:, -1]), rel=1e-12)
    assert row["low"] == pytest.approx(np.sort(regret[:, -1])[1], rel=1e-12)  # of 11 paths
    assert row["high"] == pytest.approx(np.sort(regret[:, -1])[9], rel=1e-12)
    assert row["decisions"] == row["pulls"] == 40
    with pytest.raises(ValueError, match="policy must be one of OFUL, u, got 'v'"):
        result.mean("v")


def test_provenance(result: Result) -> None:
    settings = result.settings
    assert (settings["seed"], settings["horizon"], settings["paths"]) == (9, 40, 11)
    assert "Cauchy(scale=1.0)" in settings["environment"]
    assert settings["policies"]["OFUL"] == repr(OFUL())
    assert settings["versions"]["tailproof"] == version("tailproof")
    assert settings["versions"]["numpy"] == np.__version__


def test_files_keep_everything_and_are_never_overwritten(result: Result, tmp_path: Path) -> None:
    file = result.save(tmp_path / "r.npz")
    loaded = Result.load(file)
    np.testing.assert_array_equal(loaded.pulls, result.pulls)
    assert loaded.settings == result.settings
    assert list(loaded.curves) == ["OFUL", "u"]
    for name, curves in result.curves.items():
        np.testing.assert_array_equal(loaded.curves[name].regret, curves.regret)
        np.testing.assert_array_equal(loaded.curves[name].decisions, curves.decisions)
    assert loaded.curves["u"].error is None
    np.testing.assert_array_equal(loaded.curves["OFUL"].error, result.curves["OFUL"].error)
    before = file.read_bytes()
    with pytest.raises(ValueError, match=r"path .* exists already: results are never overwritten"):
        result.save(file)
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["r.npz"]


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", x=np.ones(3))
    (tmp_path / "text.npz").write_text("no archive")
    (tmp_path / "empty.npz").write_bytes(b"")
    np.savez(tmp_path / "pickle.npz", header=np.array([{}], dtype=object))
    np.savez(tmp_path / "list.npz", header=np.array("[]"))
    np.savez(tmp_path / "part.npz", header=np.array('{"format": "tailproof result 1"}'))
    for name in ("other", "text", "empty", "pickle", "list", "part"):
        with pytest.raises(ValueError, match=r"path .* is not a 'tailproof result 1' file"):
            Result.load(tmp_path / f"{name}.npz")


def test_pandas(result: Result) -> None:
    frame = result.to_pandas()
    assert list(frame.columns) == ["policy", "path", "pulls", "decisions", "regret", "error"]
    assert len(frame) == 2 * 11 * 4
    last = frame[(frame.policy == "u") & (frame.pulls == 40)]
    np.testing.assert_array_equal(last.regret, result.curves["u"].regret[:, -1])
    third = frame[(frame.policy == "u") & (frame.path == 3)]
    np.testing.assert_array_equal(third.regret, result.curves["u"].regret[3])
    assert third.decisions.tolist() == third.pulls.tolist() == [10, 20, 30, 40]
    assert frame[frame.policy == "u"].error.isna().all()
    assert frame[frame.policy == "OFUL"].error.notna().all()


def test_damage_is_noticed(result: Result, tmp_path: Path) -> None:
    """Whatever byte is damaged, what is read is what was written, or nothing."""
    whole = result.save(tmp_path / "r.npz").read_bytes()
    for place in range(0, len(whole), max(1, len(whole) // 97)):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        (tmp_path / "d.npz").write_bytes(damaged)
        try:
            read = Result.load(tmp_path / "d.npz")
        except ValueError:
            continue
        np.testing.assert_array_equal(read.curves["u"].regret, result.curves["u"].regret)


def handmade(*regrets: list[float]) -> Result:
    """Policies a, b, … that learned from three decisions in seven pulls."""
    curves = {
        name: Curves(regret=np.array(regret)[:, None], decisions=np.array([3]))
        for name, regret in zip("abc", regrets, strict=False)
    }
    return Result(pulls=np.array([7]), curves=curves, settings={"paths": len(regrets[0])})


def test_the_interval_of_a_difference_is_students() -> None:
    """Differences of 1, 2, 3 and 6; Student's t with 3 degrees of freedom is 3.182 at 97.5 %."""
    found = handmade([2, 4, 6, 9], [1, 2, 3, 3]).difference("a", "b")
    half = 3.1824463052842638 * np.sqrt(14 / 3) / 2
    assert found.mean == [3]
    np.testing.assert_allclose([found.low[0], found.high[0]], [3 - half, 3 + half])
    with pytest.raises(ValueError, match="paths must be at least 2 to say how far 'a' and 'b'"):
        handmade([2], [1]).difference("a", "b")


def test_pairs_pay_for_being_several() -> None:
    """Three policies; Holm's p is checked by hand, the intervals have the level 1 − 0.05/3."""
    rng = np.random.default_rng(0)
    regrets = rng.normal([[5.0], [5.5], [9.0]], 1.0, size=(3, 12))
    result = handmade(*map(list, regrets))
    found = result.pairwise()
    assert found.pairs == (("a", "b"), ("a", "c"), ("b", "c"))
    tests = [ttest_rel(regrets[i], regrets[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    np.testing.assert_allclose(found.p, [test.pvalue for test in tests])
    smallest, middle, largest = np.sort(found.p)
    steps = [3 * smallest, max(3 * smallest, 2 * middle), max(2 * middle, largest)]
    np.testing.assert_allclose(np.sort(found.adjusted), steps)
    for low, high, test in zip(found.low, found.high, tests, strict=True):
        np.testing.assert_allclose((low, high), test.confidence_interval(1 - 0.05 / 3))
    frame = found.to_frame()
    assert frame.loc[("a", "c"), "differs"] == "yes"
    assert "Holm" in found._repr_html_()
    same = handmade([1, 2, 3], [1, 2, 3]).pairwise()
    assert (same.p[0], same.adjusted[0]) == (1, 1)
    with pytest.raises(ValueError, match="at least two"):
        handmade([1, 2, 3]).pairwise()


def test_equal_policies_are_rarely_called_different() -> None:
    """Of 2000 tables with six pairs of equal policies, 5 % at most; 6.4 % is 3 errors above."""
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(2000):
        result = handmade(*map(list, rng.normal(size=(3, 8))))
        wrong += bool((result.pairwise().adjusted <= 0.05).any())
    assert wrong / 2000 < 0.065


@pytest.mark.parametrize("level", [-0.1, 1.5, float("nan")])
def test_a_quantile_is_between_0_and_1(level: float) -> None:
    with pytest.raises(ValueError, match="level must be a number at least 0 and at most 1"):
        handmade([1, 2]).quantile("a", level)


def test_what_notebooks_and_papers_show_is_short() -> None:
    result = handmade([1, 2, 4], [3, 5, 5])
    gap = result.difference("a", "b")
    assert repr(gap) == (
        "<RegretDifference a − b after 7 pulls: -2, 95% interval -4.484 to 0.4841>"
    )
    assert gap._repr_html_().startswith("<table><tr><th>pulls</th>")
    assert gap.plot()._repr_png_()[0].startswith(b"\x89PNG")  # type: ignore[attr-defined]
    assert result.to_latex().splitlines()[3:6] == [
        r"\midrule",
        r"a & 2.333 $\pm$ 0.8819 & 2 & 1.2 -- 3.6 & 3 \\",
        r"b & 4.333 $\pm$ 0.6667 & 5 & 3.4 -- 5 & 3 \\",
    ]
    floating = result.to_latex("5 % of _all_", "tab:a")
    assert r"\caption{5 \% of \_all\_}" in floating
    assert r"\label{tab:a}" in floating


def test_decisions_are_not_pulls_and_one_path_has_no_error() -> None:
    row = handmade([2]).summary()["a"]
    assert (row["decisions"], row["pulls"]) == (3, 7)
    assert np.isnan(row["standard_error"])
    assert r"a & 2 & 2 &" in handmade([2]).to_latex()
    assert repr(handmade([2])) == "<Result of a: 1 path>"


def test_a_misspelled_policy_is_answered_with_the_one_meant() -> None:
    with pytest.raises(ValueError, match=r"one of a, b, got 'A'; did you mean a\?"):
        handmade([1, 2], [3, 4]).mean("A")


def test_nobody_can_change_the_provenance_of_later_results() -> None:
    provenance()["numpy"] = "0"
    assert provenance()["numpy"] == np.__version__


def test_best_arms_are_counted_in_pulls_and_in_decisions() -> None:
    arms, pulls = np.array([1, 0]), np.array([10, 20])
    found = Identification({"a": Verdicts(arms, arms == 1, pulls, pulls // 5)}, settings={})
    row = found.summary()["a"]
    assert (row["error"], row["mean_pulls"], row["mean_decisions"]) == (0.5, 15, 3)
