"""Targets of the recommended tools: the most regret, or stuck paths, allowed in a problem."""

from collections.abc import Sequence
from dataclasses import dataclass

from tailproof.research.gauntlet.problems import PROBLEMS
from tailproof.research.gauntlet.score import BLOCKS, Score

__all__ = ["ALL", "TARGETS", "CheckedTarget", "Target", "check_targets"]

MEASURES = {
    "regret": "regret",
    "over_chance": "regret relative to random arms",
    "over_best": "regret relative to the best tool",
    "over_oracle": "regret relative to the oracle",
    "stuck": "share of stuck paths",
    "worst": "worst path relative to random arms",
    "median_over_best": "median ratio to the best tool",
    "worst_over_best": "worst ratio to the best tool",
}
"""The fields of `ScoreRow` in words; the last two are fields of `Score.summary`."""
ALL = "all problems"
_LINEAR, _FILTERED = "LinStudentUCB", "AutoFiltered(OFUL)"


@dataclass(frozen=True)
class Target:
    """The largest value of a measure that a tool may have in a problem."""

    problem: str
    tool: str
    measure: str
    at_most: float

    @property
    def text(self) -> str:
        """What is measured, in words."""
        return f"{self.problem}: {MEASURES[self.measure]}"


@dataclass(frozen=True)
class CheckedTarget:
    """A target with the value that was measured."""

    target: Target
    value: float

    @property
    def passed(self) -> bool:
        """Whether the value is small enough."""
        return self.value <= self.target.at_most


def check_targets(score: Score, targets: Sequence[Target] | None = None) -> list[CheckedTarget]:
    """Check a score of the full size; for other sizes return nothing.

    Targets for tools or problems that are not in the score are skipped.

    >>> from tailproof import UCB1, gauntlet
    >>> score = gauntlet.run({"UCB1": UCB1()}, problems=["k2-short"], size="full", workers=1)
    >>> check_targets(score, [Target("k2-short", "UCB1", "over_best", 1.0)])[0].passed
    True
    """
    if score.settings["size"] != "full":
        return []
    checked = []
    for target in TARGETS if targets is None else targets:
        if target.tool not in score.tools:
            continue
        if target.problem == ALL and PROBLEMS.keys() <= score.regret.keys():
            part = score.parts()[BLOCKS[""]]
            checked.append(CheckedTarget(target, part.summary()[target.tool][target.measure]))
        row = score.row(target.problem, target.tool) if target.problem in score.regret else None
        if row is not None:
            checked.append(CheckedTarget(target, getattr(row, target.measure)))
    return checked


def _targets(
    tool: str, measure: str, most: dict[str, float], *, stuck: float | None = None
) -> list[Target]:
    targets = [Target(problem, tool, measure, value) for problem, value in most.items()]
    if stuck is not None:
        targets += [Target(problem, tool, "stuck", stuck) for problem in most]
    return targets


_QUIET = ("noiseless", "quiet-normal", "quiet-t1", "quiet-t-half")
TARGETS: tuple[Target, ...] = (
    Target("k3-offset-10", _LINEAR, "regret", 80),
    Target("k3-offset-10", _FILTERED, "regret", 250),
    Target("k3-offset-10", "AutoFiltered(UCB1)", "regret", 100),
    *_targets(
        _LINEAR,
        "regret",
        {f"fixed-{name}": most for name, most in zip(_QUIET, (15, 10, 50, 80), strict=True)},
        stuck=0,
    ),
    *_targets(_LINEAR, "regret", {"fixed-t1": 340, "fixed-t-half": 480}, stuck=0.02),
    *_targets(_FILTERED, "over_chance", {f"fixed-{name}": 0.1 for name in _QUIET}, stuck=0),
    *_targets(_FILTERED, "over_chance", {"fixed-t1": 0.15, "fixed-t-half": 0.3}),
    *_targets(
        _LINEAR,
        "regret",
        {
            "fresh-t1": 330,
            "fresh-t-half": 380,
            "fresh-normal": 190,
            "fresh-theta-100": 500,
            "fresh-two-point": 30,
            "fresh-pareto": 300,
        },
    ),
    *_targets(_LINEAR, "regret", {"fixed-d2-k2-long": 80}, stuck=0),
    *_targets(_LINEAR, "regret", {"k5-t1": 200, "k5-t-half": 400, "k5-rademacher": 250}, stuck=0),
    *_targets(_LINEAR, "over_chance", {"k5-changing": 0.025}, stuck=0.02),
    *_targets(_LINEAR, "over_chance", {"fixed-changing": 0.045}, stuck=0.03),
    *_targets(_LINEAR, "over_chance", {"k5-noisy-best": 0.06}, stuck=0.05),
    *_targets(_LINEAR, "over_chance", {"k5-noisy-worst": 0.05}, stuck=0.03),
    Target("k20-t1", _LINEAR, "stuck", 0.05),
    Target("fixed-collinear", _LINEAR, "stuck", 0.1),
    Target("orthant-t1", _LINEAR, "regret", 400),
    Target(ALL, _LINEAR, "median_over_best", 1.15),
    Target(ALL, _LINEAR, "worst_over_best", 2.5),
)
"""What the recommended tools should achieve."""
