"""A background thread that refreshes the summaries of a service."""

import json
import logging
import math
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tailproof.service.experiments import Experiment
from tailproof.service.page.summary import Summary

__all__ = ["Refresher"]

_LOG = logging.getLogger("tailproof.live")
_INTERVAL = 1.0
"""Seconds between refreshes while the page is open."""
_IDLE = 30.0
"""Seconds between refreshes otherwise, so that there is never much to catch up on."""
_REST = 19
"""Once caught up, the thread sleeps at least this many times as long as it worked."""
_PATIENCE = 1.5
"""Seconds that a request waits at most for the first refresh after a while without any."""


class Refresher:
    """Refreshes the summaries of all experiments in the background.

    It reads a chunk of each journal in turn, over connections of its own, and uses at most a
    twentieth of a core, or half a core until it has caught up. A summary is as old as the last
    refresh: about a second, more if refreshing takes long.

    Parameters
    ----------
    experiments : mapping
        By name.
    """

    def __init__(self, experiments: Mapping[str, Experiment]) -> None:
        self._experiments = experiments
        self._summaries: dict[str, Summary] = {}
        self._bodies: dict[str, bytes] = {}
        self._heads: dict[str, dict[str, Any]] = {name: {"name": name} for name in experiments}
        self._stop, self._looked = threading.Event(), threading.Event()
        self._refreshed, self._began, self._idle = threading.Condition(), -math.inf, False
        self._thread = threading.Thread(target=self._run, name="tailproof-page", daemon=True)
        self._thread.start()

    def heads(self) -> bytes:
        """Return a short status of each experiment as JSON."""
        self._wait()
        return json.dumps({"experiments": list(self._heads.values())}).encode()

    def summary(self, name: str) -> bytes:
        """Return the summary of an experiment as JSON, with nothing but its name if that takes."""
        self._wait()
        return self._bodies.get(name) or json.dumps({"name": name, "read": 0.0}).encode()

    def counts(self) -> dict[str, dict[str, float]]:
        """Return pending requests, outcomes, lost rewards and alarms, as last read."""
        return {name: head["counts"] for name, head in self._heads.items() if "counts" in head}

    def _wait(self) -> None:
        """Wait a moment for a refresh that began after now, if one comes at once."""
        now, idle = time.monotonic(), self._idle or self._began == -math.inf
        self._looked.set()
        with self._refreshed:
            if idle and self._began < now - _INTERVAL:
                self._refreshed.wait_for(lambda: self._began >= now, _PATIENCE)

    def close(self) -> None:
        """Stop the thread."""
        self._stop.set()
        self._looked.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._looked.clear()
            began, start = time.thread_time(), time.monotonic()
            done = [self._follow(experiment) for experiment in self._experiments.values()]
            took = time.thread_time() - began
            with self._refreshed:
                self._began = start
                self._refreshed.notify_all()
            self._stop.wait(max(_INTERVAL, _REST * took) if all(done) else took)
            if all(done):
                self._idle = True
                self._looked.wait(_IDLE)
                self._idle = False
        for summary in self._summaries.values():
            summary.reader.close()

    def _follow(self, experiment: Experiment) -> bool:
        """Read a chunk of a journal; after an error, start over at the next refresh."""
        name = experiment.name
        try:
            if name not in self._summaries:
                self._summaries[name] = Summary(
                    experiment.reader(),
                    experiment.agent.policy,
                    experiment.aim,
                    costs=experiment.costs,
                )
            done = self._summaries[name].refresh()
            summary = {"name": name} | self._summaries[name].to_dict()
            summary["at"] = time.time() if done else None
        except Exception as error:
            _LOG.warning("cannot refresh the summary of %s; retrying: %s", name, error)
            if name in self._summaries:
                with suppress(Exception):
                    self._summaries.pop(name).reader.close()
            return True
        if experiment.arms is not None and not summary["arms"]:
            summary["offer"] = list(experiment.arms)
        self._bodies[name] = json.dumps(summary).encode()
        self._heads[name] = {key: summary[key] for key in ("name", "read", "lead", "tickets")}
        self._heads[name]["pay"] = {key: summary["pay"][key] for key in ("verdict", "words")}
        tickets = summary["tickets"]
        alarms = sum(note["kind"] == "alarm" for note in summary["notes"])
        self._heads[name]["counts"] = {
            "pending": tickets["pending"],
            "lost_share": tickets["lost"] / max(1, tickets["lost"] + tickets["rewards"]),
            "outcomes": summary["outcomes"],
            "alarms": alarms,
        }
        return done
