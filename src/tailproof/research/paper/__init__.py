"""The paper's figures and our own experiments, one module for each study.

Every module is a `Study`: settings as data, a `run` that simulates, and `draw` and `check_claims`,
which only read results.
"""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from tailproof.checks import meant
from tailproof.research.paper import (
    figure_1,
    figure_2_3,
    figure_4_5,
    figure_6,
    figure_7,
    figure_8_9,
    statements,
)
from tailproof.research.paper.claims import Study
from tailproof.research.paper.experiments import (
    best_arm,
    bonus,
    choices,
    decision_set,
    defects,
    guarantees,
    overview,
    pulls,
    shrinkage,
)

__all__ = ["COMPARING", "SIZES", "STUDIES", "select"]

SIZES = ("smoke", "quick", "paper")

STUDIES: Mapping[str, Study] = MappingProxyType(
    {
        "overview": overview,
        "1": figure_1,
        "2-3": figure_2_3,
        "4-5": figure_4_5,
        "6": figure_6,
        "7": figure_7,
        "8-9": figure_8_9,
        "statements": statements,
        "pulls": pulls,
        "bonus": bonus,
        "shrinkage": shrinkage,
        "decision-set": decision_set,
        "defects": defects,
        "choices": choices,
        "best-arm": best_arm,
        "guarantees": guarantees,
    }
)
"""By the name that `tailproof reproduce` takes: the numbers of the figures, or a topic."""
COMPARING = ("overview", "2-3", "decision-set")
"""The studies that draw one curve for each policy, so that there is room for another."""


def select(names: Iterable[str]) -> list[str]:
    """Return the names of the studies asked for, in the order of `STUDIES`.

    >>> select(["3", "pulls"])
    ['2-3', 'pulls']
    """
    wanted = set()
    for name in names:
        matching = [key for key in STUDIES if name in ("all", key, *re.findall(r"\d+", key))]
        if not matching:
            known, hint = ", ".join(STUDIES), meant(name, STUDIES)
            raise ValueError(f"figure {name!r} is unknown; choose all, or some of {known}{hint}")
        wanted.update(matching)
    return [key for key in STUDIES if key in wanted]
