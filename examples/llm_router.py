"""Routing between four LLM providers for an hour, with heavy tails, an outage and a slowdown.

Four ways to choose a provider for each of 18 000 calls see the same latencies: our
`tailproof.routing.Router` for a small 95 % quantile; LiteLLM's own lowest-latency strategy, its
real code; round robin; and the provider with the smallest 95 % quantile of the moment, which
nobody knows. Calls overlap, as they do in production: an answer is learned when it comes.

    python examples/llm_router.py [folder] [--seeds 30] [--first-seed 0]
"""

import argparse
import heapq
import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # LiteLLM need not fetch prices

import litellm
import matplotlib.pyplot as plt
import numpy as np
from litellm.caching.caching import DualCache
from litellm.router_strategy.lowest_latency import LowestLatencyLoggingHandler
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from tailproof.integrations.routing import Router

MINUTES, RATE, TIMEOUT = 60, 5.0, 10.0
"""Calls come at random, 5 a second on average; after 10 seconds a call is given up."""
COOLDOWN = 5.0
"""Seconds without calls that LiteLLM gives a deployment that failed, its default."""


@dataclass(frozen=True)
class Provider:
    """Latency = scale · e^(spread · normal), or for a share of calls scale · a Pareto variable."""

    scale: float
    spread: float
    share: float
    tail: float
    price: float


PROVIDERS = {
    "anchor": Provider(scale=0.8, spread=0.35, share=0.01, tail=1.2, price=1.0),
    "swift": Provider(scale=0.5, spread=0.25, share=0.15, tail=1.1, price=0.9),
    "steady": Provider(scale=1.2, spread=0.3, share=0.005, tail=1.5, price=1.2),
    "thrifty": Provider(scale=1.6, spread=0.6, share=0.02, tail=1.2, price=0.4),
}
NAMES = list(PROVIDERS)


class Trace(NamedTuple):
    """What would happen to every call at every provider, of shape (calls, providers)."""

    times: NDArray[np.float64]
    latency: NDArray[np.float64]
    p95: NDArray[np.float64]
    outage: tuple[float, float]


def draw_trace(seed: int) -> Trace:
    """Draw an hour: "anchor" is down for five minutes, and later becomes three times slower."""
    rng = np.random.default_rng([29, seed])
    n = int(MINUTES * 60 * RATE)
    times = np.sort(rng.uniform(0, MINUTES * 60, n))
    start = 60 * rng.uniform(15, 20)
    slower = 60 * rng.uniform(30, 36)
    latency, p95 = np.empty((n, len(NAMES))), np.empty((n, len(NAMES)))
    for place, provider in enumerate(PROVIDERS.values()):
        scale = np.full(n, provider.scale * rng.uniform(0.9, 1.1))
        base, levels = (_base(provider, rng, size) for size in (n, 200_000))
        if place == 0:
            scale *= 1 + 2 * np.clip((times - slower) / 600, 0, 1)
        latency[:, place] = scale * base
        p95[:, place] = np.minimum(scale * np.quantile(levels, 0.95), TIMEOUT)
    down = (times >= start) & (times < start + 300)
    latency[down, 0], p95[down, 0] = np.inf, TIMEOUT
    return Trace(times, latency, p95, (start, start + 300))


