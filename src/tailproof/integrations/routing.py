"""A router: which provider, server or replica gets the next call, learned from the calls."""

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np

from tailproof.checks import number, require, whole
from tailproof.live.agent import Agent
from tailproof.policies import OrderStatisticUCB, Policy
from tailproof.stats import Aim, Quantile
from tailproof.wrappers import Negated, Renewed

__all__ = ["Call", "Router"]

OUTAGE = 3
"""Failures in a row after which an arm is down. At a failure rate of 5 % this happens by chance
once in 8000 calls, and costs the arm the calls until its next probe."""


_BONUS = 0.2
"""At 1, exploring the 95 % quantile with a memory of some thousand calls costs more than it saves.
Chosen among 0.1, 0.2, 0.4 and 1, with the memory, on three hours of examples/llm_router.py that its
report does not use."""
_WAITING = 10_000
"""Calls to an arm by `choose` whose end may still be told."""


class Router:
    """Sends each call to the arm with the best tail, and notices outages, recoveries and drift.

    By default it makes the 95 % quantile of the time that a call takes small. A time-out or another
    error counts as infinitely long, unless `failure` is a finite cost. Everything is forgotten
    after `memory` calls. After three failures in a row an arm is down: only every `probe`-th call
    goes to it, until a call succeeds; then the router uses again what it learned before the outage.
    An arm never has more calls under way than 1 + the number of its calls that have returned,
    unless it is the only arm; so a new arm does not get all calls of a busy moment.

    All methods may be called from any thread and from asyncio. No lock is held while a call runs.

    Parameters
    ----------
    arms : sequence of str
    aim : Aim
        What to make small, or large if not `costs`: a `Quantile` or the `Median`.
    costs : bool
        Whether small numbers are good, as they are for seconds and money.
    failure : float
        The cost of a failed call; by default infinite, negative infinity if not `costs`.
    timeout : float
        In seconds. A call that is cancelled counts as failed if it took as long as this; otherwise
        its caller gave up, and nothing is learned.
    memory : int
        How many calls are remembered: the last memory/2 to memory. A 95 % quantile needs some
        hundred calls to an arm; a change for the worse shows after about a twentieth of the memory.
    probe : int
        One of this many calls goes to an arm that is down.
    policy : Policy, optional
        Any policy that knows arms by number, in place of the default for `aim` and `memory`. It
        learns costs as they are: wrap it in `Negated` where small is good.
    journal : path, str or Journal, optional
        Keeps what was learned, see `tailproof.live.Agent`; by default it is lost with the process.
        A call then waits for a commit before and after it.
    seed : int

    Examples
    --------
    >>> router = Router(["east", "west"], seed=1)
    >>> with router.call() as server:
    ...     pass  # response = httpx.get(f"https://{server}.example.com", timeout=5)
    >>> server in ("east", "west")
    True

    The time of a block is measured. To tell another number, such as the time to the first token or
    the price, use the call itself:

    >>> call = router.call()
    >>> with call:
    ...     call.tell(0.02)
    >>> call.arm, call.cost
    ('east', 0.02)

    Source: our own; an arm that is down is a circuit breaker (Nygard 2007). Differences: what an
    arm did before its outage is not forgotten, and time-outs need no number.
    """

    def __init__(
        self,
        arms: Sequence[str],
        *,
        aim: Aim | None = None,
        costs: bool = True,
        failure: float | None = None,
        timeout: float = math.inf,
        memory: int = 2000,
        probe: int = 64,
        policy: Policy[Any] | None = None,
        journal: Any = None,
        seed: int = 0,
    ) -> None:
        self.arms = list(arms)
        _check_arms("arms", arms)
        self._indices = {arm: index for index, arm in enumerate(self.arms)}
        self.costs, worst = bool(costs), math.inf if costs else -math.inf
        self.failure = worst if failure is None else float(failure)
        require(not math.isnan(self.failure), "failure", "a number or infinite", failure)
        self.timeout = math.inf if timeout == math.inf else number("timeout", timeout, above=0)
        self.probe = whole("probe", probe, at_least=2)
        if policy is None:
            policy = tail_policy(aim or Quantile(0.95), costs=self.costs, memory=memory)
        elif aim is not None:
            raise ValueError("give either aim or policy: a policy has its aim")
        require(policy.view == "arms", "policy", "one that knows arms by number", policy)
        require(policy.pulls == 1, "policy", "one that learns from single rewards", policy)
        self.policy = policy
        self._lock = threading.Lock()
        self._calls = 0
        self._records = [_Record() for _ in self.arms]
        self._core: Any = (
            _Memory(policy, len(self.arms), seed)
            if journal is None
            else _Journalled(policy, self.arms, journal, seed)
        )

    def call(self, among: Sequence[str] | None = None) -> "Call":
        """Choose an arm and return a call to it, for ``with`` or ``async with``.

        `among` names the arms that may be chosen now, by default all. New ones are added.
        """
        index, ticket = self._choose(among)
        with self._lock:
            self._records[index].flying += 1
        return Call(self, index, ticket)

    def choose(self, among: Sequence[str] | None = None) -> str:
        """Return an arm, for a call without a ``with`` block: `tell` its cost, or `fail`."""
        index, ticket = self._choose(among)
        with self._lock:
            self._records[index].tickets.append(ticket)
        return self.arms[index]

    def tell(self, arm: str, cost: float) -> None:
        """Take the cost of a call to an arm that `choose` returned; ignore other calls."""
        _check_cost(cost)
        self._returned(arm, float(cost), failed=False)

    def fail(self, arm: str) -> None:
        """Take the failure of a call to an arm that `choose` returned."""
        self._returned(arm, self.failure, failed=True)

    @property
    def down(self) -> list[str]:
        """The arms that are down."""
        return [arm for arm, record in zip(self.arms, self._records, strict=True) if record.down]

    def close(self) -> None:
        """Close the journal, if there is one."""
        self._core.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _choose(self, among: Sequence[str] | None) -> tuple[int, Any]:
        """Return the place of an arm, and its ticket."""
        with self._lock:
            if among is None:
                offer = self._offer(list(range(len(self.arms))))
            else:
                _check_arms("among", among)
                for arm in among:
                    if arm not in self._indices:
                        self._indices[arm] = len(self.arms)
                        self.arms.append(arm)
                        self._records.append(_Record())
                offer = self._offer([self._indices[arm] for arm in among])
        index, ticket = self._core.ask(offer)
        return index, ticket

    def _offer(self, indices: list[int]) -> list[int]:
        """Return the places of the arms that the next call may go to."""
        self._calls += 1
        records = self._records
        up = [index for index in indices if not records[index].down]
        for index in indices:
            record = records[index]
            if record.down and up and self._calls - record.probed >= self.probe:
                record.probed = self._calls
                return [index]
        up = up or indices
        return [index for index in up if records[index].flying <= records[index].landed] or up

    def _returned(self, arm: str, cost: float, *, failed: bool) -> None:
        require(arm in self._indices, "arm", f"one of {', '.join(self.arms)}", arm)
        index = self._indices[arm]
        with self._lock:  # any ticket of the arm will do
            record = self._records[index]
            if not record.tickets:
                return
            ticket = record.tickets.popleft()
            record.flying += 1
        self._land(index, ticket, cost, failed=failed)

    def _land(self, index: int, ticket: Any, cost: float | None, *, failed: bool) -> None:
        """Take the result of a call; a cost of None is unknown and not learned."""
        learned: list[tuple[Any, float]] = []
        with self._lock:
            record = self._records[index]
            record.flying -= 1
            if cost is None:
                return
            record.landed += 1
            if not failed:
                learned = [*record.failures, (ticket, cost)]
                record.failures, record.down = [], False
            elif not record.down:
                record.failures.append((ticket, cost))
                if len(record.failures) >= OUTAGE:  # an outage says nothing about the tail
                    record.failures, record.down, record.probed = [], True, self._calls
        for told, loss in learned:
            self._core.tell(told, loss)


