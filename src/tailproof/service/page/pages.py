"""The pages of a service: each reads on in its journal when somebody asks for it."""

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from tailproof.service.experiments import Experiment
from tailproof.service.page.summary import Summary

__all__ = ["Pages"]

_LOG = logging.getLogger("tailproof.live")
_INTERVAL = 1.0
"""Seconds for which a page that has read all is used again, however many look at it."""
_REST = 19
"""A page that has read all rests this many times as long as it read: a twentieth of a core."""
_PATIENCE = 1.0
"""Seconds that a request reads, or waits for another one that reads."""
_HEAD = "name", "read", "lead", "tickets", "pay"


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
        self._latest: dict[str, dict[str, Any]] = {
            name: {"name": name, "read": 0.0} for name in experiments
        }
        self._due = defaultdict[str, float](float)
        self._lock = threading.Lock()

    def summary(self, name: str) -> dict[str, Any]:
        """Return the page of an experiment, with nothing but its name if no more is known."""
        self._read([name])
        return self._latest[name]

    def heads(self) -> list[dict[str, Any]]:
        """Return a short status of each experiment."""
        self._read(self._experiments)
        heads = [
            {key: known[key] for key in _HEAD if key in known} for known in self._latest.values()
        ]
        for head in heads:
            if "pay" in head:
                head["pay"] = {key: head["pay"][key] for key in ("verdict", "words")}
        return heads

    def counts(self) -> dict[str, dict[str, float]]:
        """Return pending requests, outcomes, lost rewards and alarms of each experiment."""
        self._read(self._experiments)
        return {
            name: {
                "pending": tickets["pending"],
                "lost_share": tickets["lost"] / max(1, tickets["lost"] + tickets["rewards"]),
                "outcomes": known["outcomes"],
                "alarms": known["alarms"],
            }
            for name, known in self._latest.items()
            if (tickets := known.get("tickets"))
        }

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            while self._summaries:
                self._summaries.popitem()[1].counts.reader.close()

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
        settings, name = experiment.settings, experiment.settings.name
        try:
            if name not in self._summaries:
                journal = experiment.reader()
                self._summaries[name] = Summary(journal, settings.aim, costs=settings.costs)
            summary = self._summaries[name]
            while not (done := summary.refresh()) and time.monotonic() < end:
                pass
            found = {"name": name} | summary.to_dict() | {"at": time.time() if done else None}
        except Exception as error:
            _LOG.warning("cannot read the journal of %s; retrying: %s", name, error)
            if name in self._summaries:
                with suppress(Exception):
                    self._summaries.pop(name).counts.reader.close()
            return True
        if settings.arms is not None and not found["arms"]:
            found["offer"] = list(settings.arms)
        self._latest[name] = found
        return done
