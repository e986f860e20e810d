"""The list of broken promises fits the source: each bug applies, and its tests are there."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "mutants"))

import run  # noqa: E402

MUTANTS = run.listed()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.promise)
def test_a_mutant_applies_and_its_tests_exist(mutant: run.Mutant) -> None:
    file, text = run.mutated(mutant)
    compile(text, file.name, "exec")
    for test in mutant.tests:
        path, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}" in (ROOT / path).read_text(), test


def test_every_promise_has_a_name_of_its_own() -> None:
    promises = [mutant.promise for mutant in MUTANTS]
    assert len(promises) == len(set(promises))
