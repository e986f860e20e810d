"""What platforms' rules for outliers do to a file, against arithmetic by hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tailproof import CappedMean, calibrate
from tailproof.advice import Advice
from tailproof.advice.platforms import PLATFORMS, platform_lines, platform_rules
from tailproof.live.config import load


def whale(costs: bool = False) -> Advice:
    """Old sells to 60 of 1000 customers for 10; new to 30, and to one of them for 5000."""
    old = [10.0] * 60 + [0.0] * 940
    new = [10.0] * 29 + [5000.0] + [0.0] * 970
    arm = ["old"] * 1000 + ["new"] * 1000
    return calibrate(
        arm=arm, reward=old + new, unit=np.arange(2000), aim=CappedMean(0.98), costs=costs
    )


@pytest.mark.parametrize(
    ("platform", "cap", "means"),
    [
        ("growthbook", 10.0, {"old": 0.6, "new": 0.3}),
        ("statsig", 4556.0, {"old": 0.6, "new": 4.85}),
    ],
)
def test_totals_are_cut_at_the_platforms_percentile(
    platform: str, cap: float, means: dict[str, float]
) -> None:
    """90 buyers: their 99.9 % percentile, interpolated, is 10 + 0.911 · 4990."""
    ours, theirs, *_ = platform_rules(whale(), platform)
    assert (ours.cap, ours.picks) == (10.0, "old")
    assert theirs.cap == pytest.approx(cap, rel=1e-3)
    assert theirs.means == pytest.approx(means, rel=1e-2)
    assert theirs.picks == max(means, key=means.__getitem__)


def test_smoothing_puts_the_mean_of_purchases_in_place_of_an_outlier() -> None:
    _, theirs = platform_rules(whale(), "optimizely")
    bought = np.array([10.0] * 89 + [5000.0])
    assert theirs.cap == pytest.approx(bought.mean() + 3 * bought.std())
    assert theirs.cut == 1
    assert theirs.means["new"] == pytest.approx((290 + bought.mean()) / 1000)


def test_the_smallest_mean_is_best_for_costs() -> None:
    assert platform_rules(whale(costs=True), "statsig")[1].picks == "old"


def test_it_says_whether_the_cap_decides_and_names_each_source() -> None:
    cells, found = platform_lines(platform_rules(whale(), "statsig"))
    assert cells[0] == ["rule", "cap", "customers cut", "new", "old", "best"]
    assert found[-1].startswith("The cap decides: Statsig, 99.9 % would pick another arm")
    assert "docs.statsig.com" in found[0]
    rows = platform_rules(whale(), "growthbook")
    _, agreed = platform_lines(rows[:2])
    assert agreed[-1] == "All of these pick old: the cap does not decide."
    assert platform_lines(rows)[1][-1].startswith("The cap decides: GrowthBook, 99 %, no zeros ")
    assert all(rule.source for rules in PLATFORMS.values() for rule in rules)


def test_an_unknown_platform_is_refused() -> None:
    with pytest.raises(ValueError, match="like must be one of growthbook, statsig, optimizely"):
        platform_rules(whale(), "vwo")


def test_the_file_of_a_service_has_the_window_and_the_control(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    shown = {"who": np.arange(400), "arm": rng.choice(["A", 'B "x"'], 400), "at": np.arange(400.0)}
    bought = {"who": np.arange(0, 400, 9), "reward": np.full(45, 9.0), "at": np.full(45, 401.0)}
    end = pd.DataFrame({"who": [0], "reward": [0.0], "at": [9e5]})
    orders = pd.concat([pd.DataFrame(bought), end])
    advice = calibrate(
        pd.DataFrame(shown), events=orders, window="36h", unit="who", time="at", control="A",
        aim=CappedMean(0.99),
    )  # fmt: skip
    file = tmp_path / "shop.toml"
    file.write_text(advice.service())
    recipe = load(file).experiments["shop"].recipe
    assert (recipe.wait, recipe.control, recipe.floor) == (36 * 3600, ("A", 0.1), 0.02)
    assert recipe.arms == ("A", 'B "x"')
    assert "unit=customer" in advice.code()
