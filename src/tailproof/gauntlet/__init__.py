"""The gauntlet: problems with units, offsets, skew, atoms and outliers, and how tools fare in them.

Each problem has a name that can be typed; `run` puts policies through them and returns a `Score`.
Problems and seed for tuning are apart from those that are reported.
"""

from tailproof.gauntlet.problems import PROBLEMS, Problem, problems
from tailproof.gauntlet.run import RECOMMENDED, SEEDS, SIZES, run
from tailproof.gauntlet.score import CHANCE, Row, Score
from tailproof.gauntlet.targets import TARGETS, CheckedTarget, Target, check_targets

__all__ = [
    "CHANCE",
    "PROBLEMS",
    "RECOMMENDED",
    "SEEDS",
    "SIZES",
    "TARGETS",
    "CheckedTarget",
    "Problem",
    "Row",
    "Score",
    "Target",
    "check_targets",
    "problems",
    "run",
]
