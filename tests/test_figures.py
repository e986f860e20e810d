"""Pictures show all of what they are given."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t

from tailproof import (
    UCB1,
    FixedArm,
    Result,
    Uniform,
    calibrate,
    calibrate_filter,
    environments,
    gauntlet,
    noise,
    simulate,
)
from tailproof.figures import (
    PALETTE,
    band,
    calibration_figure,
    canvas,
    regret_figure,
    rewards_figure,
)


@pytest.mark.parametrize("panels", [1, 2, 3, 4])
def test_nothing_is_cut_off(panels: int) -> None:
    results = {
        f"{i}": simulate(
            {"u": Uniform()},
            environments.k_armed(noise.Cauchy(), locations=(0.0, 1.0 + i)),
            horizon=40,
            paths=8,
        )
        for i in range(panels)
    }
    figure = regret_figure(results)
    assert len(figure.axes) == panels
    for axes, result in zip(figure.axes, results.values(), strict=True):
        assert axes.get_ylim()[0] == 0
        assert axes.get_ylim()[1] >= np.max(result.quantile("u", 0.9))
        assert axes.get_xlim() == (0, 40)


@pytest.fixture(scope="module", name="result")
def _result() -> Result:
    bandit = environments.k_armed(noise.Cauchy(), locations=(0.0, 1.0))
    policies: dict[str, Any] = {"u": Uniform(), "UCB1": UCB1(), "first": FixedArm(arm=0)}
    return simulate(policies, bandit, horizon=40, paths=8)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ylim": 3}, "ylim must be two numbers"),
        ({"xlim": (1, float("nan"))}, "xlim must be two numbers"),
        ({"policies": "UCB1"}, r"policies must be a list of names, such as \['UCB1'\]"),
        ({"policies": []}, "policies must be a list of names"),
        ({"policies": ["UCB"]}, "policies must be some of u, UCB1, first"),
    ],
)
def test_what_cannot_be_drawn_is_refused(result: Result, options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        result.plot(**options)


@pytest.mark.parametrize(("count", "holes"), [(2, 0), (3, 0), (4, 0), (5, 1), (7, 2)])
def test_the_legend_fills_the_hole_of_a_row(result: Result, count: int, holes: int) -> None:
    figure = regret_figure({str(i): result for i in range(count)})
    figure.draw_without_rendering()
    assert len(figure.axes) == count
    rows = Counter(round(axes.get_position().y0, 2) for axes in figure.axes)
    assert max(rows.values()) * len(rows) - count == holes
    box = figure.legends[0].get_window_extent()
    assert not any(box.overlaps(axes.get_window_extent()) for axes in figure.axes)
    assert figure.bbox.contains(box.x0, box.y0)
    assert figure.bbox.contains(box.x1, box.y1)


def test_the_band_of_the_mean_is_students_interval(result: Result) -> None:
    (axes,) = result.plot(show="mean", policies=["u"], level=0.9).axes
    (line,) = axes.lines
    np.testing.assert_allclose(np.asarray(line.get_ydata()), result.mean("u"))
    heights = np.asarray(axes.collections[0].get_paths()[0].vertices)[:, 1]
    last = result.curves["u"].regret[:, -1]
    half = t.ppf(0.95, 7) * last.std(ddof=1) / 8**0.5
    assert heights.max() == pytest.approx(last.mean() + half)


def test_axes_can_be_logarithmic_and_cut(result: Result) -> None:
    (axes,) = result.plot(log="xy").axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_ylim()[0] > 0
    (axes,) = result.plot(xlim=(5, 9), ylim=(1, 3), policies=["UCB1"]).axes
    assert (axes.get_xlim(), axes.get_ylim()) == ((5, 9), (1, 3))
    assert axes.get_legend_handles_labels()[1] == ["UCB1"]
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"log": "z"}, "log must be x, y or xy"),
        ({"show": "all"}, "show must be spread or mean"),
        ({"policies": ["v"]}, "policies must be some of u, UCB1, first, got 'v'"),
        ({"metric": "regrets"}, "did you mean regret"),
    ]
    for options, words in wrong:
        with pytest.raises(ValueError, match=words):
            result.plot(**options)


def test_notebooks_draw_without_a_magic_line(result: Result) -> None:
    data, size = result.plot()._repr_png_()  # type: ignore[attr-defined]
    assert data.startswith(b"\x89PNG")
    assert size["width"] == round(96 * 5.2)


def test_no_font_of_type_3(result: Result, tmp_path: Path) -> None:
    result.plot().savefig(tmp_path / "a.pdf")
    data = (tmp_path / "a.pdf").read_bytes()
    assert b"/Type3" not in data
    assert b"/CIDFontType2" in data


def test_no_result_no_picture() -> None:
    with pytest.raises(ValueError, match="results must be at least one result"):
        regret_figure({})


def test_colours_differ() -> None:
    assert len(set(PALETTE)) == len(PALETTE)


@pytest.mark.parametrize("paths", [4, 5, 11])
def test_a_band_is_from_10_to_90_per_cent(paths: int) -> None:
    _, ((axes,),) = canvas(1, 1)
    band(axes, [0, 1], np.tile(np.arange(paths, dtype=float)[:, None], 2), 0)
    middle, mean = (line.get_ydata()[0] for line in axes.lines)
    assert middle == mean == (paths - 1) / 2
    assert len(axes.collections) == (paths >= 5)
    for drawn in axes.collections:
        heights = drawn.get_paths()[0].vertices[:, 1]
        assert (heights.min(), heights.max()) == pytest.approx(
            (0.1 * (paths - 1), 0.9 * (paths - 1))
        )


def test_tails_fall_from_all_to_one() -> None:
    """Of 200 rewards of an arm one is as far from the median as the furthest."""
    advice = calibrate(reward=np.arange(400.0) ** 2, arm=["a", "b"] * 200)
    figure = rewards_figure(advice.rewards, advice.estimates)
    share = np.asarray(figure.axes[0].lines[0].get_ydata())
    assert share[0] > 0.99
    assert share[-1] == 1 / 200
    assert (np.diff(share) < 0).all()


def test_the_bound_of_a_law_is_one_over_its_information() -> None:
    (cost, _) = calibration_figure(calibrate_filter(noise=noise.Cauchy(), pulls=21)).axes
    (bound,) = [line for line in cost.lines if line.get_label() == "Cramér–Rao bound"]
    assert np.asarray(bound.get_ydata())[0] == pytest.approx(2)


def test_a_legend_of_long_names_fits_into_the_picture(tmp_path: Path) -> None:
    policies = {f"filtered(mine:MedSA, repeats={k})": Uniform() for k in (5, 15, 25, 35)}
    bandit = environments.k_armed(noise.Normal(), locations=(0, 1))
    figure = simulate(policies, bandit, horizon=20, paths=5).plot()
    figure.savefig(tmp_path / "wide.png")
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1


def test_the_scale_of_few_problems_can_be_read(tmp_path: Path) -> None:
    score = gauntlet.run({"UCB1": UCB1()}, problems=["k5-t1"], size="smoke", workers=1)
    figure = score.plot()
    figure.savefig(tmp_path / "few.png")
    heat, scale = figure.axes
    assert scale.get_position().height == pytest.approx(heat.get_position().height)
    assert scale.get_ylabel() == ""
