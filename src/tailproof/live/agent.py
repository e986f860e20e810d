"""The agent: ask it for an arm, tell it the reward, at any time and in any order."""

import math
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from numbers import Real
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from tailproof.checks import number, require, whole
from tailproof.live.fold import Verification, restored, verify
from tailproof.live.holds import SEEN, Desk, Hold
from tailproof.live.journal import KEPT, LATE, OWN_ID, Journal
from tailproof.live.mind import RECENT, Mind
from tailproof.live.offers import Features, Offer
from tailproof.live.opening import open_journal
from tailproof.live.records import Decision, HoldRow
from tailproof.policies.base import Policy

__all__ = ["LONGEST_ID", "Agent", "Ask", "Fate", "Standing", "Tell", "Ticket", "seconds"]

_LEAST_APART = 256
"""Outcomes between two snapshots, at least; replaying this many takes about 0.05 s."""
_BYTES_A_LESSON = 100
"""Snapshots of large states are rarer, so that they cost about this much per outcome."""
LONGEST_ID = 200
_LONGEST_MOMENT = 0.005
"""Seconds that a commit waits at most for other threads to join it."""

Fate = Literal["kept", "learned", "duplicate", "late", "unknown"]
"""What happened to a reward.

"kept": stored, its decision waits for more; "learned": stored, and its decision is complete;
"duplicate": ignored, the ticket already has a reward; "late": stored, but its decision had ended;
"unknown": there is no such ticket.
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
        The probability of choosing this arm; None if the policy does not report it.
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
    """Tickets waiting for a reward, the share of recent rewards lost, and decisions ended."""

    pending: int
    loss: float
    lessons: int


@dataclass(frozen=True)
class Ask:
    """A request for an arm; see `Agent.ask`."""

    offer: Features | Offer
    ticket: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "offer", Offer.of(self.offer))
        if self.ticket is not None:
            _check_id(self.ticket)


@dataclass(frozen=True)
class Tell:
    """The reward of a ticket; see `Agent.tell`."""

    ticket: str
    reward: float

    def __post_init__(self) -> None:
        _check_id(self.ticket)
        r = self.reward
        ok = isinstance(r, Real) and not isinstance(r, bool)
        ok = ok and (abs(r) <= sys.float_info.max or abs(r) == math.inf)
        require(ok, "reward", "a float (±inf allowed, NaN not)", r)
        object.__setattr__(self, "reward", float(r) + 0.0)  # -0.0 becomes 0.0


def _check_id(ticket: str) -> None:
    ok = isinstance(ticket, str) and 0 < len(ticket) <= LONGEST_ID and ticket.isprintable()
    require(ok, "ticket", f"a string of 1 to {LONGEST_ID} printable characters", ticket)


class _Pending:
    """An ask or tell that waits for its transaction."""

    __slots__ = ("act", "answer", "done", "error")

    def __init__(self, act: Ask | Tell) -> None:
        self.act, self.done = act, False
        self.answer: Any = None
        self.error: BaseException | None = None


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

    Everything is written to a journal before it is answered. The state of the policy comes from
    replaying the journal, so it is the same after a crash and in every process that shares it.

    If a policy takes ñ rewards per decision, as a filter does, several requests with the same offer
    share a decision and get the same arm. A decision gets extra tickets to make up for the share of
    rewards that were lost recently. When no more rewards are expected, it ends with those that
    came, if they are more than half of ñ. `LinStudentUCB` and other policies that learn from
    single rewards make a decision for each request.

    Parameters
    ----------
    policy : Policy
        Any policy, filter or guest.
    journal : path, str or Journal
        A SQLite file, created if missing, ``"postgresql://…"``, or a `Journal`; see
        `open_journal`. A journal of another policy raises ``ValueError``.
    wait : float or str
        How long a reward may take, in seconds or as "90s", "15min", "2h", "1d", before it counts as
        lost. A later reward is still used if its decision is open.
    explore : float
        The probability of choosing uniformly at random among the arms of the offer. Every arm then
        has a probability of at least explore/K, so that other policies can be evaluated on the log.
    seed : int, optional
        Random numbers depend on the seed and the number of the decision. By default the seed of the
        journal, 0 for a new one.
    dim : int, optional
        For offers without features and a policy that uses vectors: the most arms there will ever
        be; by default the number in the first offer.
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

    Source: our own. Differences: none.
    """

    def __init__(
        self,
        policy: Policy[Any],
        journal: str | Path | Journal,
        *,
        wait: float | str = "1d",
        explore: float = 0.0,
        seed: int | None = None,
        dim: int | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        require(isinstance(policy, Policy), "policy", "a Policy such as UCB1()", policy)
        self.policy, self.wait = policy, seconds(wait)
        self.explore = number("explore", explore, at_least=0, at_most=1)
        if seed is not None:
            whole("seed", seed, at_least=0)
        if dim is not None:
            whole("dim", dim)
        self.journal = open_journal(journal)
        self._turn, self._busy = threading.Condition(), False
        self._leader, self._process = -1, os.getpid()
        self._queue: list[list[_Pending]] = []
        self._gathering, self._together, self._moment = False, 1, 0.0
        self._now = clock or self.journal.now
        self.commits = 0
        self._desk = Desk(policy.pulls, policy.least, self.wait)
        self._pending: dict[int, Decision] = {}
        self._holds = self._closed = self._committed = self._since = 0
        self._saved = self._size = 0
        self._stale = True
        try:
            with self.journal.transaction():
                self.mind = self._opened(seed, dim)
                self._reload()
        except BaseException:
            if self.journal is not journal:
                self.journal.close()
            raise

    def ask(self, offer: Features, ticket: str | None = None) -> Ticket:
        """Return a ticket with an arm of the offer; the same ticket id always gets the same arm.

        An offer is a list of arm names, or a mapping from arm names to features, which K-armed
        policies ignore. If the ticket id is known, the offer is ignored.
        """
        found: Ticket = self._one(Ask(offer, ticket))
        return found

    def tell(self, ticket: str, reward: float) -> Fate:
        """Store the reward of a ticket, and return what happened to it; NaN is refused."""
        found: Fate = self._one(Tell(ticket, reward))
        return found

    def _one(self, act: Ask | Tell) -> Any:
        """Do one ask or tell; a refusal raises."""
        (answer,) = self.act([act])
        if isinstance(answer, ValueError):
            raise answer
        return answer

    def act(self, acts: Sequence[Ask | Tell]) -> list[Ticket | Fate | ValueError]:
        """Do several asks and tells in one commit; a refused one has its error as its answer.

        Threads that come during a commit share the next one. That one first waits for as many
        threads as shared the last commit, for at most an eighth of the time that one took.
        """
        mine = [_Pending(act) for act in acts]
        if not mine:
            return []
        self._check_process()
        with self._turn:
            self._queue.append(mine)
            if self._gathering:
                self._turn.notify_all()
        with self._alone(unless=mine[-1]) as leads:
            if leads:
                self._do_all()
        for pending in mine:
            if pending.error is not None:
                raise pending.error
        return [pending.answer for pending in mine]

    def close(self) -> None:
        """Close the journal; everything is already in it."""
        with self._alone():
            self.journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def verify(self) -> Verification:
        """Replay the journal, make every decision again, and return what differs."""
        with self._alone():
            return verify(self.policy, self.journal, self.mind)

    def standing(self) -> Standing:
        """Return the counts as of the last transaction of this agent."""
        with self._alone():
            pending = sum(len(hold.awaited) for hold in self._desk.open.values())
            return Standing(pending, self._desk.loss, self._closed)

    @property
    def loss(self) -> float:
        """The share of recent rewards that were lost."""
        return self._desk.loss

    def _check_process(self) -> None:
        """Raise in a forked child, whose locks may belong to threads that do not exist there."""
        if os.getpid() != self._process:
            raise RuntimeError("an Agent cannot be used after a fork: create one in each process")

    @contextmanager
    def _alone(self, unless: _Pending | None = None) -> Iterator[bool]:
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
            with self.journal.transaction() as foreign:
                now = self._now()
                if foreign or self._stale:
                    self._reload()
                self._end_due(now)
                for pending in batch:
                    try:
                        pending.answer = self._do(pending.act, now)
                    except ValueError as refusal:
                        pending.answer = refusal
            self.commits += 1
            self._committed = self._closed
        except BaseException as error:
            self._stale = True
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

    def _do(self, act: Ask | Tell, now: float) -> Ticket | Fate:
        return self._ask(act, now) if isinstance(act, Ask) else self._tell(act, now)

    def _ask(self, ask: Ask, now: float) -> Ticket:
        offer = Offer.of(ask.offer)
        if not self.mind.uses_vectors:
            offer = Offer(offer.names)
        found = None if ask.ticket is None else self.journal.find(ask.ticket)
        if found is not None:
            return _ticket(str(ask.ticket), self.journal.decision(found.hold))
        if ask.ticket is not None and OWN_ID.fullmatch(ask.ticket):
            raise ValueError(
                f"ticket {ask.ticket!r} is reserved for ids that the agent generates: use another, "
                f"such as 'v{ask.ticket}'"
            )
        hold = self._desk.wanting(offer.key, now)
        if hold is None or hold.decision is None:
            hold, decision = self._open(offer)
        else:
            decision = hold.decision
        place = hold.issue(now)
        self.journal.add_ticket(hold.id, place, ask.ticket, now)
        return _ticket(ask.ticket or f"{hold.id}.{place}", decision)

    def _tell(self, tell: Tell, now: float) -> Fate:
        found = self.journal.find(tell.ticket)
        if found is None:
            return "unknown"
        if found.told is not None:
            return "duplicate"
        late = found.closed is not None
        self.journal.tell(found, tell.reward, now, LATE if late else KEPT)
        if late:
            return "late"
        hold = self._desk.open[found.hold]
        self._desk.tell(hold, found.number, now)
        if hold.told < self.policy.pulls:
            return "kept"
        self._end(hold, learned=True)
        return "learned"

    def _open(self, offer: Offer) -> tuple[Hold, Decision]:
        """Make a new decision for an offer."""
        if self._desk.never_repeats(offer.key):
            raise ValueError(
                f"this policy needs offers that repeat, as {self.policy.pulls} requests with the "
                "same arms and features share a decision; recent offers all differed. Use "
                "LinStudentUCB, which learns from single rewards"
            )
        mind, number = self.mind, self._holds
        self._catch_up()
        since = self._since if mind.believes else number
        with mind.meeting(offer):
            choice = mind.choose(number, offer, self.explore, self._pending)
        if number == 0:
            self.journal.set_meta(dim=str(mind.dim))
        decision = Decision(number, offer, *choice)
        self.journal.add_hold(HoldRow(decision, self.explore, mind.lessons, since), mind.numbers)
        hold = Hold(number, offer.key, decision if self.policy.pulls > 1 else None)
        self._desk.add(hold, new=True)
        if mind.believes:
            self._pending[number] = decision
        self._holds += 1
        return hold, decision

    def _end(self, hold: Hold, *, learned: bool) -> None:
        """End a decision, to be learned from or given up."""
        self.journal.close_hold(hold.id, self._closed, learned)
        self._desk.close(hold)
        self._closed += 1

    def _end_due(self, now: float) -> None:
        """End the decisions that are due, and update the share of lost rewards."""
        for hold, enough in self._desk.due(now):
            self._end(hold, learned=enough)
        for ended in self._desk.settled(now):
            self._count(ended)

    def _count(self, hold: int) -> None:
        """Count the rewards of a decision that came in time."""
        times = self.journal.tickets(hold)
        came = sum(told is not None and told <= asked + self.wait for asked, told in times)
        self._desk.count(len(times), came)

    def _catch_up(self) -> None:
        """Learn new outcomes, if there are enough to be worth imputing pending rewards again."""
        mind, backlog = self.mind, self._committed - self.mind.lessons
        if backlog * 4 * self.policy.pulls >= len(self._pending) and backlog:
            self._learn(self._committed)
            self._expect_since(self._holds - RECENT)
            self._save()
        elif self._holds - self._since > 4 * RECENT:
            mind.expect_anew()
            self._expect_since(self._holds - RECENT)

    def _learn(self, lessons: int) -> None:
        """Learn outcomes, up to a total of `lessons`."""
        for closing in self.journal.closings(self.mind.lessons, lessons):
            try:
                self.mind.fold(closing)
            except ValueError as error:  # due to an earlier request, not to this one
                hold = closing.decision.hold
                raise RuntimeError(
                    f"cannot learn the outcome of decision {hold}: {error}"
                ) from error
            self._pending.pop(closing.decision.hold, None)

    def _expect_since(self, hold: int) -> None:
        """Impute rewards only for pending decisions from this one on."""
        self._since = max(0, hold)
        for old in [old for old in self._pending if old < self._since]:
            del self._pending[old]

    def _save(self) -> None:
        """Store a snapshot from time to time."""
        apart = max(_LEAST_APART, self._size // _BYTES_A_LESSON)
        if self.mind.lessons >= self._saved + apart:
            packed = self.mind.to_bytes()
            self.journal.add_snapshot(self.mind.lessons, packed)
            self._saved, self._size = self.mind.lessons, len(packed)

    def _opened(self, seed: int | None, dim: int | None) -> Mind:
        """Restore the learner from the journal; one of another policy raises ``ValueError``."""
        meta, recipe = self.journal.meta(), repr(self.policy)
        if "recipe" not in meta:
            meta = {"recipe": recipe, "seed": str(seed or 0), "version": version("tailproof")}
            meta |= {} if dim is None else {"dim": str(dim)}
            self.journal.set_meta(**meta)
        if meta["recipe"] != recipe:
            raise ValueError(
                f"the journal belongs to {meta['recipe']}, not to {recipe}: use a new journal for "
                "another policy"
            )
        for name, value in {"seed": seed, "dim": dim}.items():
            kept = meta.get(name, str(value))
            if value is not None and kept != str(value):
                raise ValueError(
                    f"the journal has {name} {kept}, got {value}: leave {name} out, or use a new "
                    "journal"
                )
        return restored(self.policy, self.journal)

    def _reload(self) -> None:
        """Reload open decisions at the start, after an error, or because others wrote."""
        before, stale, self._stale = self._closed, self._stale, False
        self._holds, self._closed = self.journal.counts()
        self._committed = self._closed
        self._saved, self._size = self.journal.last_snapshot()
        numbers, mind = self.journal.arms(), self.mind
        fits = mind.state is not None and mind.numbers.items() <= numbers.items()
        if not fits:  # the first load, or something was rolled back
            self.mind = mind = restored(self.policy, self.journal)
        mind.numbers = numbers
        lessons = mind.lessons
        self._learn(self.journal.last_after())  # each decision knows at least what the last one did
        if stale or mind.lessons > lessons:
            mind.expect_anew()
            self._since = max(0, self._holds - RECENT)
        for ended in self.journal.ended(max(before, self._closed - SEEN)):
            self._desk.see(ended, self.journal.tickets(ended)[-1][0])
        believes = mind.believes
        self._pending = self.journal.unfolded(mind.lessons, self._since) if believes else {}
        self._desk.clear()
        holds, tickets = self.journal.open_holds()
        several = self.policy.pulls > 1
        for key, *decided in holds:
            decision = self.journal.decided(*decided) if several else None
            self._desk.add(Hold(decided[0], key, decision), new=False)
        now = self._now()
        for hold, place, asked, told in tickets:
            one = self._desk.open[hold]
            one.issue(min(asked, now))  # the clock may have been set back
            if told is not None:
                one.told += 1
                del one.awaited[place]


def _ticket(name: str, decision: Decision) -> Ticket:
    return Ticket(name, decision.name, decision.propensity, decision.hold)
