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


class Metrics:
    """Counters of asks, tells and refusals, response times, and gauges of each experiment.

    Counters and times are of all workers together; the gauges are as the page reads them.
    """

    def __init__(
        self, experiments: Iterable[str], counts: Callable[[], Mapping[str, Mapping[str, float]]]
    ) -> None:
        registry = CollectorRegistry()
        self._asks = Counter("tailproof_asks", "Asks answered.", ["experiment"], registry=registry)
        self._tells = Counter(
            "tailproof_tells",
            "Tells, by the status of the reward.",
            ["experiment", "status"],
            registry=registry,
        )
        self._refused = Counter(
            "tailproof_refused", "Asks and tells refused.", ["experiment"], registry=registry
        )
        self._seconds = Histogram(
            "tailproof_answer_seconds",
            "Time to answer a request.",
            ["route", "status"],
            registry=registry,
            buckets=_SECONDS,
        )
        for name in experiments:
            self._asks.labels(name)
        self._shown = registry
        if SHARED in os.environ:
            self._shown = CollectorRegistry()
            MultiProcessCollector(self._shown)  # type: ignore[no-untyped-call]
        self._shown.register(_Gauges(counts))

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


class _Gauges(Collector):
    """Gauges of each experiment, as the page has read them; it takes no lock of the agent."""

    def __init__(self, counts: Callable[[], Mapping[str, Mapping[str, float]]]) -> None:
        self._counts = counts

    def collect(self) -> Iterable[GaugeMetricFamily]:
        texts = {
            "pending": "Requests without an outcome.",
            "lost_share": "Share of rewards that were lost.",
            "outcomes": "Outcomes so far.",
            "alarms": "Restarts of the policy because rewards changed, so far.",
        }
        for key, text in texts.items():
            family = GaugeMetricFamily(f"tailproof_{key}", text, labels=["experiment"])
            for name, counts in self._counts().items():
                family.add_metric([name], counts[key])
            yield family
