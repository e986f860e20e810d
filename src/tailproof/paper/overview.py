"""The first picture: OFUL alone and behind the filter, as the noise loses its mean.

The neutral environment gives no policy a gift, and one setting of the filter serves every noise.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from tailproof.checks import require
from tailproof.environments import neutral
from tailproof.estimators import Median
from tailproof.figures import regret_figure
from tailproof.filters import Filtered
from tailproof.noise import StudentT
from tailproof.policies import OFUL, Policy, Uniform
from tailproof.result import Result, provenance
from tailproof.simulation import simulate

__all__ = ["DFS", "POLICIES", "SIZES", "draw", "run"]

SIZES = {
    "smoke": {"horizon": 300, "paths": 4},
    "quick": {"horizon": 10_000, "paths": 100},
}
DFS = (3, 1.02, 1, 0.5)
POLICIES: dict[str, Policy[Any]] = {
    "OFUL": OFUL(),
    "OFUL behind a median of 15": Filtered(OFUL(noise_scale=0.45), pulls=15, estimator=Median()),
    "uniformly random arm": Uniform(),
}


def run(
    out: Path,
    *,
    size: str = "quick",
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Result]:
    """Simulate each noise into a file of its own; files of the same run are kept and reused."""
    require(size in SIZES, "size", f"one of {', '.join(SIZES)}", size)
    out.mkdir(parents=True, exist_ok=True)
    own = {"overview.png", "table.csv", *(f"df-{df}.npz" for df in DFS)}
    foreign = {path.name for path in out.iterdir()} - own
    require(not foreign, "out", "a new folder, or one of this command", str(out))
    results = {}
    for i, df in enumerate(DFS):
        file = out / f"df-{df}.npz"
        if not file.exists():

            def step(done: int, total: int, before: int = i) -> None:
                if progress is not None:
                    progress(before * total + done, len(DFS) * total)

            simulate(
                POLICIES,
                neutral(StudentT(df)),
                **SIZES[size],
                seed=seed,
                workers=workers,
                progress=step,
            ).save(file)
        result = Result.load(file)
        wanted = {
            **SIZES[size],
            "seed": seed,
            "environment": repr(neutral(StudentT(df))),
            "policies": {name: repr(policy) for name, policy in POLICIES.items()},
            "versions": provenance(),
        }
        same = all(result.settings[key] == value for key, value in wanted.items())
        require(same, "out", "a new folder, or one with the same settings and versions", str(out))
        results[_title(df)] = result
    return results


def draw(results: Mapping[str, Result]) -> Figure:
    """Draw one panel for each noise."""
    return regret_figure(results)


def _title(df: float) -> str:
    means = "no mean" if df <= 1 else "no variance" if df <= 2 else "finite variance"
    return f"Student-t, df = {df}: {means}"
