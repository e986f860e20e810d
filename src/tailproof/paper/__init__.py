"""The paper's figures, one module each, and four warnings with pictures of their own.

Every module is an `Exhibit`: settings as data, a `run` that simulates, and `draw` and
`check_claims`, which only read results.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from tailproof.checks import require
from tailproof.paper import (
    figure_1,
    figure_2_3,
    figure_4_5,
    figure_6,
    figure_7,
    figure_8_9,
    statements,
)
from tailproof.paper.exhibit import Exhibit
from tailproof.paper.experiments import (
    best_arm,
    bonus,
    choices,
    defects,
    guarantees,
    overview,
    pulls,
    shrinkage,
)

__all__ = ["EXHIBITS", "SIZES", "select"]

SIZES = ("smoke", "quick", "paper")

EXHIBITS: Mapping[str, Exhibit] = MappingProxyType(
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
        "defects": defects,
        "choices": choices,
        "best-arm": best_arm,
        "guarantees": guarantees,
    }
)
"""By the name to type: the figures that a module draws, or what it warns of."""


def select(names: Iterable[str]) -> list[str]:
    """Return the exhibits that are asked for, in their order; a figure names its pair too.

    >>> select(["3", "pulls"])
    ['2-3', 'pulls']
    """
    wanted = set()
    for name in names:
        found = [key for key in EXHIBITS if name in (key, "all") or name in _numbers(key)]
        require(bool(found), "figure", f"all or one of {', '.join(EXHIBITS)}", name)
        wanted.update(found)
    return [key for key in EXHIBITS if key in wanted]


def _numbers(key: str) -> list[str]:
    return [part for part in key.split("-") if part.isdigit()]
