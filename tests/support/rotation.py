"""Which promises of the contract `make test` checks on which policies: a sample that rotates.

Every exported policy is checked against every promise in `tailproof.testing.POLICY_CHECKS`, by
tests/testing/test_contract.py. To do the same behind every wrapper, with other settings and for the
bandits of other libraries takes many minutes, so `make test` checks a sample and
`make test-slow` everything.

The sample is drawn from groups: policies that have a wrapper, a class or a library in common. The
policies of a group are put into the order of a hash of their names, and promises are dealt out to
them in turn, beginning with promise number `TAILPROOF_ROTATION`, until each policy has one and each
promise was dealt. So

- every group meets every promise, and every policy of a group meets at least one;
- the rotations 0, 1, …, 11 together check every promise on every policy;
- the sample depends on the names and on that variable alone. Its default is 0.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from math import ceil
from typing import Any

import pytest

from tailproof import Policy, testing
from tailproof.testing import games

Check = Callable[[Any], None]
Groups = Mapping[str, Sequence[Policy[Any]]]

ROTATION = int(os.environ.get("TAILPROOF_ROTATION", "0"))
BRIEFLY = 80
"""Decisions of a check in `make test`: more than the pilot phases of all wrappers, and two
doublings of buffers; the checks of the slow tests have 200."""


def deal(names: Sequence[str], rotation: int = ROTATION) -> list[tuple[str, Check]]:
    """Return the promises that are checked on each of a group."""
    checks, times = testing.POLICY_CHECKS, ceil(len(testing.POLICY_CHECKS) / len(names))
    order = sorted(set(names), key=lambda name: sha256(name.encode()).digest())
    return [
        (name, checks[(place + turn * len(order) + rotation) % len(checks)])
        for turn in range(times)
        for place, name in enumerate(order)
    ]


def sample(groups: Groups) -> list[Any]:
    """Return the policies and promises to check, as parameters of a test."""
    found = []
    for policies in groups.values():
        named = {repr(policy): policy for policy in policies}
        for name, check in deal(list(named)):
            found.append(pytest.param(named[name], check, id=f"{name}-{check.__name__}"))
    return found


def everything(groups: Groups) -> list[Any]:
    """Return every policy once, as parameters of a slow test."""
    named = {repr(policy): policy for policies in groups.values() for policy in policies}
    return [pytest.param(policy, id=name, marks=pytest.mark.slow) for name, policy in named.items()]


def by_class(policies: Sequence[Policy[Any]]) -> Groups:
    """Return groups of policies that are of one class."""
    kinds = {type(policy).__name__: type(policy) for policy in policies}
    return {name: [p for p in policies if type(p) is kind] for name, kind in kinds.items()}


def briefly(check: Check, policy: Policy[Any], decisions: int = BRIEFLY) -> None:
    """Check a promise on fewer decisions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(games, "DECISIONS", decisions)
        check(policy)
