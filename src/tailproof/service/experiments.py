"""The running experiments of a service, each with its agent and journal."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tailproof.live import Agent, Journal, open_journal
from tailproof.live.config import Config, Settings

__all__ = ["Experiment", "journal_of", "open_all", "open_one"]


@dataclass(frozen=True, kw_only=True)
class Experiment(Settings):
    """The settings of an experiment that runs, with its agent.

    Parameters
    ----------
    agent : Agent
    reader : callable
        Opens another connection to the journal, for long reads; close it after use.
    """

    agent: Agent
    reader: Callable[[], Journal]


def open_all(config: Config) -> dict[str, Experiment]:
    """Open all experiments of a service; if one fails, the others are closed again."""
    with ExitStack() as opened:
        experiments = {}
        for settings in config.experiments.values():
            experiments[settings.name] = open_one(config, settings)
            opened.callback(experiments[settings.name].agent.close)
        opened.pop_all()
    return experiments


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
    reader = partial(journal_of, config, settings.name)
    return Experiment(**vars(settings), agent=agent, reader=reader)


def journal_of(config: Config, name: str, *, make: bool = True) -> Journal:
    """Connect to the journal of an experiment; unless `make`, it must exist."""
    if "://" in config.journal:
        return open_journal(f"{config.journal}#{name}", durable=config.durable, make=make)
    folder = Path(config.journal)
    if make:
        folder.mkdir(parents=True, exist_ok=True)
    return open_journal(folder / f"{name}.db", durable=config.durable, make=make)
