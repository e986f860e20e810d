"""The hash of users' code by which finished cells are found again."""

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tailproof as tp
from tailproof.simulation.code import library_code, own_code

SOURCE = '''
"""A module of a user."""
from dataclasses import dataclass
import functools
import numpy as np
import tailproof as tp

STEP = 1

def helper(x):
    # a comment
    return x + STEP

@functools.cache
def cached(x):
    return x * 2

class Base(tp.UCB1):
    def twice(self, x):
        return cached(x)

@dataclass(frozen=True, kw_only=True)
class Mine(Base):
    """A policy."""
    bonus: float = 1.0
    weights = np.array([1.0, 2.0])

    def _choose(self, state, arms, rng):
        jumps = [helper(i) for i in range(2)]
        return super()._choose(state, arms, rng) * 0

class Odd(tp.noise.Normal):
    def _sample(self, rng, shape):
        return rng.normal(size=shape) + 0
'''


def loaded(source: str, name: str = "mine_hashed") -> ModuleType:
    module = ModuleType(name)
    sys.modules[name] = module
    exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    return module


def hashed(source: str) -> str:
    return own_code(tp.Filtered(loaded(source).Mine(), repeats=3))


def test_the_library_alone_has_no_own_code() -> None:
    assert own_code(tp.AutoFiltered(tp.OFUL()), tp.noise.Mixture((tp.noise.Cauchy(),), (1,))) == ""
    assert re.fullmatch("[0-9a-f]{16}", library_code())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("* 0\n", "* 1\n"),  # a method
        ("x + STEP", "x - STEP"),  # a function that it names
        ("STEP = 1", "STEP = 2"),  # a value that this function names
        ("x * 2", "x * 3"),  # behind functools, in a base class
        ("[1.0, 2.0]", "[1.0, 2.5]"),  # an attribute
        ("class Base(tp.UCB1)", "class Base(tp.ThompsonSampling)"),
    ],
)
def test_an_edit_changes_the_hash(old: str, new: str) -> None:
    assert old in SOURCE
    assert hashed(SOURCE.replace(old, new)) != hashed(SOURCE)


def test_comments_blank_lines_and_other_classes_do_not() -> None:
    same = SOURCE.replace("# a comment", "# another\n").replace("STEP = 1", "\n\nSTEP = 1")
    same = same.replace("size=shape) + 0", "size=shape) + 1")  # the noise is no part of the policy
    assert hashed(same) == hashed(SOURCE) != ""


def test_lambdas_and_closures_count() -> None:
    def made(step: int) -> Any:
        return lambda x: x + step

    assert own_code(made(1)) == own_code(made(1)) != own_code(made(2))


def test_edited_code_is_never_served_from_old_cells(tmp_path: Path) -> None:
    def run(source: str) -> Any:
        module = loaded(source)
        bandit = tp.environments.k_armed(module.Odd(), locations=(0, 1))
        policies = {"mine": module.Mine(), "UCB1": tp.UCB1()}
        ran: list[int] = []
        settings: Any = {"horizon": 20, "paths": 2, "out": tmp_path, "engine": "serial"}
        result = tp.simulate(
            policies, bandit, progress=lambda done, total: ran.append(done), **settings
        )
        return ran[0], result.mean("mine")[-1]

    edited = SOURCE.replace("* 0\n", "* 0 + 1\n")
    assert run(SOURCE) == (0, 20.0)  # always the first arm
    assert run(SOURCE) == (2, 20.0)
    assert run(edited) == (1, 0.0)  # UCB1 is kept, and the edited policy pulls the other arm
    assert run(SOURCE.replace("size=shape) + 0", "size=shape) + 9"))[0] == 0  # the noise is shared
