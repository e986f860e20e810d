"""The folder of a reproduction: simulate studies into it, stop, resume."""

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from tailproof.checks import number, require, whole
from tailproof.policies import Policy
from tailproof.research.paper import COMPARING, SIZES, STUDIES, select
from tailproof.research.paper.claims import StudyResult
from tailproof.results import Result
from tailproof.results.files import locked, whole_file
from tailproof.results.identification import Identification
from tailproof.results.provenance import provenance
from tailproof.simulation.code import own_code
from tailproof.simulation.engines import check_engine
from tailproof.simulation.sweeps import sweep

__all__ = ["Reproduction", "reproduce"]

_FORMAT = "tailproof reproduction 1"
_MOST_BYTES = 1 << 20  # of a run.json: ours have some kilobytes
_FILE = re.compile(r"(names|regret)-[\w.-]+\.npz")
_WRITTEN = re.compile(
    r"\.lock|cells|results|figures|(report\.html|verdicts\.md|run\.json)(\.\d+\.part)?"
)
"""Everything that a reproduction writes into its folder."""


@dataclass(frozen=True)
class Reproduction:
    """The finished studies of a folder, all of one size, one seed and one set of versions."""

    out: Path
    size: str
    seed: int
    versions: dict[str, str]
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each finished study took."""
    files: dict[str, dict[str, str]] = field(default_factory=dict)
    """The files of the results of each study."""
    policies: dict[str, str] = field(default_factory=dict)
    """The settings and code of a user's policies, which are drawn beside those of the paper."""

    @classmethod
    def load(cls, out: Path) -> Self:
        """Read ``run.json`` as `save` wrote it."""
        try:
            with (out / "run.json").open("rb") as file:
                record: dict[str, Any] = json.loads(file.read(_MOST_BYTES))
            require(record.pop("format") == _FORMAT, "format", _FORMAT, record)
            run = cls(out=out, **record)
            run._check()
        except Exception as error:  # a foreign or altered file may raise anything
            raise ValueError(
                f"out must be a folder written by tailproof reproduce; {str(out)!r} has no "
                "run.json, or a damaged one"
            ) from error
        return run

    def _check(self) -> None:
        whole("seed", self.seed, at_least=0)
        for seconds in self.seconds.values():
            number("seconds", seconds, at_least=0)
        files = (file for files in self.files.values() for file in files.values())
        ok = self.size in SIZES and all(_FILE.fullmatch(file) for file in files)
        ok = ok and self.files.keys() == self.seconds.keys() <= STUDIES.keys()
        texts = [*self.versions.values(), *self.policies, *self.policies.values()]
        ok = ok and all(isinstance(text, str) for text in texts)
        require(ok, "run.json", "as save writes it", self)

    def save(self) -> None:
        """Write ``run.json`` in one step."""
        record = {"format": _FORMAT, **asdict(self)}
        del record["out"]
        with whole_file(self.out / "run.json") as file:
            file.write(json.dumps(record, indent=2).encode())

    def results(self, name: str) -> dict[str, StudyResult]:
        """Load the results of a finished study."""
        folder = self.out / "results" / name
        return {
            key: (Identification if file.startswith("names") else Result).load(folder / file)
            for key, file in self.files[name].items()
        }

    def has(self, name: str) -> bool:
        """Return whether a study is finished and its results can be read."""
        try:
            return name in self.seconds and self.results(name) is not None
        except (OSError, ValueError, LookupError):
            return False

    def store(self, name: str, results: Mapping[str, StudyResult], seconds: float) -> None:
        """Save the results of a study, each in one step; an earlier time is not replaced."""
        folder = self.out / "results" / name
        files = {}
        for key, result in results.items():
            kind = "names" if isinstance(result, Identification) else "regret"
            files[key] = re.sub(r"[^\w.]+", "-", f"{kind} {key}") + ".npz"
            folder.mkdir(parents=True, exist_ok=True)
            for leftover in folder.glob("part*"):
                leftover.unlink()
            result.save(folder / "part").replace(folder / files[key])
        self.files[name] = files
        self.seconds.setdefault(name, seconds)
        self.save()


