"""A thread that keeps the summaries of a service up to date, for as long as somebody looks."""

import json
import logging
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tailproof.live.experiments import Experiment
from tailproof.live.summary import Summary

__all__ = ["Follower"]

_LOG = logging.getLogger("tailproof.live")
_BEAT = 1.0
"""Seconds between two rounds while somebody looks."""
_IDLE = 30.0
"""Seconds between two rounds while nobody does, so that there is never much to read."""
_REST = 19
"""The thread rests this many times as long as it worked, once everything has been read."""


class Follower:
    """Follows the journals of experiments in the background, and has their summaries at hand.

    It reads by connections of its own, a bite of each journal in turn, and takes a twentieth of a
    core at most, or half of one until everything that there was at the start has been read. What
    it hands out is as old as its last round: a second, more where summaries take long.

    Parameters
    ----------
    experiments : mapping
        By name.
    """

    def __init__(self, experiments: Mapping[str, Experiment]) -> None:
        self._experiments = experiments
        self._summaries: dict[str, Summary] = {}
        self._found: dict[str, bytes] = {}
        self._heads: dict[str, dict[str, Any]] = {name: {"name": name} for name in experiments}
        self._stop, self._looked = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="tailproof-page", daemon=True)
        self._thread.start()

    def heads(self) -> bytes:
        """Return a few words on each experiment, as JSON."""
        self._looked.set()
        return json.dumps({"experiments": list(self._heads.values())}).encode()

    def summary(self, name: str) -> bytes:
        """Return the summary of an experiment as JSON, with nothing but its name at first."""
        self._looked.set()
        return self._found.get(name) or json.dumps({"name": name, "read": 0.0}).encode()

    def close(self) -> None:
        """Stop reading."""
        self._stop.set()
        self._looked.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._looked.clear()
            began = time.thread_time()
            done = [self._follow(experiment) for experiment in self._experiments.values()]
            took = time.thread_time() - began
            self._stop.wait(max(_BEAT, _REST * took) if all(done) else took)
            if all(done):
                self._looked.wait(_IDLE)
        for summary in self._summaries.values():
            summary.journal.close()

    def _follow(self, experiment: Experiment) -> bool:
        """Read a bite of a journal; one that cannot be read is tried again, from the start."""
        name = experiment.name
        try:
            if name not in self._summaries:
                self._summaries[name] = Summary(
                    experiment.reader(),
                    experiment.agent.policy,
                    experiment.aim,
                    costs=experiment.costs,
                    wait=experiment.wait,
                )
            done = self._summaries[name].refresh()
            found = {"name": name, "explore": experiment.explore, "wait": experiment.wait}
            found |= self._summaries[name].to_dict() | {"at": time.time() if done else None}
        except Exception as error:
            _LOG.warning("the summary of %s must wait: %s", name, error)
            if name in self._summaries:
                with suppress(Exception):
                    self._summaries.pop(name).journal.close()
            return True
        if experiment.arms is not None and not found["arms"]:
            found["offer"] = list(experiment.arms)
        self._found[name] = json.dumps(found).encode()
        self._heads[name] = {key: found[key] for key in ("name", "read", "lead", "tickets")}
        return done
