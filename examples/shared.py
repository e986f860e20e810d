"""Turn records into advice, one table and one picture, for all examples."""

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from rich.console import Console
from rich.table import Table

from tailproof import (
    UCB1,
    Advice,
    Aim,
    AutoFiltered,
    LinStudentUCB,
    OrderStatisticUCB,
    Policy,
    Quantile,
    Uniform,
    calibrate,
    environments,
    simulate,
)
from tailproof.wrappers import Negated

console = Console()


def show_advice(
    title: str,
    rewards: ArrayLike,
    arms: ArrayLike,
    *,
    aim: Aim,
    costs: bool,
    horizon: int = 6000,
    paths: int = 40,
    **more: Policy[Any],
) -> Advice:
    """Give advice for records, then replay them with the advised tool and others."""
    warnings.simplefilter("ignore")
    advice = calibrate(reward=rewards, arm=arms, aim=aim, costs=costs)
    console.print(f"[bold]{title}[/bold]\n{advice.explain()}\n", highlight=False)
    advised = advice.policy()
    if isinstance(advised, Negated):
        advised = advised.policy  # the bandit negates costs itself
    tools: dict[str, Policy[Any]] = {
        "advised": advised,
        "UCB1": UCB1(),
        "AutoFiltered(UCB1)": AutoFiltered(UCB1()),
        "LinStudentUCB": LinStudentUCB(),
        **more,
        "a random arm": Uniform(),
    }
    if not isinstance(aim, Quantile):
        tools["OrderStatisticUCB"] = OrderStatisticUCB()
    bandit = environments.from_records(rewards, arms, aim=aim, costs=costs)
    result = simulate(tools, bandit, horizon=horizon, paths=paths, seed=1)
    chance = float(result.mean("a random arm")[-1])
    table = Table(
        title=f"Regret in {aim.name}, {horizon} pulls, {paths} paths, over that of a random arm"
    )
    for column in ("tool", "median", "mean", "90 % of paths are below"):
        table.add_column(column, justify="left" if column == "tool" else "right")
    for name, row in result.summary().items():
        cells = (f"{row[key] / chance:.3f}" for key in ("median", "mean", "high"))
        table.add_row(f"{name}: {tools[name]}" if name == "advised" else name, *cells)
    console.print(table)
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out/examples")
    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / f"{Path(sys.argv[0]).stem}.png"
    result.plot().savefig(picture)
    console.print(f"Picture: {picture}", soft_wrap=True)
    best = min(set(tools) - {"a random arm"}, key=lambda name: np.median(_last(result, name)))
    console.print(f"Smallest median regret: {best}.", highlight=False)
    return advice


def _last(result: Any, name: str) -> Any:
    return result.curves[name].regret[:, -1]
