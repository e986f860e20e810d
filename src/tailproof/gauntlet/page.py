"""A score as Markdown."""

import math

from tailproof.gauntlet.score import STUCK, Score
from tailproof.gauntlet.targets import check_targets

__all__ = ["page", "shown"]


def shown(value: float) -> str:
    """Return a number in few digits.

    >>> shown(0.0123), shown(12.34), shown(1234.5), shown(float("nan"))
    ('0.012', '12', '1234', '–')
    """
    if math.isnan(value):
        return "–"
    return f"{value:.2g}" if abs(value) < 99.5 else f"{value:.0f}"


def page(score: Score, command: str) -> str:
    """Return what was measured, and the command that did."""
    settings = score.settings
    lines = [
        "# The gauntlet",
        "",
        f"`{command}`",
        "",
        f"{settings['paths']} paths, seed {settings['seed']}, size {settings['size']}; "
        f"tailproof {settings['versions']['tailproof']}. Problems and seed for tuning are others.",
        "",
        "Each cell: mean regret over chance × 100, the ratio to the best tool, and, where there "
        f"are any, stuck paths in per cent (regret rate of the second half above {STUCK:g} of "
        "chance). – means that the tool does not fit the problem.",
        "",
        _line("problem", "T", "chance", "oracle", *score.tools),
        _line(*["---"] * (4 + len(score.tools))),
    ]
    for problem in score.problems:
        cells = []
        for tool in score.tools:
            row = score.row(problem, tool)
            if row is None:
                cells.append("–")
                continue
            stuck = f", **{100 * row.stuck:.0f} % stuck**" if row.stuck else ""
            cells.append(f"{shown(100 * row.over_chance)} ({shown(row.over_best)}×){stuck}")
        chance = score.chance(problem)
        oracle = 100 * score.oracle.get(problem, math.nan) / chance
        horizon = settings["horizons"][problem]
        lines.append(_line(problem, str(horizon), shown(chance), shown(oracle), *cells))
    lines += [
        "",
        _line("tool", "problems", "median ratio to the best", "worst", "where", "stuck in"),
        _line(*["---"] * 6),
    ]
    for tool, sums in score.summary().items():
        ratios = [shown(sums[f"{which}_over_best"]) for which in ("median", "worst")]
        stuck = ", ".join(sums["stuck"]) or "none"
        lines.append(_line(tool, str(sums["problems"]), *ratios, sums["worst_problem"], stuck))
    judged = check_targets(score)
    if judged:
        lines += ["", _line("target", "tool", "at most", "found", ""), _line(*["---"] * 5)]
    for found in judged:
        target = found.target
        word = "passed" if found.passed else "**missed**"
        lines.append(
            _line(target.text, target.tool, f"{target.at_most:g}", shown(found.value), word)
        )
    return "\n".join(lines) + "\n"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
