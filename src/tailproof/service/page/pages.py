"""The pages of a service: each reads on in its journal when somebody asks for it."""

import json
import logging
import math
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from tailproof.service.experiments import Experiment
from tailproof.service.page.summary import Summary

__all__ = ["Pages"]

_LOG = logging.getLogger("tailproof.live")
_INTERVAL = 1.0
"""Seconds for which a page that has read all is used again."""
_REST = 19
"""A page that has read all rests this many times as long as it read: a twentieth of a core."""
_PATIENCE = 1.0
"""Seconds that a request reads, or waits for another one that reads."""


class Pages:
    """The summaries of all experiments, read on by the requests that ask for them.

    A request reads for at most a second, over a connection that the page has for itself, and gets
    what is read by then; the next request reads on. A page that has read all is used again for a
    second at least.

    Parameters
    ----------
    experiments : mapping
        By name.
    """

    def __init__(self, experiments: Mapping[str, Experiment]) -> None:
        self._experiments = experiments
        self._summaries: dict[str, Summary] = {}
        self._latest: dict[str, dict[str, Any]] = {}
        self._bodies: dict[str, bytes] = {}
        self._due = dict.fromkeys(experiments, -math.inf)
        self._lock = threading.Lock()

    def summary(self, name: str) -> bytes:
        """Return the page of an experiment as JSON, with nothing but its name if none is known."""
        self._read([name])
        return self._bodies.get(name) or json.dumps({"name": name, "read": 0.0}).encode()

    def heads(self) -> bytes:
        """Return a short status of each experiment as JSON."""
        self._read(self._experiments)
        shown = "name", "read", "lead", "tickets", "pay"
        heads = [
            {key: known[key] for key in shown if key in known}
            for known in (self._latest.get(name, {"name": name}) for name in self._experiments)
        ]
        for head in heads:
            if "pay" in head:
                head["pay"] = {key: head["pay"][key] for key in ("verdict", "words")}
        return json.dumps({"experiments": heads}).encode()

    def counts(self) -> dict[str, dict[str, float]]:
        """Return pending requests, outcomes, lost rewards and alarms of each experiment."""
        self._read(self._experiments)
        found = {}
        for name, known in self._latest.items():
            tickets = known["tickets"]
            found[name] = {
                "pending": tickets["pending"],
                "lost_share": tickets["lost"] / max(1, tickets["lost"] + tickets["rewards"]),
                "outcomes": known["outcomes"],
                "alarms": sum(note["kind"] == "alarm" for note in known["notes"]),
            }
        return found

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            while self._summaries:
                self._summaries.popitem()[1].reader.close()

    def _read(self, names: Iterable[str]) -> None:
        """Read on in some journals, unless another request reads for too long."""
        end = time.monotonic() + _PATIENCE
        if not self._lock.acquire(timeout=_PATIENCE):
            return
        try:
            for name in names:
                if time.monotonic() >= self._due[name]:
                    start = time.thread_time()
                    done = self._follow(self._experiments[name], end)
                    took = time.thread_time() - start
                    rest = max(_INTERVAL, _REST * took) if done else took
                    self._due[name] = time.monotonic() + rest
        finally:
            self._lock.release()

    def _follow(self, experiment: Experiment, end: float) -> bool:
        """Read a journal until a time; after an error, start over at the next request."""
        name = experiment.name
        try:
            if name not in self._summaries:
                reader = experiment.reader()
                self._summaries[name] = Summary(reader, experiment.aim, costs=experiment.costs)
            summary = self._summaries[name]
            done = summary.refresh()
            while not done and time.monotonic() < end:
                done = summary.refresh()
            found = {"name": name} | summary.to_dict()
        except Exception as error:
            _LOG.warning("cannot read the journal of %s; retrying: %s", name, error)
            if name in self._summaries:
                with suppress(Exception):
                    self._summaries.pop(name).reader.close()
            return True
        found["at"] = time.time() if done else None
        if experiment.arms is not None and not found["arms"]:
            found["offer"] = list(experiment.arms)
        self._latest[name], self._bodies[name] = found, json.dumps(found).encode()
        return done
