"""Prometheus metrics of a service."""

import os
from collections.abc import Iterable, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from tailproof.live.agent import Ask, Fate, Tell, Ticket
from tailproof.service.experiments import Experiment

__all__ = ["SHARED", "Metrics"]

SHARED = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable that names the folder in which workers share their metrics."""
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)


class Metrics:
    """Counters of asks, tells and refusals, response times, and gauges of each experiment.

    Counters and times are those of all workers together; the gauges are as last seen by the worker
    that answers.
    """

    def __init__(self, experiments: Mapping[str, Experiment]) -> None:
        own = CollectorRegistry()
        self._asks = Counter("tailproof_asks", "Asks answered.", ["experiment"], registry=own)
        self._tells = Counter(
            "tailproof_tells",
            "Tells, by what happened to the reward.",
            ["experiment", "fate"],
            registry=own,
        )
        self._refused = Counter(
            "tailproof_refused", "Asks and tells refused.", ["experiment"], registry=own
        )
        self._seconds = Histogram(
            "tailproof_answer_seconds",
            "Time to answer a request.",
            ["route", "status"],
            registry=own,
            buckets=_SECONDS,
        )
        for name in experiments:
            self._asks.labels(name)
        self._shown = own
        if SHARED in os.environ:
            self._shown = CollectorRegistry()
            MultiProcessCollector(self._shown)  # type: ignore[no-untyped-call]
        self._shown.register(_Standing(experiments))

    def acted(
        self,
        experiment: str,
        acts: Sequence[Ask | Tell],
        answers: Sequence[Ticket | Fate | ValueError],
    ) -> None:
        """Count asks, and tells by what happened to the reward."""
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


class _Standing(Collector):
    """Gauges of each experiment, read at scrape time."""

    def __init__(self, experiments: Mapping[str, Experiment]) -> None:
        self._experiments = experiments

    def collect(self) -> Iterable[GaugeMetricFamily]:
        texts = {
            "pending": "Tickets without an outcome.",
            "lost_share": "Share of recent rewards that were lost.",
            "outcomes": "Outcomes so far.",
            "alarms": "Restarts of the policy because rewards changed, so far.",
        }
        families = {
            key: GaugeMetricFamily(f"tailproof_{key}", text, labels=["experiment"])
            for key, text in texts.items()
        }
        for name, experiment in self._experiments.items():
            standing = experiment.agent.standing()
            for family, value in zip(families.values(), standing, strict=True):
                family.add_metric([name], value)
        return families.values()
