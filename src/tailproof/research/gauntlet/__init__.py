"""The gauntlet: many problems with units, offsets, skew, atoms and outliers, to compare tools.

Each problem has a name that can be typed; `run` plays policies in them and returns a `Score`.
"report" has problems about locations that stay as they are, "money" has shops, "moving" has worlds
that change, "worlds" has problems that break the assumption of a tool. Tune on "tuning" and the
sets that end in "-tuning" only: the reported problems and their seed are different.
"""

from tailproof.research.gauntlet.problems import PROBLEMS, Problem, problems
from tailproof.research.gauntlet.run import RECOMMENDED, SEEDS, SIZES, recommended, run
from tailproof.research.gauntlet.score import BLOCKS, CHANCE, Block, Score, ScoreRow
from tailproof.research.gauntlet.targets import TARGETS, CheckedTarget, Target, check_targets

__all__ = [
    "BLOCKS",
    "CHANCE",
    "PROBLEMS",
    "RECOMMENDED",
    "SEEDS",
    "SIZES",
    "TARGETS",
    "Block",
    "CheckedTarget",
    "Problem",
    "Score",
    "ScoreRow",
    "Target",
    "check_targets",
    "problems",
    "recommended",
    "run",
]


def __dir__() -> list[str]:
    return __all__
