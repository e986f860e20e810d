"""Pictures show all of what they are given."""

import numpy as np
import pytest

from tailproof import Uniform, calibrate, calibrate_filter, environments, noise, simulate
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
