"""A score as Markdown."""

import math

from tailproof.formatting import brief
from tailproof.research.gauntlet.score import CHANCE, Block, Score, ScoreRow
from tailproof.research.gauntlet.targets import check_targets

__all__ = ["page"]


def page(score: Score, command: str) -> str:
    """Return the tables of a score, block by block, and the command that made it."""
    settings, parts = score.settings, score.parts()
    lines = [
        "# The gauntlet",
        "",
        f"`{command}`",
        "",
        f"{settings['paths']} paths, seed {settings['seed']}, size {settings['size']}; tailproof "
        f"{settings['versions']['tailproof']}. Tools are tuned on other problems and another seed.",
        "",
        "Each cell: the mean regret in per cent of that of random arms; in brackets, its ratio to "
        "the best tool; if any paths are stuck or lost, how many per cent. – means that the tool "
        "cannot play the problem.",
    ]
    for block, part in parts.items():
        lines += ["", f"## {block.title}"] if len(parts) > 1 else []
        lines += [
            "",
            f"A path is {block.word} if its regret in the second half is above {block.limit:g} of "
            "that of random arms.",
            "",
            *_table(_regrets(part, block)),
            "",
            *_table(_sums(part, block)),
        ]
    targets = [["target", "tool", "at most", "found", ""]]
    for checked in check_targets(score):
        target, word = checked.target, "passed" if checked.passed else "**missed**"
        limit = f"{target.at_most:g}"
        targets.append([target.text, target.tool, limit, brief(checked.value), word])
    if len(targets) > 1:
        lines += ["", *_table(targets)]
    return "\n".join(lines) + "\n"


def _regrets(score: Score, block: Block) -> list[list[str]]:
    """Return a row for each problem, with the regret of each tool."""
    tools = [
        tool for tool in score.tools if any(tool in regrets for regrets in score.regret.values())
    ]
    rows = [["problem", "T", CHANCE, "oracle", *tools]]
    for problem in score.problems:
        chance = score.chance(problem)
        oracle = 100 * score.oracle.get(problem, math.nan) / chance
        cells = [_cell(score.row(problem, tool), block) for tool in tools]
        horizon = str(score.settings["horizons"][problem])
        rows.append([problem, horizon, brief(chance), brief(oracle), *cells])
    return rows


def _sums(score: Score, block: Block) -> list[list[str]]:
    """Return a row for each tool, with its ratios over all problems."""
    head = ["median ratio to the best", "worst ratio", "where", f"{block.word} in"]
    rows = [["tool", "problems", *head]]
    for tool, row in score.summary().items():
        ratios = (brief(row[f"{which}_over_best"]) for which in ("median", "worst"))
        stuck = ", ".join(row["stuck"]) or "none"
        rows.append([tool, str(row["problems"]), *ratios, row["worst_problem"], stuck])
    return rows


def _cell(row: ScoreRow | None, block: Block) -> str:
    if row is None:
        return "–"
    stuck = f", **{100 * row.stuck:.0f} % {block.word}**" if row.stuck else ""
    return f"{brief(100 * row.over_chance)} ({brief(row.over_best)}×){stuck}"


def _table(rows: list[list[str]]) -> list[str]:
    """Return the lines of a Markdown table whose first row is its head."""
    lines = [[cell.replace("|", r"\|") for cell in row] for row in rows]
    lines.insert(1, ["---"] * len(rows[0]))
    return [f"| {' | '.join(line)} |" for line in lines]
