"""`simulate` with compiled code: the same law as on arrays, the same bits on any target."""

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tailproof import (
    CRT,
    MENU,
    OFUL,
    UCB1,
    AutoFiltered,
    LinStudentUCB,
    LinTS,
    MoM,
    OrderStatisticUCB,
    Policy,
    Result,
    RevenueUCB,
    SupBMM,
    SymmetricOFUL,
    ThompsonSampling,
    bestarm,
    environments,
    identify,
    noise,
    simulate,
)
from tailproof.compiled import Game, loop
from tailproof.compiled.targets import compile_for
from tailproof.environments import Bandit, motions
from tailproof.environments.shops import Shop

_ARMS = environments.k_armed(
    noise.PerArm((noise.Cauchy(), noise.Normal(), noise.StudentT(3.0))),
    locations=(0.0, 0.5, 1.0),
    motion=motions.Swap(at=(30,)),
)
_FRESH = environments.neutral(noise.Cauchy(), arms=4, dim=3, norms=(0.1, 10), lean=0.5)
GAMES: dict[str, tuple[Policy[Any], Bandit]] = {
    "UCB1": (UCB1(), _ARMS),
    "OFUL": (OFUL(), _FRESH),
}


def games(target: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Play every game on a few paths, those from number 2 on."""
    found = {}
    for name, (policy, bandit) in GAMES.items():
        game = Game(policy, bandit, name, horizon=50, marks=(20, 50), delay=3 * (bandit is _ARMS))
        regret, error = game.play(2, 5, target)
        found[name] = regret if error is None else np.hstack([regret, error])
    return found


def test_a_path_has_the_same_bits_on_cores_in_the_simulator_and_in_python(tmp_path: Path) -> None:
    out = str(tmp_path / "gpu")
    code = f"import numpy, test_engines as own; numpy.savez({out!r}, **own.games('gpu'))"
    places = [str(Path(__file__).parent), *sys.path]
    simulator = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": os.pathsep.join(places)}
    subprocess.run([sys.executable, "-W", "error", "-c", code], env=simulator, check=True)
    cores, python = games("cores"), games("python")
    with np.load(tmp_path / "gpu.npz") as gpu:
        for name in GAMES:
            np.testing.assert_array_equal(cores[name], gpu[name])
            np.testing.assert_array_equal(cores[name], python[name])


@pytest.mark.slow
def test_parts_that_are_compiled_apart_give_the_same_bits() -> None:
    bandit = environments.neutral(noise.Cauchy(), arms=5, dim=3, fresh=False)
    game = Game(LinStudentUCB(room=6), bandit, "it", horizon=70, marks=(20, 70))
    for cores, python in zip(game.play(1, 2, "cores"), game.play(1, 2, "python"), strict=True):
        np.testing.assert_array_equal(cores, python)


def _named(code: Any, found: dict[str, Any]) -> dict[str, Any]:
    """Collect compiled functions by name, with those that they call; a name has one function."""
    known = found.setdefault(code.py_func.__qualname__, code)
    assert known is code
    for part in code.py_func.__globals__.values():
        if hasattr(part, "py_func") and part.py_func.__qualname__ not in found:
            _named(part, found)
        elif hasattr(part, "py_func"):
            assert found[part.py_func.__qualname__] is part
    return found


def test_functions_that_differ_have_different_names() -> None:
    # machine code that one process kept on disk calls functions of another process by name
    pytest.importorskip("numba")
    found: dict[str, Any] = {}
    for policy, bandit in GAMES.values():
        for horizon in (50, 60):
            game = Game(policy, bandit, "it", horizon=horizon, marks=(horizon,))
            _named(compile_for("cores", game.tree(loop.on_cores), entry=True), found)
    assert len([name for name in found if name.startswith("play_")]) == 2


def _run(paths: int, **settings: Any) -> Result:
    bandit = environments.neutral(noise.Normal(0.3), arms=4, dim=3)
    policies = {"OFUL": OFUL(noise_scale=0.3), "LinTS": LinTS(bonus=0.1, noise_scale=0.3)}
    return simulate(policies, bandit, horizon=200, paths=paths, checkpoints=4, **settings)


def test_regret_and_error_have_the_law_of_the_engine_on_arrays() -> None:
    ours, theirs = _run(400, engine="compiled"), _run(400)
    for name in ("OFUL", "LinTS"):
        for part in ("regret", "error"):
            a, b = (getattr(result.curves[name], part) for result in (ours, theirs))
            z = (a.mean(0) - b.mean(0)) / np.sqrt((a.var(0) + b.var(0)) / 400)
            assert np.abs(z).max() < 4.5  # 16 figures: a false alarm in 10⁴; the seed is fixed
    assert ours.settings["code"] == "compiled"
    assert "numba" in ours.settings["versions"]


_ARMS_3 = environments.k_armed(noise.Cauchy(), locations=(0, 0.5, 1))
_LINEAR = environments.neutral(noise.StudentT(3.0, 0.3), arms=5, dim=3)
_TWO_MODES = environments.neutral(noise.TwoPoint(2.0, -2.0, 0.5), arms=5, dim=3)
_SHOP = Shop(
    buyers=(0.2, 0.3, 0.25),
    baskets=(noise.LogNormal(0.5, "none", 20.0),) * 3,
    cycle=(0.6, 0.6, 2.0),
    phase=50,
)
EVERY: dict[str, tuple[Policy[Any], Bandit, int]] = {
    "OrderStatisticUCB": (OrderStatisticUCB(), _ARMS_3, 400),
    "SymmetricOFUL": (SymmetricOFUL(radius="practical", bonus=0.3), _LINEAR, 200),
    "AutoFiltered(OFUL)": (AutoFiltered(repeats=7), _LINEAR, 350),
    "AutoFiltered(UCB1)": (AutoFiltered(UCB1(bonus=0.7), repeats=7), _ARMS_3, 700),
    "CRT": (CRT(epsilon=1, moment_bound=1, bonus=0.1), _LINEAR, 200),
    "MoM": (
        MoM(horizon=800, epsilon=1, moment_bound=1, decisions=100, blocks=4, bonus=0.03),
        _LINEAR,
        800,
    ),
    "MENU": (MENU(horizon=900, epsilon=1, moment_bound=1, replicates=9, bonus=0.03), _LINEAR, 900),
    "SupBMM": (SupBMM(horizon=900, epsilon=1, moment_bound=1, replicates=9), _LINEAR, 900),
    "LinStudentUCB": (LinStudentUCB(), _TWO_MODES, 300),
    "RevenueUCB": (RevenueUCB(), _SHOP, 600),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_every_form_has_the_law_of_its_policy(name: str) -> None:
    policy, bandit, horizon = EVERY[name]
    both = [
        simulate({name: policy}, bandit, horizon=horizon, paths=300, checkpoints=2, engine=engine)
        for engine in ("compiled", "serial")
    ]
    a, b = (result.curves[name].regret for result in both)
    z = (a.mean(0) - b.mean(0)) / np.sqrt((a.var(0) + b.var(0)) / 300 + 1e-30)
    assert np.abs(z).max() < 4.5  # 20 figures in all: a false alarm in 7000; the seed is fixed


def test_paths_do_not_depend_on_threads_or_on_how_many_there_are() -> None:
    few, many = _run(3, engine="compiled"), _run(300, engine="compiled", workers=2)
    for name in ("OFUL", "LinTS"):
        np.testing.assert_array_equal(few.curves[name].regret, many.curves[name].regret[:3])


def test_a_stopped_run_resumes_and_keeps_its_code_apart(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    def note(done: int, total: int) -> None:
        seen.append((done, total))

    first = _run(300, engine="compiled", out=tmp_path)
    cells = sorted(tmp_path.glob("*.cell"))
    for cell in cells[:7]:
        cell.unlink()
    again = _run(300, engine="compiled", out=tmp_path, progress=note)
    np.testing.assert_array_equal(first.mean("OFUL"), again.mean("OFUL"))
    assert seen[0] == (len(cells) - 7, len(cells))
    assert seen[-1] == (len(cells), len(cells))
    assert (_run(300, out=tmp_path).mean("OFUL") != first.mean("OFUL")).all()


def test_what_has_no_compiled_form_is_named() -> None:
    bandit = environments.near_tie(noise.Normal(), angle=1.0)
    gap = bestarm.LinGapE(norm_bound=2)
    with pytest.raises(ValueError, match="LinGapE finds the best arm, and no such policy has"):
        identify({"it": gap}, bandit, paths=2, max_pulls=100, engine="compiled")
    with pytest.raises(ValueError, match="LinGapE has no compiled form; these have one: UCB1"):
        simulate({"it": gap}, bandit, horizon=9, paths=2, engine="compiled")
    with pytest.raises(ValueError, match="has one with clusters=False"):
        simulate({"it": LinStudentUCB(clusters=True)}, _ARMS, horizon=9, paths=2, engine="compiled")
    with pytest.raises(ValueError, match="UCB1 has one with random=False"):
        simulate({"it": UCB1(random=True)}, _ARMS, horizon=9, paths=2, engine="compiled")
    with pytest.raises(ValueError, match="has one where sketch is None"):
        simulate({"it": OrderStatisticUCB(sketch=16)}, _ARMS, horizon=9, paths=2, engine="compiled")
    ball = environments.unit_ball(noise.Normal(), dim=3)
    with pytest.raises(ValueError, match=r"UnitBall.* have no compiled form; FixedArms"):
        simulate({"it": OFUL()}, ball, horizon=9, paths=2, engine="compiled")
    fresh = environments.neutral(noise.Normal(), arms=4, dim=3)
    with pytest.raises(ValueError, match="delay=2 has no compiled form where every decision"):
        simulate({"it": OFUL()}, fresh, horizon=9, paths=2, delay=2, engine="compiled")


def test_numpy_without_row_stack_is_lent_it_for_numba_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[bool] = []
    monkeypatch.delattr(np, "row_stack", raising=False)
    monkeypatch.setattr(Game, "_on_gpu", lambda *given: seen.append(hasattr(np, "row_stack")))
    Game(UCB1(), _ARMS, "it", horizon=9, marks=(9,)).play(0, 1, "gpu")
    assert seen == [True]
    assert not hasattr(np, "row_stack")


def test_cells_of_compiled_code_cost_next_to_nothing() -> None:
    run = partial(simulate, {"UCB1": UCB1()}, _ARMS, horizon=2, checkpoints=1, engine="compiled")
    run(paths=1)
    start = time.process_time()
    run(paths=512)
    assert time.process_time() - start < 0.2  # of 256 cells; with limits of threads it is 0.5 s


def test_importing_the_library_does_not_import_numba() -> None:
    code = "import sys, tailproof, tailproof.compiled; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_one_arm_and_untried_arms_are_played() -> None:
    arm = environments.GivenArms(((1.0,),))
    one = environments.LinearBandit(contexts=arm, theta=(3.0,), noise=noise.Cauchy())
    regret, _ = Game(UCB1(), one, "it", horizon=20, marks=(20,)).play(0, 3, "python")
    assert regret.tolist() == [[0.0]] * 3
    many = environments.k_armed(noise.Degenerate(), locations=np.linspace(0, 1, 30))
    regret, _ = Game(ThompsonSampling(), many, "it", horizon=10, marks=(10,)).play(0, 2, "python")
    assert (regret > 0).all()
