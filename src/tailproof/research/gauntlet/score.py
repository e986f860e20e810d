"""The results of tools in the gauntlet, with settings and versions."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from tailproof.checks import require
from tailproof.notebooks import html
from tailproof.results.files import opened, write_file
from tailproof.typing import Array

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["BLOCKS", "CHANCE", "Block", "Score", "ScoreRow"]


CHANCE = "random arm"
"""The name of the policy that pulls random arms; it is always run with the tools."""


class Block(NamedTuple):
    """Problems that are shown together."""

    title: str
    word: str
    """The word for a path whose second half has too much regret."""
    limit: float
    """The regret that is too much, relative to random arms."""


BLOCKS = {
    "": Block("Locations", "stuck", 0.1),
    "money": Block("Revenue", "lost", 0.5),
    "moving": Block("Worlds that move", "stuck", 0.1),
}
"""By `Problem.block`. Revenue is learned slowly, so its limit is higher."""
_FORMAT = "tailproof gauntlet 1"


class ScoreRow(NamedTuple):
    """One tool in one problem; regrets are means over the paths, divided by the problem's unit."""

    problem: str
    tool: str
    regret: float
    over_chance: float
    """Regret divided by the regret of random arms."""
    over_best: float
    """Regret divided by the regret of the best tool in this run."""
    over_oracle: float
    """Regret divided by the oracle's, NaN if there is no oracle."""
    stuck: float
    """The share of paths whose second half has too much regret, see `Block`."""
    worst: float
    """The largest regret of a path, divided by the mean of random arms."""


