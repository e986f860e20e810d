"""What does not fit into memory is refused before it is simulated."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from tailproof.environments.arm_sets import ArmSet
from tailproof.formatting import gigabytes
from tailproof.policies.base import Policy
from tailproof.simulation.cells import CHUNK

__all__ = ["check_result_size", "first_state"]

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux says how much a container may use."""


def first_state(name: str, policy: Policy[Any], contexts: ArmSet, paths: int) -> Any:
    """Return the state of one path, and refuse a policy of which a chunk of paths does not fit."""
    arms, dim, together = contexts.arms, contexts.dim, min(paths, CHUNK)
    try:
        state = policy.init(1, arms, dim)
        size = together * sum(array.nbytes for array in state.to_arrays().values())
    except MemoryError:
        size = together * dim * dim * 8
    size += together * arms * dim * 8  # the arms themselves
    if size > _memory():
        raise ValueError(
            f"policies[{name!r}] with {arms} arms in {dim} dimensions takes about "
            f"{gigabytes(size)} for {together} paths, and this machine has "
            f"{gigabytes(_memory())}: use fewer arms, dimensions or paths"
        )
    return state


def check_result_size(paths: int, numbers: float) -> None:
    """Refuse a result of too many numbers a path: its parts are in memory until it is whole."""
    size = 8.0 * paths * numbers
    if 2 * size > _memory():
        raise ValueError(
            f"the result would take {gigabytes(size)}, twice that while its parts are put "
            f"together, and this machine has {gigabytes(_memory())}: use fewer paths, checkpoints "
            "or policies, or no actions"
        )


def _memory() -> float:
    """Return the bytes of memory of this machine, or of this container; infinite if unknown."""
    most = float("inf")
    with suppress(AttributeError, ValueError, OSError):  # not on every system
        most = float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    for file in _LIMITS:
        with suppress(OSError, ValueError):  # no such file, or the word "max"
            most = min(most, float(Path(file).read_text()))
    return most
