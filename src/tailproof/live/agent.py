"""The agent: ask it for an arm, tell it the reward, at any time and in any order."""

import json
import logging
import math
import os
import random
import re
import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from importlib.metadata import version
from numbers import Real
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypeVar

from tailproof.checks import number, require, whole
from tailproof.live.journal import (
    BEFORE,
    CANCELLED,
    OWN_ID,
    REPEATED,
    Chosen,
    ConflictError,
    Counts,
    Decision,
    DecisionRow,
    Earlier,
    Found,
    Glance,
    Journal,
    Outcome,
    TicketRow,
    open_journal,
)
from tailproof.live.learner import RECENT, Belief, Choice, Control
from tailproof.live.offers import MOST_ARMS, Features, Offer
from tailproof.live.replay import Verification, jump, replay, restored, verify
from tailproof.live.scheduler import Rewards, Rules, grace, order
from tailproof.live.shared import OpenDecision, OpenDecisions
from tailproof.policies.base import Policy

__all__ = ["LONGEST_ID", "Agent", "Ask", "Cancel", "Fate", "Standing", "Tell", "Ticket", "seconds"]

T = TypeVar("T")

_LEAST_APART = 256
"""Outcomes between two snapshots, at least; replaying this many takes about 0.05 s."""
_BYTES_AN_OUTCOME = 100
"""Snapshots of large states are rarer, so that they cost about this much per outcome."""
LONGEST_ID = 200
_LONGEST_MOMENT = 0.005
"""Seconds that a commit waits at most for other threads to join it."""
_AT_ONCE = 256
"""Outcomes that are numbered, and that are learned, in one transaction at most."""
_LONGEST_TRANSACTION = 60.0
"""Seconds after which a database ends a transaction that does nothing."""
_LOOK = 0.02
"""Seconds between two looks at what is due, where nobody else may order."""
_FAR = 5000
"""If so many outcomes are not learned yet, a snapshot is loaded."""
_ADOPTED = 1000
"""Latest decisions among which those are looked for that need more tickets."""
_TRIES = 20
"""How often a batch is tried if other workers keep storing the same rows first."""
_LATELY = 64
"""Latest outcomes from which the share of lost rewards is estimated, for single pulls."""
_ROUNDED = 1e-9
"""By how much a sum of shares may exceed one."""
_LOG = logging.getLogger("tailproof.live")

Fate = Literal["kept", "duplicate", "late", "unknown", "cancelled"]
"""What happened to a reward.

"kept": stored, and it counts; "duplicate": ignored, the ticket already has this reward; "late":
stored, but not learned, as its window or its decision had ended; "unknown": there is no such
ticket; "cancelled": ignored, as the ticket was cancelled.
"""


@dataclass(frozen=True)
class Ticket:
    """The answer to an ask: an arm, and the id to tell its reward to.

    Attributes
    ----------
    id : str
        Pass it to `Agent.tell` with the reward.
    arm : str
    propensity : float or None
        The probability that a request with this offer gets this arm, over everything that is drawn:
        control group, floor, explore and policy. None if the policy does not report it.
    hold : int
        The number of the decision, which several tickets may share.
    default : bool
        Whether this is the default arm of a `Client` that got no answer.
    """

    id: str
    arm: str
    propensity: float | None
    hold: int
    default: bool = False


class Standing(NamedTuple):
    """Tickets without an outcome, the share of recent rewards lost, outcomes and alarms so far."""

    pending: int
    loss: float
    outcomes: int
    alarms: int


@dataclass(frozen=True)
class Ask:
    """A request for an arm; see `Agent.ask`."""

    offer: Features | Offer
    ticket: str | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "offer", Offer.of(self.offer))
        if self.ticket is not None:
            _check_id(self.ticket)
        if self.unit is not None:
            _check_id(self.unit, "unit")


@dataclass(frozen=True)
class Tell:
    """The reward of a ticket; see `Agent.tell`."""

    ticket: str
    reward: float
    event: str | None = None

    def __post_init__(self) -> None:
        _check_id(self.ticket)
        if self.event is not None:
            _check_id(self.event, "event")
        r = self.reward
        ok = isinstance(r, Real) and not isinstance(r, bool)
        ok = ok and (abs(r) <= sys.float_info.max or abs(r) == math.inf)
        require(ok, "reward", "a float (±inf allowed, NaN not)", r)
        object.__setattr__(self, "reward", float(r) + 0.0)  # -0.0 becomes 0.0


@dataclass(frozen=True)
class Cancel:
    """A ticket whose arm was not used; see `Agent.cancel`."""

    ticket: str

    def __post_init__(self) -> None:
        _check_id(self.ticket)


Act = Ask | Tell | Cancel


def _check_id(given: str, name: str = "ticket") -> None:
    ok = isinstance(given, str) and 0 < len(given) <= LONGEST_ID and given.isprintable()
    require(ok, name, f"a string of 1 to {LONGEST_ID} printable characters", given)


class _Pending:
    """An act that waits for its transaction."""

    __slots__ = ("act", "acts", "answer", "done", "error", "future", "offer")

    def __init__(self, act: Act) -> None:
        self.act, self.done = act, False
        self.answer: Any = None
        self.error: BaseException | None = None
        self.offer: Offer | None = None
        self.future: Future[Any] | None = None
        self.acts: list[_Pending] = []

    def settle(self) -> None:
        """Answer one who waits for a future, unless it was cancelled."""
        if self.future is not None and self.future.set_running_or_notify_cancel():
            error = next((one.error for one in self.acts if one.error is not None), None)
            if error is not None:
                self.future.set_exception(error)
            else:
                self.future.set_result([one.answer for one in self.acts])