@dataclass(frozen=True, eq=False, repr=False)
class Score:
    """The regrets of tools in the gauntlet, and the settings behind them.

    Attributes
    ----------
    regret : mapping from problems to mappings from tools to arrays of shape (paths, 2)
        Regret after half of the pulls and after all of them, divided by the problem's unit.
        Random arms are among the tools, under the name `CHANCE`; a tool that cannot play a
        problem is missing there.
    oracle : mapping from problems to floats
        Mean regret of the oracle, if there is one: OFUL that knows ‖θ‖ and the scale, under normal
        noise of equal Fisher information and without offset, with the best of a few bonuses. In
        problems that move it is a policy that is restarted when θ changes.
    settings : mapping
        Size, seed, paths, horizons, tools, problems and versions, as plain text and numbers.

    Examples
    --------
    >>> from tailproof import OFUL, gauntlet
    >>> score = gauntlet.run(
    ...     {"OFUL": OFUL()}, problems=["fresh-normal"], size="smoke", workers=1
    ... )
    >>> [(row.tool, row.over_best) for row in score.rows()]
    [('OFUL', 1.0)]
    """

    regret: Mapping[str, Mapping[str, Array]]
    oracle: Mapping[str, float]
    settings: Mapping[str, Any]

    @property
    def tools(self) -> list[str]:
        """Their names."""
        return list(self.settings["tools"])

    @property
    def problems(self) -> list[str]:
        """Their names."""
        return list(self.regret)

    def block(self, problem: str) -> Block:
        """Return the block of a problem."""
        return BLOCKS[self.settings.get("blocks", {}).get(problem, "")]

    def parts(self) -> "dict[Block, Score]":
        """Return the score of each block that has problems here."""
        blocks = dict.fromkeys(map(self.block, self.problems))
        return {
            block: replace(
                self,
                regret={p: regrets for p, regrets in self.regret.items() if self.block(p) == block},
            )
            for block in blocks
        }

    def chance(self, problem: str) -> float:
        """Return the mean regret of random arms."""
        require(problem in self.regret, "problem", f"one of {', '.join(self.regret)}", problem)
        return float(self.regret[problem][CHANCE][:, 1].mean())

    def row(self, problem: str, tool: str) -> ScoreRow | None:
        """Return the results of a tool in a problem, or None if it cannot play it."""
        chance = self.chance(problem)
        require(tool in self.tools, "tool", f"one of {', '.join(self.tools)}", tool)
        regrets = self.regret[problem]
        if tool not in regrets:
            return None
        means = {name: float(regrets[name][:, 1].mean()) for name in self.tools if name in regrets}
        half, end = regrets[tool].T
        limit = self.block(problem).limit * float(np.diff(regrets[CHANCE]).mean())
        return ScoreRow(
            problem=problem,
            tool=tool,
            regret=means[tool],
            over_chance=means[tool] / chance,
            over_best=_ratio(means[tool], min(means.values())),
            over_oracle=_ratio(means[tool], self.oracle.get(problem, float("nan"))),
            stuck=float((end - half > limit).mean()),
            worst=float(end.max()) / chance,
        )

    def rows(self) -> list[ScoreRow]:
        """Return the results of every tool in every problem that it can play."""
        pairs = ((problem, tool) for problem in self.regret for tool in self.tools)
        return [row for pair in pairs if (row := self.row(*pair)) is not None]

    def table(self) -> list[dict[str, Any]]:
        """Return the rows as mappings, for a table."""
        return [row._asdict() for row in self.rows()]

    def summary(self) -> dict[str, dict[str, Any]]:
        """Sum up each tool: its ratios to the best tool, and where it gets stuck."""
        summaries: dict[str, dict[str, Any]] = {}
        for tool in self.tools:
            rows = [row for row in self.rows() if row.tool == tool]
            if not rows:
                continue
            worst = max(rows, key=lambda row: row.over_best)
            summaries[tool] = {
                "problems": len(rows),
                "median_over_best": float(np.median([row.over_best for row in rows])),
                "worst_over_best": worst.over_best,
                "worst_problem": worst.problem,
                "over_chance": float(np.median([row.over_chance for row in rows])),
                "stuck": [row.problem for row in rows if row.stuck > 0],
            }
        return summaries

    def to_frame(self) -> "pandas.DataFrame":
        """Return a row for each tool and problem that it can play; needs pandas."""
        import pandas

        return pandas.DataFrame(self.table())

    def __repr__(self) -> str:
        paths, size = self.settings["paths"], self.settings["size"]
        tools = ", ".join(self.tools)
        return f"<Score of {tools} in {len(self.problems)} problems: {paths} paths, size {size}>"

    def _repr_html_(self) -> str:
        shares = [[self.row(problem, tool) for tool in self.tools] for problem in self.problems]
        rows = [
            [
                problem,
                *("–" if row is None else f"{row.over_chance:.1%}" for row in rows_of_problem),
            ]
            for problem, rows_of_problem in zip(self.problems, shares, strict=True)
        ]
        note = f"Regret relative to random arms, {self.settings['paths']} paths."
        return html([["problem", *self.tools], *rows], [note])

    def plot(self) -> "Figure":
        """Draw a heat map, see `tailproof.research.gauntlet.picture.gauntlet_figure`."""
        from tailproof.research.gauntlet.picture import gauntlet_figure

        return gauntlet_figure(self)

    def to_markdown(self, command: str) -> str:
        """Return the tables as Markdown, with the command that made the score."""
        from tailproof.research.gauntlet.page import page

        return page(self, command)

    def save(self, path: str | Path) -> Path:
        """Write a new ``.npz`` file of plain arrays and text."""
        names = {problem: list(tools) for problem, tools in self.regret.items()}
        arrays = {
            f"regret{i}_{j}": regret
            for i, tools in enumerate(self.regret.values())
            for j, regret in enumerate(tools.values())
        }
        oracle = {"problems": list(self.oracle), "regret": list(self.oracle.values())}
        settings = dict(self.settings)
        header = {"format": _FORMAT, "regret": names, "oracle": oracle, "settings": settings}
        return write_file(path, header, arrays)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote."""
        with opened(path, _FORMAT) as (header, arrays):
            shape = (header["settings"]["paths"], 2)
            regret = {
                problem: {tool: arrays[f"regret{i}_{j}"] for j, tool in enumerate(tools)}
                for i, (problem, tools) in enumerate(header["regret"].items())
            }
            for by_tool in regret.values():
                require(CHANCE in by_tool, "regret", f"with {CHANCE}", list(by_tool))
                for array in by_tool.values():
                    require(array.shape == shape, "shape", str(shape), array.shape)
            oracle = header["oracle"]
            oracle_regret = dict(zip(oracle["problems"], oracle["regret"], strict=True))
            return cls(regret=regret, oracle=oracle_regret, settings=header["settings"])


def _ratio(regret: float, least: float) -> float:
    """Return the ratio, and 1 for 0/0."""
    if least == 0:
        return 1.0 if regret == 0 else float("inf")
    return regret / least
