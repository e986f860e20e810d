"""The agent: ask it for an arm, tell it the reward, at any time and in any order."""

import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from tailproof.checks import require
from tailproof.live.acts import Act, Ask, Cancel, Standing, Status, Tell, Ticket
from tailproof.live.batch import do, write
from tailproof.live.journal import Batch, ConflictError, Journal, open_journal
from tailproof.live.offer import Features, Offer
from tailproof.live.ordering import AT_ONCE, order
from tailproof.live.recipe import Recipe, Rules
from tailproof.live.replay import jump, offers, replay, restored
from tailproof.live.verification import Verification, verify
from tailproof.notebooks import html
from tailproof.policies.base import Policy
from tailproof.tables import records

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["Agent"]

T = TypeVar("T")

_LEAST_APART = 512
"""Outcomes between two snapshots, at least; replaying this many takes about 0.03 s."""
_BYTES_AN_OUTCOME = 100
"""Snapshots of large states are rarer, so that they cost about this much per outcome."""
_FAR = 5000
"""If more outcomes than this are not learned yet, a snapshot is loaded."""
_TRIES = 20
"""How often a batch is tried if other workers keep storing the same rows first."""


class Agent:
    """A policy in live use: each request gets an arm, rewards may come late, twice or never.

    Everything is written to a journal before it is answered. What the policy has learned comes from
    replaying the outcomes in the journal, in the order of their numbers, so it is the same after a
    crash and in every process that shares it. Each agent decides from the outcomes that it has
    replayed so far, so that no agent waits for another.

    Each request is a decision of its own. If a policy takes ñ rewards per decision, as a filter
    does, the rewards of an arm and offer wait until there are ñ of them. No reward is imagined
    while it is on its way: a policy without chance gives all visitors the same arm until the next
    reward comes; see docs/deployment.md. Where at least half of the arms on offer have 100
    rewards, an arm with n < 100 gets a share of at most √((n + 1)/100).

    The policy and the rules are the recipe of the experiment, which the journal keeps. Rules that
    are not given are taken from the journal; others than the journal's are refused, see `change`.

    Parameters
    ----------
    policy : Policy or Recipe
        Any policy, filter or guest; or a whole recipe.
    journal : path, str or Journal
        A SQLite file, created if missing, ``"postgresql://…"``, or a `Journal`; see `open_journal`.
    change : bool
        Whether this recipe may replace the journal's: its policy learns every outcome so far.
        Agents that run follow at their next transaction.
    **rules :
        Rules of the recipe, such as ``wait="2h", silence=0.0``; see `Recipe`.
    clock : callable, optional
        Returns the time in seconds since 1970; by default a monotonic clock, of this machine for
        SQLite, of the server for PostgreSQL.

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

    Source: Agarwal et al. 2016 for deciding from a copy, logging, and one that orders the log.
    Differences: every process learns by itself, from the ordered log.
    """

    def __init__(
        self,
        policy: Policy[Any] | Recipe,
        journal: str | Path | Journal,
        *,
        change: bool = False,
        clock: Callable[[], float] | None = None,
        **rules: Unpack[Rules],
    ) -> None:
        require(isinstance(policy, Policy | Recipe), "policy", "a Policy such as UCB1()", policy)
        Recipe(policy="").altered(policy, rules)  # refuses wrong settings before anything is opened
        self.journal = open_journal(journal)
        self._lock, self._owner, self._process = threading.Lock(), -1, os.getpid()
        self._clock, self.commits = clock, 0
        self._stale, self._broken = False, False
        self._save_at, self._notes = 0, 0
        self._recipes: dict[int, Recipe] = {}
        self._offers = offers(self.journal)
        # offers without features, as the policy sees them, with their ids and even shares
        self.accepted: dict[bytes, tuple[Offer, int, float]] = {}
        self.strange: dict[bytes, None] = {}  # offers since the last one that had come before
        self.due_read = -math.inf  # when it last read which requests are due
        try:
            self.changed = self._transact(lambda: self._open(policy, rules, change=change))
            if not self.changed:
                self._restore()  # may take long, and nobody waits for it
            with self.journal.transaction():
                read = self._read()
                self._load()
                self.save(read)
        except BaseException:
            if self.journal is not journal:
                self.journal.close()
            raise

    # ---- what others call

    def ask(self, offer: Features, ticket: str | None = None, unit: str | None = None) -> Ticket:
        """Return a ticket with an arm of the offer; the same ticket id always gets the same arm.

        Parameters
        ----------
        offer : list of str, or mapping from str to vectors
            The arms on offer now, in any order, with or without features.
        ticket : str, optional
            An id of your own, such as the id of the visit; without one the agent names it.
        unit : str, optional
            Who asks, such as "user 7": the same unit gets the same arm as long as it is on offer.
        """
        ticket_: Ticket = self._act_singly(Ask(offer, ticket, unit))
        return ticket_

    def tell(self, ticket: str, reward: float, event: str | None = None) -> Status:
        """Tell a reward of a ticket, and return what happened to it, see `Status`.

        Parameters
        ----------
        ticket : str
        reward : float
            ±inf and any finite size are legitimate.
        event : str, optional
            Tells several rewards of one ticket apart, such as "order 4711".
        """
        status: Status = self._act_singly(Tell(ticket, reward, event))
        return status

    def cancel(self, tickets: Sequence[str]) -> list[Status]:
        """Let tickets not count, as their arms were not used: the caller had given up waiting.

        A cancelled ticket has no reward, not even the value of `silence`. Returns what happened to
        each: "cancelled"; "late" if it already has a reward or an outcome; "unknown" if it was not
        asked for yet: an ask for it that still arrives is answered, but does not count.

        >>> from tailproof import UCB1
        >>> agent = Agent(UCB1(), ":memory:")
        >>> ticket = agent.ask(["red", "blue"], ticket="visit 17")
        >>> agent.cancel(["visit 17", "visit 18"]), agent.tell("visit 17", 3.5)
        (['cancelled', 'unknown'], 'cancelled')
        """
        statuses: list[Any] = self.act([Cancel(ticket) for ticket in tickets])
        return statuses

    def act(self, acts: Sequence[Act]) -> list[Ticket | Status | ValueError]:
        """Do asks, tells and cancellations in one commit; a refused act is answered by its error.

        If the commit fails, none was done. With an event loop: ``asyncio.to_thread(agent.act, …)``.
        """
        if not acts:
            return []
        self._enter()
        try:
            answers = self._transact(self._do, acts)
            self.commits += 1
            return answers
        finally:
            self._leave()

    def drop(self, arm: str) -> None:
        """Never choose an arm again, also if it is on offer; tickets that have it still count.

        >>> from tailproof import UCB1
        >>> agent = Agent(UCB1(), ":memory:")
        >>> ticket = agent.ask(["red", "blue"])
        >>> agent.drop("red")
        >>> agent.ask(["red", "blue"]).arm
        'blue'
        """
        self._note("drop", arm)

    def pause(self, arm: str | None = None) -> None:
        """Give everyone the control arm, or another arm, until `resume`.

        Requests are stored and learned as ever, with propensity one. A request whose offer does
        not have the arm is decided by the policy.
        """
        control = self.recipe.control
        arm = control[0] if arm is None and control is not None else arm
        if arm is None:
            raise ValueError("there is no control arm: say which arm everyone gets, pause(arm)")
        self._note("fix", arm, why="pause")

    def stop(self, arm: str) -> None:
        """End the experiment: everyone gets the winner, as in `pause`."""
        self._note("fix", arm, why="stop")

    def resume(self) -> None:
        """Let the policy decide again after `pause` or `stop`."""
        self._note("resume")

    @property
    def policy(self) -> Policy[Any]:
        """The policy that decides now."""
        return self.learner.policy

    def verify(self) -> Verification:
        """Check the chain of outcomes, make every decision again; return the differences."""
        with self.alone(), self.journal.moment():
            return verify(self.journal, self.policy, self.learner)

    def standing(self) -> Standing:
        """Return how many requests are pending, how many outcomes there are, and how many alarms.

        It counts rows, so it takes longer where many are pending.
        """
        with self.alone():
            alarms = sum(note.kind == "alarm" for note in self.journal.notes())
            pending = sum(self.journal.pending().values())
            return Standing(pending, self.journal.outcome_count(), alarms)

    def tick(self) -> bool:
        """Number outcomes that are due, learn new ones, and return whether all is done.

        Asks and tells do this too; a `Scheduler` does, so that an ask finds little to do.
        """
        with self.alone():
            now = self.journal.now() if self._clock is None else float(self._clock())
            behind = self.journal.outcome_count() > self.learner.learned
            noted = self.journal.note_count() != self._notes
            if not behind and not noted and not self.journal.due(now, 1):
                return True
            with suppress(ConflictError):
                self._transact(self._ticked)
            return False

    def beat(self) -> None:
        """Make a small commit, to see whether the journal can be written to; raises if not."""
        with self.alone():
            now = f"{self.journal.now():.3f}"
            self._transact(lambda: self.journal.set_meta(healthy=now))

    def to_frame(self) -> "pandas.DataFrame":
        """Return a row for each arm: requests, units, missing rewards, share of zeros, mean.

        >>> from tailproof import UCB1
        >>> agent = Agent(UCB1(), ":memory:")
        >>> agent.tell(agent.ask(["red", "blue"]).id, 3.5)
        'kept'
        >>> sorted(agent.to_frame()["rows"].tolist())
        [0, 1]
        """
        return records(self.journal).summary()

    def plot(self) -> "Figure":
        """Draw the share of each arm's rewards that are further from zero than z."""
        return records(self.journal).plot()

    def _repr_html_(self) -> str:
        if not list(self.journal.execute("SELECT 1 FROM request LIMIT 1")):
            return html([["arm"]], ["There are no requests yet."])
        return records(self.journal)._repr_html_()

    def close(self) -> None:
        """Close the journal; everything is already in it."""
        with self.alone():
            self.journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- one lock, one transaction

    def _enter(self) -> None:
        """Keep other threads out; no thread may come in twice, nor a forked child."""
        if os.getpid() != self._process:  # locks may belong to threads that do not exist here
            raise RuntimeError("an Agent cannot be used after a fork: create one in each process")
        if self._owner == threading.get_ident():
            raise RuntimeError("an Agent cannot be called from within its own ask or tell")
        self._lock.acquire()
        self._owner = threading.get_ident()

    def _leave(self) -> None:
        self._owner = -1
        self._lock.release()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other threads out; read everything again after an error."""
        self._enter()
        try:
            yield
        except BaseException:
            self._stale = self._broken = True
            raise
        finally:
            self._leave()

    def _transact(self, body: Callable[..., T], *given: Any) -> T:
        """Do something in a transaction, again if others stored the same rows first."""
        attempt = 0
        while True:
            try:
                with self.journal.transaction():
                    return body(*given)
            except BaseException as error:
                self._stale, attempt = True, attempt + 1
                if not isinstance(error, ConflictError) or attempt == _TRIES:
                    raise

    def _act_singly(self, act: Act) -> Any:
        """Do one ask or tell; a refusal raises."""
        (answer,) = self.act([act])
        if isinstance(answer, ValueError):
            raise answer
        return answer

    def _read(self, *wanted: Any) -> Batch:
        """Read the rows that a batch needs."""
        batch = self.journal.read_batch(*wanted)
        return batch if self._clock is None else batch._replace(now=float(self._clock()))

    def _do(self, acts: Sequence[Act]) -> list[Ticket | Status | ValueError]:
        """Do a batch of acts within a transaction."""
        if self._stale:
            self._load()
        asks, tickets, units, features = False, list[str](), list[str](), set[bytes]()
        for act in acts:
            if act.ticket is not None:
                tickets.append(act.ticket)
            if type(act) is Ask:
                asks = True
                if act.unit is not None:
                    units.append(act.unit)
                if act.offer.vectors is not None and self.learner.uses_vectors:
                    features.add(act.offer.key)
        batch = self._read(tickets, units, features)
        if batch.notes != self._notes:
            self._load()
        if asks and batch.outcomes > self.learner.learned:
            self._catch_up(batch.outcomes)
        answers = [do(self, batch, act) for act in acts]
        write(self, batch)
        return answers

    def _ticked(self) -> None:
        batch = self._read()
        if self._stale or batch.notes != self._notes:
            self._load()
        self._catch_up(batch.outcomes)
        if batch.orders:
            order(self.journal, self.recipe_of, batch, AT_ONCE)
            self.save(batch)

    # ---- what an agent knows

    def recipe_of(self, number: int) -> Recipe:
        """Return a recipe by its number; each request goes by its own."""
        if number not in self._recipes:
            for known, policy, rules, *_ in self.journal.recipes():
                self._recipes[known] = Recipe.of(policy, rules)
        return self._recipes[number]

    def name(self, arm: int) -> str:
        """Return the name of an arm by its number."""
        if arm not in self.learner.names:  # of another agent
            self.learner.know(self.journal.arms())
        return self.learner.names[arm]

    @contextmanager
    def numbering(self, offer: Offer) -> Iterator[None]:
        """Number the new arms of an offer, and store them unless the body raises."""
        journal = self.journal
        if self.learner.state is None or not self.learner.knows(offer):
            journal.lock("arms")
            if self.learner.state is None:  # another agent may have begun
                self._restore()
            else:
                self.learner.know(journal.arms())
        learner = self.learner
        before = learner.numbers, learner.dim, learner.state
        try:
            new = learner.number(offer)
            yield
        except BaseException:
            learner.know(before[0])
            _, learner.dim, learner.state = before
            raise
        if new:
            journal.add_arms({name: learner.numbers[name] for name in new})
        if before[2] is None:  # which settles the numbers of arms and features
            features = "no" if offer.vectors is None else "yes"
            about = {"arms": str(learner.first_arms), "dim": str(learner.dim)}
            journal.set_meta(**about, features=features)

    def _catch_up(self, outcomes: int) -> None:
        """Learn new outcomes."""
        learner = self.learner
        backlog = outcomes - learner.learned
        if backlog <= 0:
            return
        if learner.state is None:
            self._restore()
        elif backlog > _FAR:
            jump(learner, self.journal)
        stop = min(outcomes, self.learner.learned + AT_ONCE)
        self._broken = True  # an error in the middle leaves half an outcome
        replay(self.learner, self.journal, stop, offer=self._offers)
        self._broken = False

    def save(self, batch: Batch) -> None:
        """Store the alarms of a policy that is `Vigilant`, and a snapshot from time to time."""
        if self.learner.alarms:
            self._note_alarms(batch.now)
        learned = self.learner.learned
        if learned >= self._save_at and self.learner.state is not None:
            self._save_at = _next_save(*self.journal.last_snapshot(self.number))
            if learned >= self._save_at:  # nobody else has saved meanwhile
                packed = self.learner.to_bytes()
                self.journal.add_snapshot(learned, self.number, packed)
                self._save_at = _next_save(learned, len(packed))

    def _note_alarms(self, now: float) -> None:
        """Write each restart of the policy once, whichever worker sees it first."""
        notes = [note.text for note in self.journal.notes() if note.kind == "alarm"]
        known = {(text["recipe"], text["outcome"]) for text in notes}
        new = [alarm for alarm in self.learner.alarms if (self.number, alarm[0]) not in known]
        for outcome, arm in new:
            text = {"arm": arm, "outcome": outcome, "recipe": self.number}
            self.journal.add_note("alarm", text, now)
        self.learner.alarms = new  # until they are seen in the journal: this may be rolled back

    def _note(self, kind: str, arm: str | None = None, **more: str) -> None:
        """Write a note, such as a pause; every agent on the journal sees it."""

        def write() -> None:
            now = self._read().now
            self._load()
            if kind == "drop" and arm in self.dropped:
                return
            if arm is not None:
                self._check_arm(kind, arm)
            text = ({} if arm is None else {"arm": arm}) | more
            self.journal.add_note(kind, text, now)
            self._load()

        with self.alone():
            self._transact(write)

    def _check_arm(self, kind: str, arm: str) -> None:
        """Raise ``ValueError`` if an arm cannot be dropped, or be the one that everyone gets."""
        known = set(self.recipe.arms or ()) | self.learner.numbers.keys()
        if arm not in known or arm in self.dropped:
            left = ", ".join(sorted(known - self.dropped)[:10])
            raise ValueError(f"arm must be one of this experiment ({left}), got {arm!r}")
        if kind != "drop":
            return
        if arm in (self.fixed, self.recipe.control and self.recipe.control[0]):
            raise ValueError(f"cannot drop {arm!r}: everyone or the control group gets it")
        if self.learner.state is not None and self.learner.whole:
            raise ValueError(
                f"{self.learner.kind} needs all arms in every offer: begin a new journal "
                f"without {arm!r}"
            )

    # ---- the recipe, and restoring what was learned

    def _open(self, wanted: Policy[Any] | Recipe, given: Rules, *, change: bool) -> bool:
        """Read or store the recipe, and return whether it replaced another recipe."""
        journal, known = self.journal, self.journal.recipes()
        now = self._read().now
        if not known:
            self.recipe = Recipe(policy="", seed=0).altered(wanted, given)
            journal.set_meta(version=version("tailproof"))
            self.number = journal.add_recipe(self.recipe.text, self.recipe.rules, now)
            return False
        *_, (self.number, policy, rules, _, _) = known
        text = repr(wanted.policy if isinstance(wanted, Recipe) else wanted)
        old = Recipe.of(policy, rules)
        self.recipe = old.altered(wanted, given)
        rules_differ = self.recipe.difference(old)
        if text == policy and not rules_differ:
            return False
        if not change:
            other = "" if text == policy else f"policy {text}, not {policy}; "
            yours = (other + rules_differ).removesuffix("; ")
            raise ValueError(
                f"the journal belongs to {policy}, and its recipe differs: you gave {yours}. Leave "
                "rules out that shall stay; or let the new recipe learn the outcomes and take over "
                "with `tailproof change FILE EXPERIMENT` or Agent(…, change=True); or use a new "
                "journal"
            )
        self._change(old, now)
        return True

    def _change(self, old: Recipe, now: float) -> None:
        """Let this recipe take over, unless its policy cannot learn the journal's outcomes."""
        journal, meta, new = self.journal, self.journal.meta(), self.recipe
        if meta.get("features") == "no":  # room for the arms that came later
            room = max(int(meta["dim"]), len(journal.arms()), new.dim or 0)
            self.recipe = new = replace(new, dim=room)
        self.number = journal.add_recipe(new.text, new.rules, now)
        text = {"from": old.text, "to": new.text, "rules": new.difference(old)}
        journal.add_note("change", text, now)
        try:
            self._restore()
        except (RuntimeError, ValueError) as error:
            raise ValueError(f"{new.text} cannot take over from {old.text}: {error}") from error

    def _restore(self) -> None:
        """Learn all outcomes of the journal."""
        policy: Any = self.recipe.policy
        self.learner = restored(policy, self.journal, self.number)
        self._broken = False

    def _load(self) -> None:
        """Read the journal again: at the start, after errors, and after notes such as a change."""
        journal, numbers = self.journal, self.journal.arms()
        *_, (number, policy, rules, _, _) = journal.recipes()
        undone = not self.learner.numbers.items() <= numbers.items()
        if undone or self._broken or number != self.number:
            recipe = Recipe.of(self.policy if policy == self.recipe.text else policy, rules)
            if isinstance(recipe.policy, str):
                raise RuntimeError(
                    f"the recipe of this experiment was replaced by {policy}, which cannot be "
                    "built from its text: start this process again with that policy"
                )
            self.recipe, self.number = recipe, number
            self._restore()
        self.learner.know(numbers)
        self.accepted.clear()
        self._offers = offers(journal)
        self._save_at = _next_save(*journal.last_snapshot(self.number))
        self._notes, self.dropped, self.fixed = 0, frozenset[str](), None
        for note in journal.notes():
            self._notes = note.number + 1
            if note.kind == "drop":
                self.dropped |= {note.text["arm"]}
            elif note.kind in ("fix", "resume"):
                self.fixed = note.text.get("arm")
        self._stale = False


def _next_save(learned: int, size: int) -> int:
    """Return the number of outcomes at which the next snapshot is saved; `size` is the last's."""
    return learned + max(_LEAST_APART, size // _BYTES_AN_OUTCOME)
