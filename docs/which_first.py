"""Draw which algorithm to try first, as one picture: ``python docs/which_first.py``.

It writes docs/images/which-first.png; the page field.md shows it.
"""

from pathlib import Path

from matplotlib import pyplot
from matplotlib.axes import Axes

__all__ = ["TREE", "draw", "main"]

TREE: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        "Which arm is best?\nStop and name it.",
        (
            ("arms share features", "LinGapE, LazyTrackAndStop", "RAGE"),
            ("a mean, E|X|^(1+ε) ≤ B known", "HeavyTrackAndStop", "behind_filter(LinGapE())"),
            ("any law, by its quantile", "QuantileLUCB", "QuantileElimination"),
        ),
    ),
    (
        "Sums of money:\nmostly zero, a few large",
        (
            ("arms are products or pages", "RevenueUCB", "Capped(UCB1())"),
            ("features of the visitor", "LinRevenueUCB", "Capped(OFUL())"),
        ),
    ),
    (
        "Rewards scatter around\na level; arms differ by a shift",
        (
            ("one pull a decision", "LinStudentUCB", "SymmetricOFUL, HuberBandit"),
            ("you have a bandit, 21 pulls in a row", "AutoFiltered(policy)", "Filtered.calibrated"),
            ("noise known to be stable", "LinStudentUCB", "StableTS"),
        ),
    ),
    (
        "K arms of any shape",
        (
            ("median or quantile", "OrderStatisticUCB", "MedianUCB"),
            ("mean, a moment bound B known", "KLInfUCB, RobustMOSS", "RobustUCB"),
            ("mean, ε known but no bound", "APE2 (MR-UCB)", "AdaRUCB"),
            ("no law: an adversary", "HTINF", "–"),
        ),
    ),
    (
        "Light tails,\nrewards of known scale",
        (
            ("few arms", "ThompsonSampling", "UCB1"),
            ("features, new each time", "LinTS, OFUL", "AbeLong (its log can be judged)"),
            ("fixed arms, the best tells little", "OSSB", "LinTS"),
        ),
    ),
    (
        "To compare with papers",
        (
            (
                "linear, heavy tails",
                "MoM CRT MENU TOFU SupBMM SupBTC",
                "HeavyOFUL HvtUCB",
            ),
            ("linear, light tails", "ConfidenceBall SupLinUCB SupLinRel", "PEGE"),
            ("proofs as T or d grows", "OSSB, KLInfUCB", "EndOfOptimism ALBA"),
        ),
    ),
)
"""What you want, and for each case what to try first and then."""


def draw(axes: Axes) -> None:
    """Draw the tree, one row for each case."""
    heads = ((0.0, "what you have"), (0.22, "case"), (0.5, "try first"), (0.78, "then"))
    for x, head in heads:
        axes.text(x, -0.3, head, fontsize=9, color="0.4")
    row = 1.0
    for number, (want, cases) in enumerate(TREE):
        if number % 2 == 0:
            axes.axhspan(row - 0.6, row + len(cases) - 0.4, color="0.95", zorder=0)
        axes.text(0, row + (len(cases) - 1) / 2, want, fontsize=10, weight="bold", va="center")
        for case, first, then in cases:
            axes.text(0.22, row, case, fontsize=9, va="center")
            axes.text(0.5, row, first, fontsize=9, family="monospace", weight="bold", va="center")
            axes.text(0.78, row, then, fontsize=9, family="monospace", va="center")
            row += 1
    axes.set(xlim=(0, 1.03), ylim=(row - 0.4, -0.8))
    axes.axis("off")


def main() -> None:
    """Write the picture."""
    figure, axes = pyplot.subplots(figsize=(13, 6.4), layout="constrained")
    draw(axes)
    figure.savefig(Path(__file__).parent / "images" / "which-first.png", dpi=130)


if __name__ == "__main__":
    main()
