"""Past decisions as the first outcomes of a journal."""

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import repeat
from operator import attrgetter
from typing import Any

import numpy as np

from tailproof.formatting import moment
from tailproof.live.agent import Agent
from tailproof.live.export import Log
from tailproof.live.journal import Batch, Journal, Request, open_journal
from tailproof.live.learner import packed
from tailproof.live.offer import Offer
from tailproof.live.ordering import as_orderer
from tailproof.live.replay import offers
from tailproof.tables import Records, records
from tailproof.tables.journals import is_journal
from tailproof.typing import Array, Index

__all__ = ["HISTORY", "Imported", "import_history"]

HISTORY = "history"
"""The group of imported decisions."""
Progress = Callable[..., None] | None
"""Called with steps done, steps in all, and the task."""
_ERRORS = 4.0
"""Standard errors by which inverse propensities may fall short of the number of rows; by
chance, one history in 16 000 leaves out an arm."""
_STEP = 5000
"""Rows that are written between two steps of the progress bar."""
_OVER = ("told", "silent", "learned")
"""The status of requests whose reward is final; "learned" in exports of tailproof 0.3."""


@dataclass(frozen=True)
class Imported:
    """What an import did.

    Attributes
    ----------
    rows : int
        Rows of the history.
    learned : int
        Rows that the policy has learned.
    sentences : tuple of str
        What was left out or assumed, and why.
    """

    rows: int
    learned: int
    sentences: tuple[str, ...]


@dataclass
class _Past:
    """Past decisions in the order of time; offers are numbered.

    `propensity`, `shares` (of every arm of the offer) and `at` (seconds since 1970) may be None.
    `features` has the names of the visitors' features.
    """

    names: tuple[str, ...]
    arm: Index
    reward: Array
    offers: list[Offer]
    offer: Index
    propensity: Array | None
    shares: Array | None
    at: Array | None
    features: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.arm)

    def take(self, rows: Any) -> "_Past":
        some = ("arm", "reward", "offer", "propensity", "shares", "at")
        parts = {name: getattr(self, name) for name in some}
        return replace(self, **{name: x[rows] for name, x in parts.items() if x is not None})

    @property
    def digest(self) -> str:
        """What tells this history from others."""
        names = "\0".join(self.names[number] for number in np.unique(self.arm))
        hasher = hashlib.blake2b(names.encode(), digest_size=8)
        for part in (self.arm, self.reward, self.at):
            if part is not None:
                hasher.update(part.tobytes())
        return hasher.hexdigest()


def import_history(
    agent: Agent,
    history: Any = None,
    *,
    as_is: bool = False,
    source: str = "a table",
    progress: Progress = None,
    **columns: Any,
) -> Imported:
    """Let an agent learn past decisions, as outcomes of its journal, so that it starts warm.

    A row is a decision with its final reward. Rows are numbered after the outcomes that the journal
    has, in one transaction, and learned in this order; a policy that takes several rewards waits
    for as many rows of the same arm and features. A policy that does not see the features learns a
    row of arm a with probability min p_a / p, so that the rows of an arm match visitors drawn
    at random; an arm without a chance for some visitors is left out.

    Parameters
    ----------
    agent : Agent
    history : Records, path, data frame, Log or Journal, optional
        Another journal, or a table of decisions, see `tailproof.records`; None: only arrays.
    **columns :
        The columns of the table, as in `tailproof.records`. Features of visitors are crossed with
        the arms in the order of ``arms=`` (`tailproof.features`), or shared in a "context" view.
    as_is : bool
        Learn every row: right if choices did not depend on the visitor. A journal without features
        is always learned as it is.
    source : str
        Where the rows come from, for the note in the journal.
    progress : callable, optional
        Called with steps done, steps in all, and the task.

    Examples
    --------
    >>> from tailproof import UCB1
    >>> from tailproof.live import Agent
    >>> agent = Agent(UCB1(), ":memory:")
    >>> found = import_history(agent, arm=["red", "blue"] * 50, reward=[0, 1] * 50)
    >>> found.learned, agent.learner.state.counts.tolist(), agent.verify().ok
    (100, [[50, 50]], True)
    >>> agent.ask(["red", "blue"]).arm
    'blue'

    Source: thinning as in Li, Chu, Langford and Wang 2011. Differences: any propensities.
    """
    past, blind = _past(agent, history, columns)
    _check_times(past, agent)
    count, digest, notes = len(past), past.digest, list[str]()
    sees = agent.learner.uses_vectors and past.offers[0].vectors is not None
    if not as_is and not blind and not sees and past.propensity is not None:
        past = _even(past, past.propensity, agent, notes)
    _assume_propensities(past, agent, notes)
    _check_groups(past, agent)
    before = _waiting(agent)
    text = {"rows": count, "source": source, "digest": digest, "outcomes": len(past)}
    with agent.alone():
        _write(agent, past, text, notes, progress)
    waiting = _learn_all(agent, notes, progress)
    return Imported(count, len(past) + before - waiting, tuple(notes))


