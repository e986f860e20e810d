"""A room reads its public names from its files, and a new policy is one file."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "release"))

import stubs  # noqa: E402


@pytest.mark.parametrize("name", stubs.ROOMS)
def test_a_stub_is_up_to_date(name: str) -> None:
    room = import_module(f"tailproof.{name}")
    assert stubs.path(room).read_text(encoding="utf-8") == stubs.stub(room), "run: make stubs"