def reproduce(
    names: Iterable[str],
    out: Path,
    *,
    size: str = "quick",
    seed: int = 0,
    engine: str = "processes",
    workers: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
    policies: Mapping[str, Policy[Any]] = {},
) -> Reproduction:
    """Simulate the named studies into a folder, except the studies that it has already.

    Parameters
    ----------
    names : iterable of str
        Keys of `STUDIES`, single figures such as "3", or "all".
    out : Path
        A new folder, or one of the same size, seed and versions.
    size : "smoke", "quick" or "paper"
        The number of paths and pulls.
    seed, engine, workers :
        As for `sweep`.
    progress : callable, optional
        Called with the study, the number of its finished cells, and of all its cells.
    policies : mapping from names to policies
        Policies of your own, drawn beside the others in the studies `COMPARING`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = reproduce(["overview"], Path(folder) / "new", size="smoke", engine="serial")
    ...     sorted(run.results("overview"))
    ['df = 0.5', 'df = 1', 'df = 1.02', 'df = 3']
    """
    require(size in SIZES, "size", f"one of {', '.join(SIZES)}", size)
    whole("seed", seed, at_least=0)
    check_engine(engine, workers)
    selected = select(names)
    _check_policies(policies, selected)
    texts = {name: f"{policy!r} {own_code(policy)}".strip() for name, policy in policies.items()}
    new = Reproduction(out=out, size=size, seed=seed, versions=provenance(), policies=texts)
    _resume(new)  # refuses a folder that does not fit before anything is written
    out.mkdir(parents=True, exist_ok=True)
    with locked(out):
        run = _resume(new)
        for leftover in out.glob("run.json.*.part"):
            leftover.unlink()
        run.save()
        for name in selected:
            if run.has(name):
                continue
            step = None if progress is None else partial(progress, name)
            begin = time.perf_counter()
            cells = partial(sweep, out=out / "cells", engine=engine, workers=workers, progress=step)
            played = partial(_with_policies, cells, policies) if name in COMPARING else cells
            results = STUDIES[name].run(played, size, seed)
            run.store(name, results, time.perf_counter() - begin)
    return run


def _check_policies(policies: Mapping[str, Policy[Any]], selected: Iterable[str]) -> None:
    """Refuse policies of a user that no selected study would draw."""
    for name, policy in policies.items():
        require(isinstance(policy, Policy), f"policies[{name!r}]", "a policy", policy)
    if policies and not set(selected) & set(COMPARING):
        raise ValueError(
            f"policies of your own are drawn in {', '.join(COMPARING)}: choose one of these figures"
        )


def _with_policies(
    sweep: Callable[..., dict[str, Any]],
    policies: Mapping[str, Policy[Any]],
    plans: Mapping[str, Any],
) -> dict[str, Any]:
    """Run plans with policies of a user beside their own, where these are drawn."""
    changed = {}
    for key, plan in plans.items():
        twice = sorted(policies.keys() & plan.policies.keys())
        if twice:
            raise ValueError(f"policies: {twice[0]!r} is in that figure already; rename yours")
        drawn = not key.startswith("more paths")
        changed[key] = replace(plan, policies=plan.policies | policies) if drawn else plan
    return sweep(changed)


def _resume(new: Reproduction) -> Reproduction:
    """Return the earlier run of the same folder; after an early stop it may have no run.json."""
    out, file = new.out, new.out / "run.json"
    empty = not file.exists() or (file.is_file() and not file.stat().st_size)
    if empty and all(_WRITTEN.fullmatch(path.name) for path in out.glob("*")):
        return new
    before = Reproduction.load(out)
    old, wanted = (
        {"size": run.size, "seed": run.seed, **run.versions, "policies": run.policies}
        for run in (before, new)
    )
    for name in wanted | old:
        if old.get(name) != wanted.get(name):
            if name == "policies" and _settings(before) == _settings(new):
                raise ValueError(
                    f"out {str(out)!r} holds results of {', '.join(new.policies)} before the code "
                    "was edited; choose a new folder"
                )
            raise ValueError(
                f"out {str(out)!r} holds results of {name} {old.get(name)}, not "
                f"{wanted.get(name)}; choose a new folder"
            )
    return before


def _settings(run: Reproduction) -> dict[str, str]:
    """Return the settings of the user's policies, without the hash of their code."""
    return {name: re.sub(r" [0-9a-f]{16}$", "", text) for name, text in run.policies.items()}