def _learn_all(agent: Agent, notes: list[str], progress: Progress) -> int:
    """Learn the rows written; return how many wait for others of the same arm."""
    while not agent.tick():
        if progress is not None:
            progress(agent.learner.learned, agent.journal.outcome_count(), "outcomes learned")
    waiting = _waiting(agent)
    if waiting:
        notes.append(
            f"{waiting} rows wait: the policy takes {agent.policy.pulls} rewards of the same arm "
            "and features at a time."
        )
    return waiting


def _check_times(past: _Past, agent: Agent) -> None:
    """Refuse decisions of the future."""
    now = agent.journal.now()
    if past.at is not None and past.at.max() > now:
        row = int((past.at > now).argmax())
        raise ValueError(f"the time of row {row + 1} is in the future: {moment(past.at[row])}")


def _assume_propensities(past: _Past, agent: Agent, notes: list[str]) -> None:
    """Say that propensities are missing; a policy that weighs is given the shares of arms."""
    if past.propensity is not None:
        return
    notes.append(
        "There are no propensities: rows are learned as they are, which is right if arms were "
        "drawn at random."
    )
    if agent.policy._weighs:
        shares = np.bincount(past.arm, minlength=len(past.names)) / len(past)
        past.propensity = shares[past.arm]
        notes.append("This policy weighs by them: each is taken to be the share of its arm.")


def _past(agent: Agent, history: Any, columns: dict[str, Any]) -> tuple[_Past, bool]:
    """Return the history, and whether choices cannot have depended on visitors."""
    if isinstance(history, Journal | Log) or is_journal(history):
        journal = history.journal if isinstance(history, Log) else open_journal(history, make=False)
        try:
            past = _of_journal(journal, agent)
        finally:
            if journal is not history and not isinstance(history, Log):
                journal.close()
        return past, all(offer.vectors is None for offer in past.offers)
    read: Any = {"missing": "refuse", "group": None, "unit": None}
    log = records(
        history, rows=True, **(columns if isinstance(history, Records) else read | columns)
    )
    if log.status is not None:  # the log of a journal
        log = log.take(np.flatnonzero(np.isin(log.status.astype(str), _OVER)))
    return _of_table(log, agent), log.status is not None and log.features is None


def _of_table(log: Records, agent: Agent) -> _Past:
    """Return the final outcomes of a table, in the order of time."""
    unknown = np.isnan(log.reward)
    if unknown.any():
        raise ValueError(
            f"row {int(unknown.argmax()) + 1} has no reward: rewards of a history are final, so "
            "write 0 where nothing came, or remove the row"
        )
    offers, offer = _offers(log, agent)
    shares = log.propensities
    if shares is not None and not np.allclose(shares.sum(axis=1), 1, atol=1e-6):
        shares = None  # of an arm that does not occur
    named = agent.policy.view == "context" and log.names[:1] != ("x0",)
    features = log.names if named else ()
    about = (log.propensity, shares, log.time, features)
    return _Past(log.arms, log.arm, log.reward, offers, offer, *about)


def _offers(log: Records, agent: Agent) -> tuple[list[Offer], Index]:
    """Return the offers, and the number of each row's."""
    names = log.arms
    order = sorted(range(len(names)), key=lambda i: names[i])
    ordered = tuple(names[i] for i in order)
    view, k = agent.policy.view, len(names)
    plain = Offer.of(ordered)
    if view == "arms" or log.features is None:
        return [plain], np.zeros(log.n, np.int64)
    values, offer = np.unique(log.features, axis=0, return_inverse=True)
    if view == "context":
        vectors = np.broadcast_to(values[:, None, :], (len(values), k, values.shape[1]))
    else:
        lifted = np.concatenate([np.ones((len(values), 1)), values], axis=1)
        crossed = np.einsum("ab,nf->nabf", np.eye(k), lifted).reshape(len(values), k, -1)
        vectors = crossed[:, order]
    return [Offer(ordered, x) for x in vectors], offer.reshape(-1)


def _of_journal(journal: Journal, agent: Agent) -> _Past:
    """Return the final outcomes of another journal, in the order of time."""
    numbers, kept, offer_of = dict[bytes, int](), list[Offer](), offers(journal)
    ended = journal.outcomes(journal.first(), journal.outcome_count())
    rows = sorted((row for row in ended if row.reward is not None), key=attrgetter("asked"))
    if not rows:
        raise ValueError("the journal has no outcomes yet: there is nothing to import")
    offered = list[int]()
    for row in rows:
        offer = offer_of(row.offer)
        offer = offer if agent.learner.uses_vectors else Offer.of(offer.names)
        if offer.key not in numbers:
            kept.append(offer)
        offered.append(numbers.setdefault(offer.key, len(numbers)))
    shares = [row.propensity for row in rows]
    return _Past(
        names=tuple(journal.arms()),
        arm=np.array([row.arm for row in rows]),
        reward=np.array([row.reward for row in rows], dtype=np.float64),
        offers=kept,
        offer=np.array(offered),
        propensity=None if None in shares else np.array(shares, dtype=np.float64),
        shares=None,
        at=np.array([row.asked for row in rows]),
    )


