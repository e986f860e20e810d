"""The running experiments of a service, each with its agent and journal."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tailproof.live import Agent, Journal, open_journal
from tailproof.live.config import Arms, Config, Settings
from tailproof.live.offer import Offer
from tailproof.stats.aims import Aim

__all__ = ["Experiment", "journal_of", "open_all", "open_one"]


@dataclass(frozen=True)
class Experiment:
    """One running experiment.

    Parameters
    ----------
    name : str
    agent : Agent
    aim : Aim
        The statistic that arms are compared by.
    costs : bool
        Whether rewards are costs, so that smaller is better.
    arms : list, dict or None
        The arms for requests without an offer: names, or names with features.
    offer : Offer or None
        The same, checked.
    reader : callable
        Opens another connection to the journal, for long reads; close it after use.
    """

    name: str
    agent: Agent
    aim: Aim
    costs: bool
    arms: Arms
    offer: Offer | None
    reader: Callable[[], Journal]


def open_all(config: Config) -> dict[str, Experiment]:
    """Open all experiments of a service; if one fails, the others are closed again."""
    with ExitStack() as opened:
        found = {}
        for settings in config.experiments.values():
            found[settings.name] = open_one(config, settings)
            opened.callback(found[settings.name].agent.close)
        opened.pop_all()
    return found


def open_one(config: Config, settings: Settings, *, change: bool = False) -> Experiment:
    """Open one experiment; raises ``ValueError`` if its journal has another recipe.

    With `change`, that recipe is replaced.
    """
    journal = journal_of(config, settings.name)
    try:
        agent = Agent(settings.recipe, journal, change=change)
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
        offer=None if settings.arms is None else Offer.of(settings.arms),
        reader=partial(journal_of, config, settings.name),
    )


def journal_of(config: Config, name: str, *, make: bool = True) -> Journal:
    """Connect to the journal of an experiment; unless `make`, it must exist."""
    if "://" in config.journal:
        return open_journal(f"{config.journal}#{name}", durable=config.durable, make=make)
    folder = Path(config.journal)
    if make:
        folder.mkdir(parents=True, exist_ok=True)
    return open_journal(folder / f"{name}.db", durable=config.durable, make=make)
