"""Prometheus metrics of a service."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from tailproof.live import Ask, Status, Tell, Ticket

__all__ = ["SHARED", "Metrics"]

SHARED = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable that names the folder in which workers share their metrics."""
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
"""Ends of the buckets of response times: a commit takes milliseconds, a stuck disk seconds."""
_GAUGES = {
    "pending": "Requests without an outcome.",
    "lost_share": "Share of rewards that were lost.",
    "outcomes": "Outcomes so far.",
    "alarms": "Restarts of the policy because rewards changed, so far.",
}


class Metrics(Collector):
    """Counters of asks, tells and refusals, response times, and gauges of each experiment.

    Counters and times are of all workers together.

    Parameters
    ----------
    experiments : iterable of str
        Their names.
    counts : callable
        Returns the gauges of each experiment, as the page has read them; it takes no lock.
    """

    def __init__(
        self, experiments: Iterable[str], counts: Callable[[], Mapping[str, Mapping[str, float]]]
    ) -> None:
        self._counts, self._shown = counts, CollectorRegistry()
        asks = "tailproof_asks", "Asks answered.", ["experiment"]
        tells = "tailproof_tells", "Tells, by the status of the reward.", ["experiment", "status"]
        refused = "tailproof_refused", "Asks and tells refused.", ["experiment"]
        seconds = "tailproof_answer_seconds", "Time to answer a request.", ["route", "status"]
        self._asks = Counter(*asks, registry=self._shown)
        self._tells = Counter(*tells, registry=self._shown)
        self._refused = Counter(*refused, registry=self._shown)
        self._seconds = Histogram(*seconds, registry=self._shown, buckets=_SECONDS)
        for name in experiments:
            self._asks.labels(name)
        if SHARED in os.environ:
            self._shown = CollectorRegistry()
            MultiProcessCollector(self._shown)  # type: ignore[no-untyped-call]
        self._shown.register(self)

    def acted(
        self,
        experiment: str,
        acts: Sequence[Ask | Tell],
        answers: Sequence[Ticket | Status | ValueError],
    ) -> None:
        """Count asks, and tells by their status."""
        for act, answer in zip(acts, answers, strict=True):
            if isinstance(answer, ValueError):
                self._refused.labels(experiment).inc()
            elif isinstance(act, Ask):
                self._asks.labels(experiment).inc()
            else:
                self._tells.labels(experiment, answer).inc()

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Record the time that a request took."""
        self._seconds.labels(route, str(status)).observe(seconds)

    def page(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return generate_latest(self._shown)

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Return the gauges."""
        found = self._counts()
        for key, text in _GAUGES.items():
            family = GaugeMetricFamily(f"tailproof_{key}", text, labels=["experiment"])
            for name, counts in found.items():
                family.add_metric([name], counts[key])
            yield family
