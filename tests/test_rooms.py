"""A room reads its public names from its files, and a new policy is one file."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import tailproof
from tailproof import Filtered, testing
from tailproof.policies._skeleton import EpsilonGreedy

ROOT = Path(__file__).parents[1]
PACKAGE = Path(str(tailproof.__file__)).parent
sys.path.append(str(ROOT / "release"))

import stubs  # noqa: E402


@pytest.mark.parametrize("name", stubs.ROOMS)
def test_a_stub_is_up_to_date(name: str) -> None:
    room = import_module(f"tailproof.{name}")
    assert stubs.path(room).read_text(encoding="utf-8") == stubs.stub(room), "run: make stubs"


def test_the_skeleton_passes_every_check_as_it_stands() -> None:
    testing.check_policy(EpsilonGreedy())
    testing.check_policy(Filtered(EpsilonGreedy(), repeats=5))
    assert "EpsilonGreedy" not in tailproof.__all__


SEEN = """
import json, api_pages, instances, policy_tables, tailproof
from tailproof import recipes
built = recipes.build("policy", "filtered(epsilon_greedy(), repeats=3)").policy
print(json.dumps({
    "the library": "EpsilonGreedy" in tailproof.__all__ and str(tailproof.EpsilonGreedy()),
    "the contract checks": tailproof.EpsilonGreedy() in instances.ALL,
    "the API pages": "tailproof.EpsilonGreedy" in api_pages.public_names(),
    "the tables": "`EpsilonGreedy <tailproof.EpsilonGreedy>`" in policy_tables.tables()["K arms"],
    "the command line": str(built),
}))
"""


def test_a_new_policy_is_one_file(tmp_path: Path) -> None:
    """In a copy of the package, the skeleton under another name is seen everywhere."""
    copy = tmp_path / "tailproof"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(copy / "policies" / "_skeleton.py", copy / "policies" / "epsilon_greedy.py")
    folders = [tmp_path, ROOT / "docs", ROOT / "tests" / "support"]
    done = subprocess.run(
        [sys.executable, "-c", SEEN],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders))},
    )
    made = "EpsilonGreedy(exploration=0.1)"
    assert json.loads(done.stdout) == {
        "the library": made,
        "the contract checks": True,
        "the API pages": True,
        "the tables": True,
        "the command line": made,
    }


CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]


def listed(contract: str) -> set[str]:
    """Return the modules in the layers of a contract."""
    (layers,) = (found["layers"] for found in CONTRACTS if found["name"] == contract)
    return {name.strip(" ()") for layer in layers for name in re.split("[|:]", layer)}


def test_every_module_is_in_the_import_contract() -> None:
    """By its own name, or by those of all its parts; nothing is excepted."""
    layers = listed("Imports point one way")
    for module in iter_modules([str(PACKAGE)]):
        name = f"tailproof.{module.name}"
        parts = iter_modules([str(PACKAGE / module.name)]) if module.ispkg else ()
        inside = {f"{name}.{part.name}" for part in parts}
        assert name in layers or (inside and inside <= layers), name
    assert not [contract for contract in CONTRACTS if "ignore_imports" in contract]


def test_every_module_of_live_is_in_its_contract() -> None:
    (name,) = (found["name"] for found in CONTRACTS if "tailproof.live.agent" in str(found))
    parts = {f"tailproof.live.{part.name}" for part in iter_modules([str(PACKAGE / "live")])}
    assert parts <= listed(name)