def seconds(wait: float | str) -> float:
    """Return a time span in seconds.

    >>> seconds("2h"), seconds("1.5 min"), seconds(30)
    (7200.0, 90.0, 30.0)
    >>> seconds("soon")
    Traceback (most recent call last):
    ValueError: wait must be a number of seconds or a string such as '90s', '15min', '2h' or '1d',
    got 'soon'
    """
    units = {"s": 1, "min": 60, "h": 3600, "d": 86400}
    if isinstance(wait, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|min|h|d)\s*", wait)
        rule = "a number of seconds or a string such as '90s', '15min', '2h' or '1d'"
        require(found is not None, "wait", rule, wait)
        wait = float(found[1]) * units[found[2]] if found else 0.0
    return number("wait", wait, above=0)


class Agent:
    """A policy in live use: each request gets an arm, rewards may come late, twice or never.

    Everything is written to a journal before it is answered. What the policy has learned comes from
    replaying the outcomes in the journal, in the order of their numbers, so it is the same after a
    crash and in every process that shares it. Each agent decides from what it has replayed so far,
    so that no agent waits for another.

    If a policy takes ñ rewards per decision, as a filter does, several requests with the same offer
    share a decision and get the same arm. `LinStudentUCB` and other policies that learn from single
    rewards make a decision for each request.

    A new arm is not flooded with requests: where at least half of the arms on offer have 100
    rewards, the policy gives an arm with n < 100 rewards a share of at most √((n + 1)/100).

    Parameters
    ----------
    policy : Policy
        Any policy, filter or guest.
    journal : path, str or Journal
        A SQLite file, created if missing, ``"postgresql://…"``, or a `Journal`; see
        `open_journal`. A journal of another policy raises ``ValueError``.
    wait : float or str
        The window in which rewards count, in seconds or as "90s", "15min", "2h", "1d". Later ones
        are stored, but not learned.
    silence : float or None
        The reward of a ticket whose window ends without one: 0.0 if only purchases are told. Every
        outcome is then learned when its window ends, in the order of the asks, because purchases
        that are learned at once make early buyers look like all visitors. None means that such a
        reward is lost, as with latencies, sensors and surveys: then a reward is learned when it
        comes, and a shared decision gets more tickets to make up for the share that is lost.
    rewards : "first" or "sum"
        Whether the first event told of a ticket is its reward, or the sum of all events in its
        window, such as two purchases and a refund.
    control : (str, float), optional
        An arm and a share, such as ``("red", 0.1)``: with this probability a request is in the
        control group and gets this arm, if it is on offer, whatever is learned. All requests of a
        unit are in the same group. The policy learns from the control group as from any other.
    floor : float
        The least probability of every arm on offer; floor × K must be at most 1 − control share.
    explore : float
        The probability of choosing uniformly at random among the arms of the offer, outside the
        control group. Every arm then has a probability of at least explore/K there, so that other
        policies can be evaluated on the log.
    arms : list of str, optional
        All arms that there may be; an offer with another one is refused. By default new arms may
        come, up to 10 000.
    seed : int, optional
        Random numbers depend on the seed and the number of the decision. By default the seed of the
        journal, 0 for a new one.
    dim : int, optional
        For offers without features and a policy that uses vectors: the most arms there will ever
        be; by default the number of `arms`, or that in the first offer.
    change : bool
        Whether this policy may take over the journal of another one: it learns every outcome so
        far, whatever it then decides is marked with its own recipe number, and `verify` makes the
        decisions of each recipe again with that recipe.
    clock : callable, optional
        Returns the time in seconds since 1970; by default `Journal.now`, a monotonic clock: of this
        machine for SQLite, of the server for PostgreSQL.

    Examples
    --------
    >>> from tailproof import UCB1, AutoFiltered
    >>> agent = Agent(AutoFiltered(UCB1()), ":memory:", wait="2h")
    >>> ticket = agent.ask(["red", "blue"], ticket="visit 17")
    >>> ticket.arm in ("red", "blue"), ticket.propensity
    (True, 0.5)
    >>> agent.tell("visit 17", 12.5), agent.tell("visit 17", 12.5), agent.tell("visit 18", 1)
    ('kept', 'duplicate', 'unknown')
    >>> agent.ask(["red", "blue"], ticket="visit 17") == ticket
    True

    Source: our own; Agarwal et al. 2016 for deciding from a copy, logging, and one that orders the
    log. Differences: every process learns by itself, from the ordered log.
    """

    def __init__(
        self,
        policy: Policy[Any],
        journal: str | Path | Journal,
        *,
        wait: float | str = "1d",
        silence: float | None = None,
        rewards: Rewards = "first",
        control: tuple[str, float] | None = None,
        floor: float = 0.0,
        explore: float = 0.0,
        arms: Collection[str] | None = None,
        seed: int | None = None,
        dim: int | None = None,
        change: bool = False,
        clock: Callable[[], float] | None = None,
    ) -> None:
        require(isinstance(policy, Policy), "policy", "a Policy such as UCB1()", policy)
        self.policy, self.wait = policy, seconds(wait)
        self.explore = number("explore", explore, at_least=0, at_most=1)
        self.rules = Rules(
            pulls=policy.pulls,
            least=policy.least,
            wait=self.wait,
            silence=silence,
            rewards=rewards,
        )
        self.arms = None if arms is None else frozenset(Offer.of(arms).names)
        self.control = _control(control, self.arms)
        self.floor = number("floor", floor, at_least=0, at_most=1)
        if self.arms is not None:
            self._even(Offer(tuple(self.arms)))
        if seed is not None:
            whole("seed", seed, at_least=0)
        if dim is not None:
            whole("dim", dim)
        self.journal = open_journal(journal)
        self._turn, self._busy = threading.Condition(), False
        self._leader, self._process = -1, os.getpid()
        self._queue: list[list[_Pending]] = []
        self._gathering, self._together, self._moment = False, 1, 0.0
        self._thread: ThreadPoolExecutor | None = None
        self._clock = clock
        self.commits = 0
        self.worker = int.from_bytes(os.urandom(5))
        self._open = OpenDecisions(policy.pulls, policy.least, self.wait, silence is not None)
        self._lately: deque[bool] = deque(maxlen=_LATELY)
        self._extra, self._stale = grace(self.journal), True
        self._unsure = 0.0 if self.journal.serial else _LONGEST_TRANSACTION
        self._saved, self._size, self._looked = 0, 0, -math.inf
        self._lots, self._seed = random.Random(), 0
        self._notes, self._dropped = 0, frozenset[str]()
        self._fixed: str | None = None
        try:
            self.changed = self._transact(lambda: self._opened(seed, dim, change=change))
            if not self.changed:
                self._restore()  # may take long, and nobody waits for it
            with self.journal.transaction():
                glance = self.journal.look()
                self._reload()
                if self.learner.state is not None:
                    self._save(glance)
        except BaseException:
            if self.journal is not journal:
                self.journal.close()
            raise

    def ask(self, offer: Features, ticket: str | None = None, unit: str | None = None) -> Ticket:
        """Return a ticket with an arm of the offer; the same ticket id always gets the same arm.

        An offer is a list of arm names, or a mapping from arm names to features, which K-armed
        policies ignore. If the ticket id is known, the offer is ignored.

        The same `unit`, such as "user 7", gets the same arm as long as that is on offer. The
        propensity of a repeated unit is that of its first choice: with what else is drawn for it
        nothing is left to chance, so `judge` treats the tickets of a unit together. If the policy
        takes several rewards per decision, repeated units with the same arm and propensity share
        decisions of their own.
        """
        found: Ticket = self._one(Ask(offer, ticket, unit))
        return found

    def tell(self, ticket: str, reward: float, event: str | None = None) -> Fate:
        """Store a reward of a ticket, and return what happened to it; NaN is refused.

        With ``rewards="sum"``, events with different ids add up; one with the id of another, or
        a second one without an id, is a duplicate.
        """
        found: Fate = self._one(Tell(ticket, reward, event))
        return found

    def cancel(self, tickets: Sequence[str]) -> list[Fate]:
        """Let tickets not count, as their arms were not used: the caller had given up waiting.

        A cancelled ticket has no reward, not even that of silence, and none is lost; `tell` ignores
        it and says "cancelled". Returns what happened to each: "cancelled"; "late" if it already
        has a reward or its decision an outcome; "unknown" if it was not asked for yet. An ask for
        it that still arrives is answered, but does not count.

        >>> from tailproof import UCB1
        >>> agent = Agent(UCB1(), ":memory:")
        >>> ticket = agent.ask(["red", "blue"], ticket="visit 17")
        >>> agent.cancel(["visit 17", "visit 18"]), agent.tell("visit 17", 3.5)
        (['cancelled', 'unknown'], 'cancelled')
        """
        found: list[Any] = self.act([Cancel(ticket) for ticket in tickets])
        return found

    def drop(self, arm: str) -> None:
        """Never choose an arm again, also if it is on offer; this cannot be undone.

        Tickets that have it still count. Decisions for offers with this arm end with their windows:
        they learn what has come, if the policy can learn from that, and are given up otherwise.

        >>> from tailproof import UCB1
        >>> agent = Agent(UCB1(), ":memory:")
        >>> ticket = agent.ask(["red", "blue"])
        >>> agent.drop("red")
        >>> agent.ask(["red", "blue"]).arm
        'blue'
        """
        self._note("drop", arm)

    def pause(self, arm: str | None = None) -> None:
        """Give everyone the control arm, or another one, until `resume`.

        Decisions are stored and learned as ever, with propensity one. A request whose offer does
        not have the arm is decided by the policy.
        """
        arm = self.control.arm if arm is None and self.control is not None else arm
        if arm is None:
            raise ValueError("there is no control arm: say which arm everyone gets, pause(arm)")
        self._note("fix", arm, why="pause")

    def stop(self, arm: str) -> None:
        """End the experiment: everyone gets the winner, as in `pause`."""
        self._note("fix", arm, why="stop")

    def resume(self) -> None:
        """Let the policy decide again after `pause` or `stop`."""
        self._note("resume")

    def _note(self, kind: str, arm: str | None = None, **more: str) -> None:
        """Write what is done to the experiment; every agent on the journal sees it."""
        with self._alone():
            self._transact(lambda: self._write_note(kind, arm, more))

    def _write_note(self, kind: str, arm: str | None, more: dict[str, str]) -> None:
        glance, journal = self.journal.look(), self.journal
        self._reload()
        if kind == "drop" and arm in self._dropped:
            return
        if arm is not None:
            known = (self.arms or frozenset()) | self._known
            if arm not in known or arm in self._dropped:
                left = ", ".join(sorted(known - self._dropped)[:10])
                raise ValueError(f"arm must be one of this experiment ({left}), got {arm!r}")
        if kind == "drop":
            if arm in (self._fixed, self.control and self.control.arm):
                raise ValueError(f"cannot drop {arm!r}: everyone or the control group gets it")
            if self.learner.state is not None and self.learner.whole:
                raise ValueError(
                    f"{self.learner.kind} needs all arms in every offer: begin a new journal "
                    f"without {arm!r}"
                )
        now = self._now(glance)
        journal.add_note(kind, ({} if arm is None else {"arm": arm}) | more, now)
        if kind == "drop" and self.policy.pulls > 1:
            assert arm is not None
            journal.add_due([(now, decision) for decision in journal.awaiting(arm)])
            if glance.orders:
                order(journal, self.rules, now, _AT_ONCE, recipe=self._recipe)
        self._read_notes()

    def _read_notes(self) -> None:
        """Take note of what was done to the experiment since the last look."""
        for note in self.journal.notes(self._notes):
            self._notes = note.number + 1
            if note.kind == "drop":
                self._dropped |= {note.text["arm"]}
            elif note.kind in ("fix", "resume"):
                self._fixed = note.text.get("arm")

    def _one(self, act: Act) -> Any:
        """Do one ask or tell; a refusal raises."""
        (answer,) = self.act([act])
        if isinstance(answer, ValueError):
            raise answer
        return answer

    def act(self, acts: Sequence[Act]) -> list[Ticket | Fate | ValueError]:
        """Do asks, tells and cancellations in one commit; a refused one is answered by its error.

        Threads that come during a commit share the next one. That one first waits for as many
        threads as shared the last commit, for at most an eighth of the time that one took.
        """
        mine = [_Pending(act) for act in acts]
        if not mine:
            return []
        self._check_process()
        self._enqueue(mine)
        with self._alone(unless=mine[-1]) as leads:
            if leads:
                self._do_all()
        for pending in mine:
            if pending.error is not None:
                raise pending.error
        return [pending.answer for pending in mine]

    def submit(self, acts: Sequence[Act]) -> "Future[list[Ticket | Fate | ValueError]]":
        """Do the same as `act` in a thread of the agent, for callers with an event loop.

        >>> from tailproof import UCB1
        >>> agent = Agent(UCB1(), ":memory:")
        >>> (ticket,) = agent.submit([Ask(["red", "blue"], "visit 17")]).result()
        >>> ticket.id
        'visit 17'
        """
        self._check_process()
        found: Future[list[Ticket | Fate | ValueError]] = Future()
        mine = [_Pending(act) for act in acts]
        if not mine:
            found.set_result([])
            return found
        mine[-1].future, mine[-1].acts = found, mine
        self._enqueue(mine)
        with self._turn:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, "tailproof-agent")
        self._thread.submit(self._lead, mine[-1])
        return found

    def _lead(self, last: "_Pending") -> None:
        with self._alone(unless=last) as leads:
            if leads:
                self._do_all()

    def _enqueue(self, mine: "list[_Pending]") -> None:
        with self._turn:
            self._queue.append(mine)
            if self._gathering:
                self._turn.notify_all()

    def close(self) -> None:
        """Close the journal; everything is already in it."""
        if self._thread is not None:
            self._thread.shutdown()
        with self._alone():
            self.journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def verify(self) -> Verification:
        """Check every row, replay the journal, make every decision again; return what differs."""
        with self._alone(), self.journal.moment():
            return verify(self.policy, self.journal, self.learner)

    def standing(self) -> Standing:
        """Return counts of the whole journal, and the share of rewards that this agent misses."""
        with self._alone():
            asked = sum(one.asked for one in self.journal.tally().values())
            outcomes, ended = self.journal.counts()
            alarms = sum(note.kind == "alarm" for note in self.journal.notes())
            return Standing(asked - ended, self.loss, outcomes, alarms)

    @property
    def loss(self) -> float:
        """The share of recent rewards that were lost."""
        if self.policy.pulls > 1:
            return self._open.loss
        return 1 - (sum(self._lately) + 1) / (len(self._lately) + 1)

    def tick(self) -> bool:
        """Number outcomes that are due, learn new ones, and return whether all is done.

        Asks and tells do this too, so that nobody has to call it; a `Scheduler` does, so that an
        ask finds little to do.
        """
        with self._alone():
            now = self.journal.now() if self._clock is None else float(self._clock())
            if not self._behind(self.journal.counts()[0]) and not self.journal.due(now, 1):
                return True
            try:
                with self.journal.transaction():
                    glance = self.journal.look()
                    if self._stale:
                        self._reload()
                    self._catch_up(glance.outcomes())
                    if glance.orders:
                        order(
                            self.journal,
                            self.rules,
                            self._now(glance),
                            _AT_ONCE,
                            recipe=self._recipe,
                        )
                    self._save(glance)
            except ConflictError:
                return False
            return False

    def _check_process(self) -> None:
        """Raise in a forked child, whose locks may belong to threads that do not exist there."""
        if os.getpid() != self._process:
            raise RuntimeError("an Agent cannot be used after a fork: create one in each process")

    @contextmanager
    def _alone(self, unless: "_Pending | None" = None) -> Iterator[bool]:
        """Keep other threads out; yields False if one of them has done `unless` meanwhile."""
        self._check_process()
        alone, me = False, threading.get_ident()
        if self._leader == me:
            raise RuntimeError("an Agent cannot be called from within its own ask or tell")
        try:
            with self._turn:
                self._turn.wait_for(lambda: not self._busy or (unless is not None and unless.done))
                alone = unless is None or not unless.done
                if alone:
                    self._busy, self._leader = True, me
            yield alone
        finally:
            if alone:
                self._busy, self._leader = False, -1
                with self._turn:
                    self._turn.notify_all()

    def _do_all(self) -> None:
        """Do all queued asks and tells in one transaction."""
        with self._turn:
            if len(self._queue) < self._together:  # threads just answered may come again at once
                self._gathering = True
                self._turn.wait_for(lambda: len(self._queue) >= self._together, self._moment)
            self._gathering = False
            self._together = len(self._queue)
            batch, self._queue = [pending for some in self._queue for pending in some], []
        start = time.monotonic()
        try:
            self._commit(batch)
            self.commits += 1
        except BaseException as error:
            for pending in batch:
                pending.error = error
                if not isinstance(error, Exception):  # such as Ctrl-C, for this thread only
                    pending.error = RuntimeError("the commit was interrupted and rolled back")
            if not isinstance(error, Exception):
                raise
        finally:
            for pending in batch:
                pending.done = True
            self._moment = min(_LONGEST_MOMENT, (time.monotonic() - start) / 8)
            for pending in batch:
                pending.settle()

    def _commit(self, batch: "Sequence[_Pending]") -> None:
        """Do a batch of acts in one transaction."""
        asks = [p.act for p in batch if isinstance(p.act, Ask)]
        told = {p.act.ticket for p in batch if isinstance(p.act, Tell)}
        asked = {p.act.ticket for p in batch if isinstance(p.act, Cancel)}
        asked.update(ask.ticket for ask in asks if ask.ticket is not None)
        units = {ask.unit for ask in asks if ask.unit is not None}

        def body() -> None:
            for pending in batch:
                pending.offer = self._offered(pending.act) if isinstance(pending.act, Ask) else None
            offers, known = {p.offer.key for p in batch if p.offer is not None}, self._notes
            glance = self.journal.look(
                asked | told, offers, shared=self.policy.pulls > 1, units=units, asked=asked
            )
            work = _Work(glance, self._now(glance))
            if self._stale:
                self._reload()
            if asks and glance.notes() != known:
                self._read_notes()
                raise ConflictError("the experiment was changed")  # and with it the offers
            if not told:
                self._look_after(work.now)  # otherwise when the rewards are in
            for pending in batch:
                try:
                    pending.answer = self._do(pending, work)
                except ValueError as refusal:
                    pending.answer = refusal
            self._write(work)

        self._transact(body)

    def _transact(self, body: Callable[[], T]) -> T:
        """Do something in a transaction, again if others stored the same rows first."""
        for attempt in range(1, _TRIES + 1):
            try:
                with self.journal.transaction():
                    return body()
            except ConflictError:
                self._stale = True
                if attempt == _TRIES:
                    raise
            except BaseException:
                self._stale = True
                raise
        raise AssertionError

    def _offered(self, ask: Ask) -> Offer | None:
        """Return an offer as the policy sees it, without dropped arms; None if nothing is left."""
        offer = Offer.of(ask.offer)
        if not self._dropped.isdisjoint(offer.names):
            left = [i for i, name in enumerate(offer.names) if name not in self._dropped]
            if not left:
                return None
            offer = offer.among(left)
        return offer if self.learner.uses_vectors else Offer(offer.names)

    def _now(self, glance: Glance) -> float:
        return glance.now if self._clock is None else float(self._clock())

    def _write(self, work: "_Work") -> None:
        """Write the rows of a batch, and number outcomes if nobody else does so just now."""
        journal = self.journal
        if work.tickets:
            journal.add_tickets(work.tickets)
        if work.events:
            journal.add_events(work.events)
        if work.counts:
            journal.count(self.worker, work.counts)
        if work.glance.orders:
            if work.due:
                journal.add_due(work.due)
            if not 0 <= work.now - self._looked < _LOOK or not journal.serial:
                order(journal, self.rules, work.now, _AT_ONCE, work.ready, recipe=self._recipe)
                self._looked = work.now
            elif work.ready:
                order(journal, self.rules, work.now, 0, work.ready, recipe=self._recipe)
            self._save(work.glance)
        else:
            work.due.update((work.now, decision) for decision in work.ready)
            journal.add_due(work.due)
        self._look_after(work.now)

    def _do(self, pending: "_Pending", work: "_Work") -> Ticket | Fate:
        if isinstance(pending.act, Tell):
            return self._tell(pending.act, work)
        if isinstance(pending.act, Cancel):
            return self._cancel(pending.act.ticket, work)
        return self._ask(pending.act, pending.offer, work)

    def _ask(self, ask: Ask, offer: Offer | None, work: "_Work") -> Ticket:
        found = None if ask.ticket is None else work.glance.found.get(ask.ticket)
        if found is not None:
            return self._ticket(str(ask.ticket), found.chosen)
        if ask.ticket is not None and OWN_ID.fullmatch(ask.ticket):
            raise ValueError(
                f"ticket {ask.ticket!r} is reserved for ids that the agent generates: use another, "
                f"such as 'v{ask.ticket}'"
            )
        if offer is None:
            raise ValueError(f"all arms on offer were dropped: {list(Offer.of(ask.offer).names)}")
        if self.arms is not None and not self.arms.issuperset(offer.names):
            foreign = [name for name in offer.names if name not in self.arms]
            raise ValueError(
                f"{foreign} are not among the arms of this experiment: leave them out of the "
                "offer, list them, or let it be open to new arms"
            )
        given, ends = self._given(ask, offer, work), work.now + self.wait
        if self.policy.pulls == 1:
            place, chosen = 0, self._decide(offer, work, given)
            work.due.add((ends + self._extra, chosen.id))
        else:
            key = given.key(offer.key)
            shared = self._open.wanting(key) or self._share(offer, work, given)
            place, chosen = self._open.issue(shared, work.now), shared.chosen
            if shared.due <= work.now + self._unsure:  # whoever sees to it will look on
                shared.due = ends + self._extra
                work.due.add((shared.due, chosen.id))
        name = ask.ticket or f"{chosen.id}.{place}"
        work.tickets.append((chosen.id, place, ask.ticket, ask.unit, work.now, ends))
        work.counts[chosen.arm].asked += 1
        work.glance.found[name] = Found(chosen, place, ends)
        if ask.unit is not None and given.group is None:
            work.glance.units[ask.unit] = Earlier(chosen, None, b"")
        if name in work.glance.gone:
            self._cancel(name, work)
        return self._ticket(name, chosen)

    def _cancel(self, ticket: str, work: "_Work") -> Fate:
        found = work.glance.found.get(ticket)
        if found is None:
            if ticket not in work.glance.gone and not OWN_ID.fullmatch(ticket):
                work.glance.gone.add(ticket)
                work.events.append((BEFORE, 0, ticket, 0.0, work.now))
            return "unknown"
        if CANCELLED not in found.events:
            if found.events or found.ended:
                return "late"
            found.events[CANCELLED] = work.now
            work.events.append((found.chosen.id, found.place, CANCELLED, 0.0, work.now))
            work.counts[found.chosen.arm].asked -= 1
            if self.policy.pulls > 1 and not self._open.cancel(found.chosen.id):
                self._stale = True  # it needs another ticket
        return "cancelled"

    def _given(self, ask: Ask, offer: Offer, work: "_Work") -> "_Given":
        """Return what is certain of a new ticket before the policy is asked."""
        if self._fixed in offer.names:
            return _Given("fixed", self._fixed)
        if self.control is not None and self.control.arm in offer.names:
            lot = self._lots.random() if ask.unit is None else _hashed(self._seed, ask.unit)
            if lot < self.control.share:
                return _Given("control", self.control.arm)
        earlier = None if ask.unit is None else work.glance.units.get(ask.unit)
        if earlier is not None and self._name(earlier.chosen.arm) in offer.names:
            return _Given(None, self._name(earlier.chosen.arm), earlier)
        return _Given()

    def _even(self, offer: Offer) -> float:
        """Return the share of uniformly random choices outside the control group."""
        control, arms = self.control, len(offer.names)
        rest = 1 - control.share if control is not None and control.arm in offer.names else 1.0
        least = self.floor * arms / rest
        if least > 1 + _ROUNDED:
            raise ValueError(
                f"floor must be at most {rest / arms:g} for an offer of {arms} arms, got "
                f"{self.floor:g}: all floors and the control share together are at most 1"
            )
        return max(self.explore, min(least, 1.0))

    def _ticket(self, name: str, chosen: Chosen) -> Ticket:
        return Ticket(name, self._name(chosen.arm), chosen.propensity, chosen.id)

    def _name(self, arm: int) -> str:
        if arm not in self._names:  # of another agent
            self._meet(self.journal.arms())
        return self._names[arm]

    def _tell(self, tell: Tell, work: "_Work") -> Fate:
        found, rules, event = work.glance.found.get(tell.ticket), self.rules, tell.event or ""
        if found is None:
            return "unknown"
        if CANCELLED in found.events:
            return "cancelled"
        if event in found.events or (found.events and rules.rewards == "first"):
            return "duplicate"
        if rules.rewards == "sum" and math.isinf(tell.reward):
            raise ValueError(f"a reward that is added to others must be finite, got {tell.reward}")
        chosen, late = found.chosen, work.now > found.ends or found.ended
        at = math.nextafter(work.now, math.inf) if found.ended else work.now  # after the outcome
        work.events.append((chosen.id, found.place, event, tell.reward, at))
        found.events[event] = at
        counts = work.counts[chosen.arm]
        if late:
            counts.late += 1
            counts.late_sum += tell.reward
            return "late"
        counts.told += 1
        if self.policy.pulls > 1:
            work.told[chosen.id] += 1
            self._open.tell(chosen.id, max(0.0, work.now - found.ends + self.wait))
        enough = found.told + work.told[chosen.id] >= rules.pulls or not self.journal.serial
        if rules.at_once and (enough or rules.pulls == 1):
            work.ready.append(chosen.id)
        return "kept"

    def _share(self, offer: Offer, work: "_Work", given: "_Given") -> OpenDecision:
        """Make a decision that several tickets will share."""
        if self._open.never_repeats(offer.key):
            raise ValueError(
                f"this policy needs offers that repeat, as {self.policy.pulls} requests with the "
                "same arms and features share a decision; recent offers all differed. Use "
                "LinStudentUCB, which learns from single rewards"
            )
        return self._open.open(self._decide(offer, work, given), given.key(offer.key))

    def _decide(self, offer: Offer, work: "_Work", given: "_Given") -> Chosen:
        """Make a new decision for an offer, or repeat an earlier one for a unit."""
        journal, explore = self.journal, self._even(offer)
        self._catch_up(work.glance.outcomes())
        new = [name for name in offer.names if name not in self._known]
        if new or self.learner.state is None:
            journal.lock_arms()
            self._meet(journal.arms())
            new = [name for name in offer.names if name not in self._known]
            if len(self._known) + len(new) > MOST_ARMS:
                raise ValueError(
                    f"this experiment has {len(self._known)} arms, and {new[:10]} would be too "
                    f"many: there may be {MOST_ARMS}"
                )
        if self.learner.state is None:
            self._restore()
        learner = self.learner
        first, earlier = learner.state is None, given.earlier
        with learner.meeting(offer):
            number = journal.new_id()
            if given.arm is not None and given.group != "control":
                choice = Choice.fixed(offer, given.arm)
            else:
                state = self._belief.state() if learner.imputes else learner.state
                choice = learner.choose(number, offer, state, explore, self.control, given.group)
        if new:
            journal.add_arms({name: learner.numbers[name] for name in new})
            self._meet(learner.numbers)
        if first:
            features = "no" if offer.vectors is None else "yes"
            journal.set_meta(arms=str(learner.first_arms), dim=str(learner.dim), features=features)
        share, packed, after = choice.propensity, choice.packed, learner.learned
        if earlier is not None:
            share, after = earlier.chosen.propensity, REPEATED
            packed = earlier.shares if earlier.key == offer.key else None
        decision = Decision(number, offer, choice.arm, share)
        if learner.imputes and earlier is None:
            if not self._own:
                self._belief.since = number
            self._belief.add(decision)
            self._own.append(number)
        row = DecisionRow(
            decision,
            packed,
            explore,
            given.group,
            self._recipe,
            self.worker,
            after,
            self._belief.since if earlier is None else earlier.chosen.id,
            work.now,
        )
        arm = learner.numbers[decision.name]
        journal.add_decisions([(row, arm)])
        return Chosen(number, arm, share)

    def _meet(self, numbers: dict[str, int]) -> None:
        """Know the arms of the journal."""
        self.learner.numbers = dict(numbers)
        self._known = frozenset(numbers)
        self._names = {number: name for name, number in numbers.items()}

    def _look_after(self, now: float) -> None:
        """See whether decisions that several tickets share are short of rewards."""
        for one in self._open.overdue(now):
            decision = one.chosen.id
            tickets = self.journal.told([decision]).get(decision)
            ended = tickets is None
            if tickets is None:
                tickets = self.journal.told([decision], ended=True)[decision]
            self._open.check(one, tickets, now, ended=ended)

    def _catch_up(self, outcomes: int) -> None:
        """Learn new outcomes, if that is worth it."""
        if self._behind(outcomes):
            backlog = outcomes - self.learner.learned
            if self.learner.state is None:
                self._restore()
            elif backlog > _FAR:
                jump(self.learner, self.journal)
                self._believe()
            stop = min(outcomes, self.learner.learned + _AT_ONCE)
            replay(self.learner, self.journal, stop, self._learned)
            if self._own:
                self._belief.start_at(self._own[0])
        elif len(self._belief.pending) > 4 * RECENT:
            self._belief.start_at(self._own[0])

    def _behind(self, outcomes: int) -> bool:
        """Return whether new outcomes are worth imputing pending rewards again."""
        backlog = outcomes - self.learner.learned
        return backlog > 0 and backlog * 4 * self.policy.pulls >= len(self._belief.pending)

    def _learned(self, outcome: Outcome) -> None:
        self._lately.append(outcome.rewards is not None)
        self._belief.pending.pop(outcome.decision.id, None)
        if self.policy.pulls > 1:
            self._open.ended(outcome.decision.id)

    def _believe(self) -> None:
        self._belief, self._own = Belief(self.learner), deque[int](maxlen=RECENT)

    def _save(self, glance: Glance) -> None:
        """Store the alarms of a policy that is `Vigilant`, and a snapshot from time to time."""
        if glance.orders and self.learner.alarms:
            self._note_alarms(self._now(glance))
        apart = max(_LEAST_APART, self._size // _BYTES_AN_OUTCOME)
        if glance.orders and self.learner.learned >= self._saved + apart:
            self._saved, self._size = self.journal.last_snapshot(self._recipe)
            if self.learner.learned >= self._saved + apart:
                packed = self.learner.to_bytes()
                self.journal.add_snapshot(self.learner.learned, self._recipe, packed)
                self._saved, self._size = self.learner.learned, len(packed)

    def _note_alarms(self, now: float) -> None:
        """Write each restart of the policy once, whichever worker sees it first."""
        notes = [note.text for note in self.journal.notes() if note.kind == "alarm"]
        known = {(text["recipe"], text["outcome"]) for text in notes}
        new = [one for one in self.learner.alarms if (self._recipe, one.outcome) not in known]
        for outcome, arm in new:
            text = {"arm": arm, "outcome": outcome, "recipe": self._recipe}
            self.journal.add_note("alarm", text, now)
        self.learner.alarms = new  # until they are seen in the journal: this may be rolled back

    def _opened(self, seed: int | None, dim: int | None, *, change: bool) -> bool:
        """Check that the journal is of this policy, and return whether it was changed to it.

        One of another policy raises ``ValueError``, unless it is to be changed.
        """
        meta, recipe = self.journal.meta(), repr(self.policy)
        now = self._now(self.journal.look())
        lots = str(self.worker) if "seed" in meta else "new"
        if "seed" not in meta:
            meta = {"seed": str(seed or 0), "version": version("tailproof")}
            meta |= {} if dim is None else {"dim": str(dim)}
            self.journal.set_meta(**meta)
            self.journal.add_recipe(recipe, 0, now)
        *_, (self._recipe, text, _, _) = self.journal.recipes()
        if text != recipe and not change:
            raise ValueError(
                f"the journal belongs to {text}, not to {recipe}: let {recipe} learn its outcomes "
                "and take over with `tailproof change FILE EXPERIMENT` or Agent(…, change=True), "
                "or use a new journal"
            )
        for name, value in {"seed": seed, "dim": dim}.items():
            kept = meta.get(name, str(value))
            if value is not None and kept != str(value):
                raise ValueError(
                    f"the journal has {name} {kept}, got {value}: leave {name} out, or use a new "
                    "journal"
                )
        silence = "lost" if self.rules.silence is None else repr(self.rules.silence)
        rules = {"wait": repr(self.wait), "silence": silence, "rewards": self.rules.rewards}
        control = None if self.control is None else self.control._asdict()
        if self.floor or "floor" in meta:
            rules["floor"] = repr(self.floor)
        if control is not None or "control" in meta:
            rules["control"] = json.dumps(control, ensure_ascii=False)
        if not rules.items() <= meta.items():
            self.journal.set_meta(**rules)
        if control is not None:
            self.journal.add_note("control", {"worker": self.worker} | control, now)
        self._seed = int(meta["seed"])
        self._lots.seed(f"{self._seed} {lots}")
        if text != recipe:
            self._change(text, recipe, now)
        return text != recipe

    def _change(self, old: str, new: str, now: float) -> None:
        """Let this policy take over, unless it cannot learn what is in the journal."""
        journal, meta = self.journal, self.journal.meta()
        if meta.get("features") == "no":  # room for the arms that came later
            journal.set_meta(dim=str(max(int(meta["dim"]), len(journal.arms()))))
        self._recipe = journal.add_recipe(new, journal.counts()[0], now)
        journal.add_note("change", {"from": old, "to": new}, now)
        try:
            self._restore()
        except RuntimeError as error:
            raise ValueError(f"{new} cannot take over from {old}: {error}") from error

    def _restore(self) -> None:
        """Learn all that is in the journal."""
        self.learner = restored(self.policy, self.journal)
        self.learner.room = len(self.arms or ())
        self._meet(self.learner.numbers)
        self._believe()

    def _reload(self) -> None:
        """Read what is in memory again, at the start and after an error."""
        numbers = self.journal.arms()
        if not self.learner.numbers.items() <= numbers.items():  # something was rolled back
            self._restore()
        self._meet(numbers)
        self._saved, self._size = self.journal.last_snapshot(self._recipe)
        self._believe()
        self._notes, self._dropped, self._fixed = 0, frozenset[str](), None
        self._read_notes()
        if self.policy.pulls > 1:
            self._open.clear()
            unfinished = self.journal.unfinished(_ADOPTED)
            told = self.journal.told([one[2].id for one in unfinished]) if unfinished else {}
            for digest, group, chosen, repeated in unfinished:
                arm = self._name(chosen.arm) if repeated or group else None
                given = _Given(group, arm, Earlier(chosen, None, b"") if repeated else None)
                self._open.adopt(chosen, given.key(digest), told.get(chosen.id, []))
        self._stale = False


class _Given(NamedTuple):
    """What is certain of a decision before the policy is asked: its group, its arm.

    `earlier` is the decision that it repeats for a unit.
    """

    group: str | None = None
    arm: str | None = None
    earlier: Earlier | None = None

    def key(self, offer: bytes) -> bytes:
        """Return what identifies the requests that share a decision.

        Repeated units also have the same propensity.
        """
        if self.arm is None:
            return offer
        share = None if self.earlier is None else self.earlier.chosen.propensity
        return offer + f"{self.group} {share} {self.arm}".encode()


def _hashed(seed: int, unit: str) -> float:
    """Return a number from 0 to 1 that looks random, always the same for a unit."""
    digest = blake2b(f"{seed} {unit}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64


def _control(control: tuple[str, float] | None, arms: frozenset[str] | None) -> Control | None:
    if control is None:
        return None
    ok = isinstance(control, Sequence) and not isinstance(control, str) and len(control) == 2
    require(ok, "control", "an arm and a share, such as ('red', 0.1)", control)
    arm, share = control
    Offer.of([arm])
    if arms is not None and arm not in arms:
        raise ValueError(f"the control arm must be one of the arms, {sorted(arms)}, got {arm!r}")
    return Control(arm, number("the control share", share, above=0, below=1))


class _Work:
    """The rows of one transaction."""

    def __init__(self, glance: Glance, now: float) -> None:
        self.glance, self.now = glance, now
        self.tickets: list[TicketRow] = []
        self.events: list[tuple[int, int, str, float, float]] = []
        self.due: set[tuple[float, int]] = set()
        self.ready: list[int] = []
        self.counts: defaultdict[int, Counts] = defaultdict(Counts)
        self.told: defaultdict[int, int] = defaultdict(int)