def _even(past: _Past, p: Array, agent: Agent, notes: list[str]) -> _Past:
    """Thin the rows of each arm, of propensities `p`, to match uniformly drawn visitors."""
    rng = np.random.default_rng([agent.learner.seed, agent.journal.outcome_count()])
    kept = np.zeros(len(past), dtype=np.bool_)
    for number, name in enumerate(past.names):
        rows = np.flatnonzero(past.arm == number)
        if not len(rows):
            continue
        n = np.array([name in offer.names for offer in past.offers])[past.offer].sum()
        total, propensity = (1 / p[rows]).sum(), p[rows]
        error = math.sqrt(((1 - propensity) / propensity**2).sum())
        if total < n - _ERRORS * error - 1:
            notes.append(
                f"The {len(rows)} rows of {name} are left out: by their propensities it had no "
                f"chance for about {1 - total / n:.0%} of the visitors, so that they cannot stand "
                "for all."
            )
            continue
        kept[rows] = rng.random(len(rows)) * propensity < propensity.min()
    if not kept.any():
        raise ValueError(
            "every arm had no chance for some visitors: import features, for a policy that uses "
            "them, or everything as it is (as_is, --as-is) if choices did not depend on visitors"
        )
    left = np.isin(past.arm, np.unique(past.arm[kept])) & ~kept
    if left.any():
        notes.append(
            f"{kept.sum()} of {kept.sum() + left.sum()} rows are learned: those with a large "
            "propensity are thinned, so that the rows of an arm match visitors drawn at random."
        )
    return past.take(kept)


def _check_groups(past: _Past, agent: Agent) -> None:
    """Raise ``ValueError`` if features never repeat often enough for an update."""
    pulls = agent.policy.pulls
    if pulls > 1 and agent.learner.uses_vectors:
        most = int(np.bincount(past.offer * len(past.names) + past.arm).max())
        if most < pulls:
            raise ValueError(
                f"this policy takes {pulls} rewards of the same arm and features at a time, and "
                f"the history has at most {most}"
            )


def _waiting(agent: Agent) -> int:
    """Return how many rewards are too few for an update."""
    return sum(len(rewards) for rewards in agent.learner.left.values())


def _write(
    agent: Agent,
    past: _Past,
    text: dict[str, Any],
    notes: list[str],
    progress: Progress,
) -> None:
    """Write a history to the journal of an agent, as the next outcomes."""
    journal = agent.journal

    def write(read: Batch) -> None:
        for note in journal.notes():
            if note.kind == "import" and note.text["digest"] == text["digest"]:
                raise ValueError(
                    f"these rows are in the journal already: they were imported from "
                    f"{note.text['source']} on {moment(note.at)}, and would count twice"
                )
        first = not journal.arms()
        for offer in past.offers:
            with agent.numbering(offer):
                pass
        if first and past.features:
            journal.set_meta(names=json.dumps(past.features))
        _write_rows(agent, past, read, progress)
        journal.add_note("import", text | {"first": read.outcomes}, read.now)

    before = journal.outcome_count()
    as_orderer(journal, write)
    if before:
        notes.append(
            f"The journal has {before} outcomes already: the rows count as if they had come now."
        )


def _write_rows(agent: Agent, past: _Past, read: Batch, progress: Progress) -> None:
    journal, numbers, last = agent.journal, agent.learner.numbers, read.last
    ids = dict[bytes, int]()
    for start in range(0, len(past.offers), _STEP):
        ids |= journal.offer_ids([offer.key for offer in past.offers[start : start + _STEP]])
    columns = (past.arm, past.offer, past.reward, past.propensity, past.shares, past.at)
    for start in range(0, len(past), _STEP):
        stop = min(start + _STEP, len(past))
        part: Any = [
            repeat(None, stop - start) if column is None else column[start:stop].tolist()
            for column in columns
        ]
        requests, outcomes = [], []
        for arm, offered, reward, share, shares, at in zip(*part, strict=True):
            last, offer = journal.new_id(last), past.offers[offered]
            if offer.key not in ids:
                ids[offer.key] = last
                journal.add_offer(last, offer.key, *offer.row())
            if shares is not None:
                shares = packed([shares[past.names.index(name)] for name in offer.names])
            time, number = read.now if at is None else at, numbers[past.names[arm]]
            about = (last, None, None, time, time, agent.number)
            requests.append((*about, ids[offer.key], number, share, shares, HISTORY, 0, None, 0))
            outcomes.append((Request(*about, number, share, HISTORY, 0), reward, "told"))
        journal.add_requests(requests)
        journal.add_outcomes(outcomes, read.now, read.outcomes + start)
        if progress is not None:
            progress(stop, len(past), "rows written")
