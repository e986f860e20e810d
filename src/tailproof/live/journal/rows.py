"""Rows of a journal as they are read, and the checksum of a row."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from math import nan
from struct import pack
from typing import Any, NamedTuple

__all__ = [
    "BEFORE",
    "CANCELLED",
    "LARGE",
    "PAGE",
    "Batch",
    "ConflictError",
    "Note",
    "Outcome",
    "Request",
    "own_id",
    "sealed_event",
    "sealed_outcome",
]

CANCELLED = "\n"
"""The name of the event of a cancellation; names of rewards are printable."""
LARGE = 2.0**64
"""Rewards are divided by this before PostgreSQL adds them: it refuses a sum beyond all floats."""
PAGE = -1
"""In place of the number of a recipe, for the snapshot of the page's counts."""
BEFORE = -1
"""The request of a ticket that was cancelled before it was asked for; the event has its name."""


class ConflictError(Exception):
    """Another worker stored the same ticket, event, offer or outcome first; try again."""


class Note(NamedTuple):
    """A change of an experiment, such as an arm that was dropped."""

    number: int
    at: float
    kind: str
    text: dict[str, Any]


class Outcome(NamedTuple):
    """An outcome with its request; `again` says whether its unit had a request before."""

    number: int
    reward: float | None
    why: str
    arm: int
    offer: int
    propensity: float | None
    shares: str | None
    group: str | None
    recipe: int
    asked: float
    again: int
    unit: str | None


class Batch(NamedTuple):
    """What the acts of one transaction read at its start, and the rows that they lead to.

    Read are the numbers of `outcomes` and `notes` so far, the id of the `last` request, whether the
    transaction may number outcomes (`orders`), the time (`now`), the `requests` that exist by
    ticket, for `units` the latest request that the policy or the control group decided (id, arm,
    propensity, shares, offer and group; all None if there were only others), the ids of `offers` by
    digest, and tickets that were cancelled before they were asked for (`gone`).

    Written are rows of requests (`asked`), events (`told`) and `due` requests, the outcomes of
    requests that are `ready`, and how many rewards are `ignored`, with their sum, by the reason.
    """

    outcomes: int
    notes: int
    last: int | None
    orders: bool
    now: float
    requests: "dict[str, Request]"
    units: dict[str, tuple[Any, ...]]
    offers: dict[bytes, int]
    gone: set[str]
    asked: list[tuple[Any, ...]]
    told: list[tuple[int, str, float, float, int]]
    due: list[tuple[float, int]]
    ready: "list[Request]"
    ignored: dict[str, tuple[int, float]]


@dataclass(slots=True, eq=False)
class Request:
    """What the outcome of a request is computed from.

    `again` is 1 if its unit had a request before. `why` is the kind of its outcome, None for a
    pending request; `events` are (value, time, late) by name.
    """

    id: int
    ticket: str | None
    unit: str | None
    at: float
    ends: float
    recipe: int
    arm: int
    propensity: float | None
    group: str | None
    again: int
    why: str | None = None
    events: dict[str, tuple[Any, ...]] = field(default_factory=dict)


def seal(chain: int, numbers: Sequence[float], texts: Sequence[str | None]) -> int:
    """Return a checksum of a row and of the seal before it, so that `verify` notices a change.

    >>> seal(17, [0.5], ["a", None]) == seal(17, [0.5], ["a", None]) != seal(17, [0.25], ["a"])
    True
    """
    packed = pack(f"<q{len(numbers)}d", chain, *numbers)
    digest = blake2b(packed + repr(texts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def sealed_event(request: int, name: str, value: float, at: float, late: int) -> int:
    """Return the seal of an event."""
    return seal(0, (request, value, at, late), [name])


def sealed_outcome(
    chain: int, number: int, request: Request, reward: float | None, why: str, at: float
) -> int:
    """Return the seal of an outcome, its request and the events that were not late."""
    share = nan if request.propensity is None else request.propensity
    counted = nan if reward is None else reward
    numbers = [number, request.id, request.at, request.ends, request.recipe, request.arm, share]
    numbers += (request.again, counted, at)
    texts = [request.ticket, request.unit, request.group, why]
    for name, (value, told, late) in sorted(request.events.items()):
        if not late:
            numbers += (value, told)
            texts.append(name)
    return seal(chain, numbers, texts)


def own_id(ticket: str) -> int | None:
    """Return the request of a ticket that the agent named itself, such as "#17".

    >>> own_id("#17"), own_id("visit 17")
    (17, None)
    """
    number = ticket[1:]
    from_agent = ticket[:1] == "#" and number.isascii() and number.isdecimal() and len(number) < 19
    return int(number) if from_agent else None
