"""Judge a log: what another rule would have earned, and whether the answer can be trusted."""

from tailproof.judging.question import Judging
from tailproof.judging.result import Difference, Judgement, RuleValue
from tailproof.judging.values import judge

__all__ = ["Difference", "Judgement", "Judging", "RuleValue", "judge"]
