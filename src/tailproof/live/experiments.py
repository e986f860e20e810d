"""Experiments at work: settings, each with an agent on a journal of its own."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tailproof.live.agent import Agent
from tailproof.live.config import Arms, Config, Settings
from tailproof.live.journal import Journal
from tailproof.live.opening import open_journal
from tailproof.stats.aims import Aim

__all__ = ["Experiment", "open_all", "open_one"]


@dataclass(frozen=True)
class Experiment:
    """One experiment of a service.

    Parameters
    ----------
    name : str
    agent : Agent
    aim : Aim
        What arms are compared by.
    costs : bool
        Whether the smallest is the best.
    arms : list, dict or None
        For requests that offer none: names, or names with features.
    wait : float
        Seconds that a reward may take.
    explore : float
    reader : callable
        Opens the journal once more, for long reading beside the agent; close it after use.
    """

    name: str
    agent: Agent
    aim: Aim
    costs: bool
    arms: Arms
    wait: float
    explore: float
    reader: Callable[[], Journal]


def open_all(config: Config) -> dict[str, Experiment]:
    """Return the experiments of a service, each opened; if one is refused, none is."""
    with ExitStack() as opened:
        found = {}
        for settings in config.experiments.values():
            found[settings.name] = open_one(config, settings)
            opened.callback(found[settings.name].agent.close)
        opened.pop_all()
    return found


def open_one(config: Config, settings: Settings) -> Experiment:
    """Return one experiment; a journal of another recipe is refused."""
    journal = _journal(config, settings.name)
    try:
        agent = Agent(
            settings.policy,
            journal,
            wait=settings.wait,
            explore=settings.explore,
            seed=settings.seed,
            dim=settings.dim,
        )
    except ValueError as error:
        journal.close()
        raise ValueError(f"experiments.{settings.name}: {error}") from None
    except BaseException:
        journal.close()
        raise
    return Experiment(
        name=settings.name,
        agent=agent,
        aim=settings.aim,
        costs=settings.costs,
        arms=settings.arms,
        wait=settings.wait,
        explore=settings.explore,
        reader=partial(_journal, config, settings.name),
    )


def _journal(config: Config, name: str) -> Journal:
    if "://" in config.journal:
        return open_journal(f"{config.journal}#{name}", durable=config.durable)
    folder = Path(config.journal)
    folder.mkdir(parents=True, exist_ok=True)
    return open_journal(folder / f"{name}.db", durable=config.durable)