def _base(provider: Provider, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    body = np.exp(provider.spread * rng.standard_normal(size))
    tail = 2 * (1 + rng.pareto(provider.tail, size))
    return np.where(rng.random(size) < provider.share, tail, body)


class Strategy(Protocol):
    """A way to choose providers."""

    def choose(self, now: float, call: int) -> tuple[int, Any]:
        """Return a provider, and what `learn` needs to know of the call."""

    def learn(self, now: float, ticket: Any, place: int, seconds: float | None) -> None:
        """Take the latency of a call, None if it failed."""


class Ours:
    """`tailproof.routing.Router`, with its defaults unless told otherwise."""

    def __init__(self, trace: Trace, seed: int, **settings: Any) -> None:
        self.router = Router(NAMES, seed=seed, **settings)

    def choose(self, now: float, call: int) -> tuple[int, Any]:
        """Choose a provider."""
        chosen = self.router.call()
        return NAMES.index(chosen.arm), chosen

    def learn(self, now: float, ticket: Any, place: int, seconds: float | None) -> None:
        """Learn from an answer."""
        if seconds is None:
            ticket.fail()
        else:
            ticket.tell(seconds)
            ticket.done()


class LiteLLM:
    """The class behind ``routing_strategy="latency-based-routing"``, with its defaults.

    A deployment that failed gets no calls for five seconds, LiteLLM's own cooldown.
    """

    def __init__(self, trace: Trace, seed: int) -> None:
        self.handler = LowestLatencyLoggingHandler(router_cache=DualCache())
        self.deployments = [
            {"model_info": {"id": name}, "litellm_params": {"model": name}} for name in NAMES
        ]
        self.cool = np.zeros(len(NAMES))

    def choose(self, now: float, call: int) -> tuple[int, Any]:
        """Choose a provider."""
        healthy = [d for d, until in zip(self.deployments, self.cool, strict=True) if until <= now]
        chosen = self.handler.get_available_deployments("llm", healthy or self.deployments)
        return NAMES.index(chosen["model_info"]["id"]), None

    def learn(self, now: float, ticket: Any, place: int, seconds: float | None) -> None:
        """Learn from an answer."""
        known = {"metadata": {"model_group": "llm"}, "model_info": {"id": NAMES[place]}}
        kwargs: dict[str, Any] = {"litellm_params": known}
        if seconds is None:
            self.cool[place] = now + COOLDOWN
            kwargs["exception"] = litellm.Timeout("timed out", model="llm", llm_provider="")
            told = self.handler.async_log_failure_event(kwargs, None, now, now)
            try:  # it waits for nothing but its cache, which is in memory
                told.send(None)
            except StopIteration:
                return
            raise RuntimeError("LiteLLM's cache waits for something")
        self.handler.log_success_event(kwargs, None, 0.0, seconds)


class RoundRobin:
    """One after the other."""

    def __init__(self, trace: Trace, seed: int) -> None:
        pass

    def choose(self, now: float, call: int) -> tuple[int, Any]:
        """Choose a provider."""
        return call % len(NAMES), None

    def learn(self, now: float, ticket: Any, place: int, seconds: float | None) -> None:
        """Learn nothing."""


class Hindsight(RoundRobin):
    """The provider with the smallest 95 % quantile of the moment."""

    def __init__(self, trace: Trace, seed: int) -> None:
        self.best = trace.p95.argmin(axis=1)

    def choose(self, now: float, call: int) -> tuple[int, Any]:
        """Choose a provider."""
        return int(self.best[call]), None


STRATEGIES: dict[str, Callable[[Trace, int], Strategy]] = {
    "tailproof": Ours,
    "LiteLLM, lowest latency": LiteLLM,
    "round robin": RoundRobin,
    "best in hindsight": Hindsight,
}


def play(trace: Trace, strategy: Strategy) -> NDArray[np.int64]:
    """Return the provider of each call; answers are learned when they come."""
    chosen, order = np.empty(len(trace.times), dtype=np.int64), itertools.count()
    flying: list[tuple[float, int, Any, int, float | None]] = []
    for call, now in enumerate(trace.times.tolist()):
        while flying and flying[0][0] <= now:
            then, _, *landed = heapq.heappop(flying)
            strategy.learn(then, *landed)
        place, ticket = strategy.choose(now, call)
        chosen[call] = place
        seconds = float(trace.latency[call, place])
        failed = seconds >= TIMEOUT
        end = now + min(seconds, TIMEOUT)
        heapq.heappush(flying, (end, next(order), ticket, place, None if failed else seconds))
    return chosen


def calls_until_back(trace: Trace, chosen: NDArray[np.int64], window: int = 20) -> int:
    """Return after how many calls since recovery at least half of the next 20 go to "anchor"."""
    after = (chosen[trace.times >= trace.outage[1]] == 0).astype(int)
    shares = np.convolve(after, np.ones(window), "valid") / window
    return int(np.argmax(shares >= 0.5)) if (shares >= 0.5).any() else len(after)


def measure(trace: Trace, chosen: NDArray[np.int64]) -> dict[str, float]:
    """Return the regret of one hour, and what happened around the outage."""
    calls = np.arange(len(chosen))
    start, end = trace.outage
    dead = (trace.times >= start + 60) & (trace.times < end)
    seconds = np.minimum(trace.latency[calls, chosen], TIMEOUT)
    prices = np.array([provider.price for provider in PROVIDERS.values()])
    return {
        "regret of p95, s": float((trace.p95[calls, chosen] - trace.p95.min(axis=1)).mean()),
        "p50, s": float(np.quantile(seconds, 0.5)),
        "p95, s": float(np.quantile(seconds, 0.95)),
        "timed out, %": 100 * float((seconds >= TIMEOUT).mean()),
        "price": float(prices[chosen].mean()),
        "to a dead provider, %": 100 * float((chosen[dead] == 0).mean()),
        "calls until back": calls_until_back(trace, chosen),
    }


def draw_picture(
    traces: list[Trace], choices: dict[str, list[NDArray[np.int64]]], path: Path
) -> None:
    """Draw p50, p95 and price over the hour, over all seeds."""
    figure, axes = plt.subplots(3, 1, figsize=(8, 8), sharex=True, layout="constrained")
    prices = np.array([provider.price for provider in PROVIDERS.values()])
    styles = {"best in hindsight": {"color": "black", "linestyle": ":"}}
    for name, chosen in choices.items():
        minute = np.concatenate([(trace.times // 60).astype(int) for trace in traces])
        seconds = np.concatenate(
            [
                np.minimum(trace.latency[np.arange(len(own)), own], TIMEOUT)
                for trace, own in zip(traces, chosen, strict=True)
            ]
        )
        paid = prices[np.concatenate(chosen)]
        rows = [minute == m for m in range(MINUTES)]
        curves = [
            [np.quantile(seconds[row], 0.5) for row in rows],
            [np.quantile(seconds[row], 0.95) for row in rows],
            [paid[row].mean() for row in rows],
        ]
        for axis, curve in zip(axes, curves, strict=True):
            axis.plot(np.arange(MINUTES) + 0.5, curve, label=name, **styles.get(name, {}))
    for axis, label in zip(axes, ("p50, seconds", "p95, seconds", "price of a call"), strict=True):
        axis.set_ylabel(label)
        axis.set_ylim(bottom=0)
        axis.axvspan(15, 25, color="0.93", zorder=0)
        axis.axvspan(30, 46, color="0.93", zorder=0)
    axes[0].set_title("Grey: an outage of five minutes; a provider becomes three times slower")
    axes[0].legend(fontsize="small", ncols=2)
    axes[-1].set_xlabel("minute")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    """Play every strategy on every trace; print a table and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default="out/examples")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--first-seed", type=int, default=0)
    given = parser.parse_args()
    traces = [draw_trace(given.first_seed + seed) for seed in range(given.seeds)]
    choices = {
        name: [play(trace, make(trace, seed)) for seed, trace in enumerate(traces)]
        for name, make in STRATEGIES.items()
    }
    found = {
        name: [measure(trace, own) for trace, own in zip(traces, chosen, strict=True)]
        for name, chosen in choices.items()
    }
    table = Table(title=f"Means over {given.seeds} hours of {len(traces[0].times)} calls")
    columns = list(next(iter(found.values()))[0])
    for column in ("strategy", *columns, "back, worst"):
        table.add_column(column, justify="left" if column == "strategy" else "right")
    for name, rows in found.items():
        means = [f"{np.mean([row[column] for row in rows]):.3g}" for column in columns]
        table.add_row(name, *means, f"{max(row['calls until back'] for row in rows):.0f}")
    console = Console(width=140)
    console.print(table)
    picture = Path(given.folder) / "llm_router.png"
    draw_picture(traces, choices, picture)
    console.print(f"Picture: {picture}", soft_wrap=True)


if __name__ == "__main__":
    main()
