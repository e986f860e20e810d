"""Results: summaries, provenance, files."""

from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from tailproof import OFUL, Result, Uniform, environments, noise, simulate


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