class Call:
    """One call of a `Router`; leaving its block tells how it went.

    Attributes
    ----------
    arm : str
        Where to send the call.
    cost : float or None
        What was learned; None before the end, and if the caller gave up.
    """

    def __init__(self, router: Router, index: int, ticket: Any) -> None:
        self.arm = router.arms[index]
        self.cost: float | None = None
        self._router, self._index, self._ticket = router, index, ticket
        self._told: float | None = None
        self._began, self._done = time.monotonic(), False

    def tell(self, cost: float) -> None:
        """Learn this cost in place of the time that the block takes."""
        _check_cost(cost)
        self._told = float(cost)

    def fail(self) -> None:
        """Count the call as failed, such as after a response that is an error."""
        self._end(self._router.failure, failed=True)

    def drop(self) -> None:
        """Learn nothing from the call."""
        self._end(None, failed=False)

    def done(self) -> None:
        """End the call; the end of its block does the same."""
        took = time.monotonic() - self._began
        self._end(took if self._told is None else self._told, failed=False)

    def _end(self, cost: float | None, *, failed: bool) -> None:
        if not self._done:
            self._done, self.cost = True, cost
            self._router._land(self._index, self._ticket, cost, failed=failed)

    def __enter__(self) -> str:
        self._began = time.monotonic()
        return self.arm

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        late = time.monotonic() - self._began >= self._router.timeout
        if kind is None:
            self.done()
        elif issubclass(kind, Exception) or (late and issubclass(kind, asyncio.CancelledError)):
            self.fail()
        else:
            self.drop()

    async def __aenter__(self) -> str:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, trace)


