"""Pictures show all of what they are given."""

import numpy as np
import pytest

from tailproof import Uniform, environments, noise, simulate
from tailproof.figures import PALETTE, regret_figure


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