def tail_policy(aim: Aim, *, costs: bool, memory: int) -> Policy[Any]:
    """Return the policy for a quantile of the last calls.

    >>> tail_policy(Quantile(0.95), costs=True, memory=500).policy.policy.quantile
    0.05
    """
    if aim.level is None:
        raise ValueError(
            f"aim must be a Quantile or Median(), got {aim!r}: pass policy= for others"
        )
    quantile = round(1 - aim.level, 12) if costs else aim.level
    best = OrderStatisticUCB(quantile=quantile, index="binomial", bonus=_BONUS)
    return Renewed(Negated(best) if costs else best, memory=memory)


def _check_arms(name: str, arms: Sequence[str]) -> None:
    ok = not isinstance(arms, str) and len(arms) > 0 and len(set(arms)) == len(arms)
    ok = ok and all(isinstance(arm, str) and arm for arm in arms)
    require(ok, name, "a sequence of different names", arms)


def _check_cost(cost: float) -> None:
    require(not math.isnan(cost), "cost", "a number (±inf allowed, NaN not)", cost)


class _Record:
    """What a router knows of an arm besides its costs."""

    __slots__ = ("down", "failures", "flying", "landed", "probed", "tickets")

    def __init__(self) -> None:
        self.flying = self.landed = self.probed = 0
        self.failures: list[tuple[Any, float]] = []
        self.tickets: deque[Any] = deque(maxlen=_WAITING)
        self.down = False


class _Memory:
    """A policy and its state, on one path."""

    def __init__(self, policy: Policy[Any], arms: int, seed: int) -> None:
        self.policy, self.state = policy, policy.init(1, arms, 1)
        self._rng = np.random.default_rng(whole("seed", seed, at_least=0))
        self._lock = threading.Lock()

    def ask(self, indices: list[int]) -> tuple[int, int]:
        with self._lock:
            if max(indices) >= self.state.arms:
                self.state = self.policy.resized(self.state, max(indices) + 1)
            state = self.state
            if len(indices) < state.arms:
                state = state.among(np.array(indices))
            offer = np.zeros((1, len(indices), 1))
            chosen = indices[int(self.policy.choose(state, offer, self._rng)[0])]
        return chosen, chosen

    def tell(self, ticket: int, cost: float) -> None:
        with self._lock:
            offer = np.zeros((1, self.state.arms, 1))
            self.policy.learn(self.state, offer, [ticket], [[cost]])

    def close(self) -> None:
        pass


class _Journalled:
    """An agent, for a state that outlives the process."""

    def __init__(self, policy: Policy[Any], arms: list[str], journal: Any, seed: int) -> None:
        self.agent, self._arms = Agent(policy, journal, wait="1h", seed=seed), arms

    def ask(self, indices: list[int]) -> tuple[int, str]:
        ticket = self.agent.ask([self._arms[index] for index in indices])
        return self._arms.index(ticket.arm), ticket.id

    def tell(self, ticket: str, cost: float) -> None:
        self.agent.tell(ticket, cost)

    def close(self) -> None:
        self.agent.close()


def __dir__() -> list[str]:
    return __all__
