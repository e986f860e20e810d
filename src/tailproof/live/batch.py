"""The acts of one transaction: deciding, and the rows to write."""

import math
from typing import TYPE_CHECKING, Any

from tailproof.live.acts import Act, Ask, Status, Tell, Ticket
from tailproof.live.journal import BEFORE, CANCELLED, Batch, Request, own_id
from tailproof.live.learner import certain, draws, packed
from tailproof.live.offer import Offer
from tailproof.live.ordering import AT_ONCE, order

if TYPE_CHECKING:
    from tailproof.live.agent import Agent

__all__ = ["do", "group_of", "write"]

_DUE_EVERY = 0.02
"""Seconds after which due requests are read again, where nobody else may order."""
_NEVER_TWICE = 100
"""After this many new offers in a row, none is expected to repeat."""
_STRANGE = 10_000
"""Offers that are remembered as new."""
_SUMMED = 1e100
"""Ignored rewards beyond this size are counted but not summed, so that no sum overflows."""
_ACCEPTED = 4096
"""Offers without features that are remembered as accepted."""
_Chosen = tuple[str | None, int | None, int, float | None, str | None]
"""Group, the request that is repeated, arm, propensity and the shares of all arms."""
_NONE: Any = (None,) * 6
"""In place of an earlier request that the policy or the control group decided."""


def do(agent: "Agent", batch: Batch, act: Act) -> Ticket | Status | ValueError:
    """Do one act; a refused act leaves the others as they are."""
    try:
        if isinstance(act, Ask):
            return _ask(agent, batch, act)
        if isinstance(act, Tell):
            return _tell(agent, batch, act)
        return _cancel(batch, act.ticket)
    except ValueError as refusal:
        return refusal


def write(agent: "Agent", batch: Batch) -> None:
    """Write the rows, and number outcomes if nobody else does so just now."""
    journal, now = agent.journal, batch.now
    if not batch.orders:
        batch.due.extend((now, request.id) for request in batch.ready)
    journal.write(batch)
    if batch.orders:
        read_due = not 0 <= now - agent.due_read < _DUE_EVERY or not journal.serial
        if read_due or batch.ready:
            order(journal, agent.recipe_of, batch, AT_ONCE if read_due else 0)
        if read_due:
            agent.due_read = now
        agent.save(batch)


# ---- asks


def _ask(agent: "Agent", batch: Batch, ask: Ask) -> Ticket:
    ticket = ask.ticket
    if ticket is not None:
        request = batch.requests.get(ticket)
        if request is not None:
            return Ticket(ticket, agent.name(request.arm), request.propensity)
        if ticket[0] == "#" and own_id(ticket) is not None:
            raise ValueError(
                f"ticket {ticket!r} is reserved for ids that the agent generates: use another, "
                f"such as 'v{ticket[1:]}'"
            )
    known = agent.accepted.get(ask.offer.key)
    if known is None:
        return _ask_first(agent, batch, ask)
    id_ = agent.journal.new_id(batch.last)
    return _store(agent, batch, ask, id_, known[1], _choose(agent, batch, id_, ask, known))


def _ask_first(agent: "Agent", batch: Batch, ask: Ask) -> Ticket:
    """Answer an ask whose offer may be new; store the offer and its arms if they are."""
    journal, offer = agent.journal, _offered(agent, ask.offer)
    even, number = agent.recipe.even(offer), _offer_id(agent, batch, offer)
    with agent.numbering(offer):
        id_ = journal.new_id(batch.last)
        known = (offer, id_ if number is None else number, even)
        chosen = _choose(agent, batch, id_, ask, known)
    if number is None:
        journal.add_offer(id_, offer.key, *offer.row())
    if offer.vectors is not None:  # it may be pruned later
        batch.offers[offer.key] = known[1]
    else:
        if len(agent.accepted) >= _ACCEPTED:
            agent.accepted.clear()
        agent.accepted[ask.offer.key] = known
    return _store(agent, batch, ask, id_, known[1], chosen)


def _offered(agent: "Agent", asked: Offer) -> Offer:
    """Return an offer as the policy sees it, without dropped arms."""
    offer, arms = asked, agent.recipe.arms
    if not agent.dropped.isdisjoint(offer.names):
        left = [i for i, name in enumerate(offer.names) if name not in agent.dropped]
        if not left:
            raise ValueError(f"all arms on offer were dropped: {list(asked.names)}")
        offer = offer.among(left)
    if arms is not None and not set(arms).issuperset(offer.names):
        foreign = [name for name in offer.names if name not in arms]
        raise ValueError(
            f"{foreign} are not among the arms of this experiment: leave them out of the offer, "
            "list them, or let it be open to new arms"
        )
    return offer if agent.learner.uses_vectors else Offer.of(offer.names)


def _offer_id(agent: "Agent", batch: Batch, offer: Offer) -> int | None:
    """Return the id of an offer, None if it is new; refuse an offer that is never learned."""
    number, pulls = batch.offers.get(offer.key), agent.policy.pulls
    if number is None:
        number = agent.journal.offer_ids([offer.key]).get(offer.key)
    if pulls == 1 or offer.vectors is None:
        return number
    if number is not None or offer.key in agent.strange:
        agent.strange.clear()
        return number
    agent.strange[offer.key] = None
    if len(agent.strange) > _STRANGE:
        agent.strange.pop(next(iter(agent.strange)))
    if len(agent.strange) > _NEVER_TWICE:
        raise ValueError(
            f"this policy needs offers that repeat, as it takes {pulls} rewards of the same arm "
            "and features at a time; recent offers all differed. Use LinStudentUCB, which learns "
            "from single rewards"
        )
    return number


def _choose(
    agent: "Agent", batch: Batch, id_: int, ask: Ask, known: tuple[Offer, int, float]
) -> _Chosen:
    """Choose an arm for a request; `known` has its offer, the offer's id and even shares."""
    offer, number, even = known
    control, fixed, group = agent.recipe.control, agent.fixed, None
    if fixed is not None and fixed in offer.names:
        return "fixed", None, agent.learner.numbers[fixed], 1.0, packed(certain(offer, fixed))
    if control is not None:
        group = group_of(agent.learner.seed, id_, ask.unit, control, offer)
    if ask.unit is not None:
        earlier, was, share, shares, its, decided = batch.units.get(ask.unit, _NONE)
        if earlier is not None and decided == group:
            name = agent.name(was)
            if name in offer.names if group is None else name == control[0]:  # type: ignore[index]
                return group, earlier, was, share, shares if its == number else None
    place, every = agent.learner.choose(id_, offer, even, control, group)
    arm = agent.learner.numbers[offer.names[place]]
    return group, None, arm, None if every is None else every[place], packed(every)


def _store(
    agent: "Agent", batch: Batch, ask: Ask, id_: int, number: int, chosen: _Chosen
) -> Ticket:
    """Keep a new request, for the journal and for later acts of the batch."""
    group, repeats, arm, share, shares = chosen
    unit, now, after = ask.unit, batch.now, agent.learner.learned
    ends = now + float(agent.recipe.wait)
    again = int(unit in batch.units)
    asked = id_, ask.ticket, unit, now, ends, agent.number
    batch.asked.append((*asked, number, arm, share, shares, group, again, repeats, after))
    ticket = f"#{id_}" if ask.ticket is None else ask.ticket
    batch.requests[ticket] = Request(*asked, arm, share, group, again)
    if unit is not None and group != "fixed":
        batch.units[unit] = (id_, arm, share, shares, number, group)
    elif unit is not None:
        batch.units.setdefault(unit, _NONE)
    if ticket in batch.gone:
        _cancel(batch, ticket)
    else:
        batch.due.append((ends + agent.journal.GRACE, id_))
    return Ticket(ticket, agent.learner.names[arm], share)


def group_of(seed: int, id_: int, unit: str | None, control: Any, offer: Offer) -> str | None:
    """Return "control" if a request belongs to the control group; all of a unit do, or none."""
    if control is None or control[0] not in offer.names:
        return None
    draw = draws(seed, id_)[1] if unit is None else draws(seed, "unit", unit)[1]
    return "control" if draw < control[1] else None


# ---- tells and cancellations


def _tell(agent: "Agent", batch: Batch, tell: Tell) -> Status:
    request, name, reward = batch.requests.get(tell.ticket), tell.event or "", tell.reward
    if request is None:
        _ignore(batch, "unknown", reward)
        return "unknown"
    events = request.events
    if CANCELLED in events:
        return "cancelled"
    recipe = agent.recipe_of(request.recipe)
    if events and (name in events or recipe.rewards == "first"):
        known = events.get(name) or next(iter(events.values()))
        same = known[0] == reward and (name in events or not name)
        _ignore(batch, "repeated" if same else "second", reward)
        return "duplicate"
    if recipe.rewards == "sum" and math.isinf(reward):
        raise ValueError(f"a reward that is added to others must be finite, got {reward}")
    late = int(request.why is not None or batch.now > request.ends)
    events[name] = (reward, batch.now, late)
    batch.told.append((request.id, name, reward, batch.now, late))
    if late:
        return "late"
    if recipe.at_once:
        batch.ready.append(request)
    return "kept"


def _ignore(batch: Batch, why: str, reward: float) -> None:
    """Count a reward that is not stored; huge rewards do not enter the sum."""
    count, total = batch.ignored.get(why, (0, 0.0))
    batch.ignored[why] = count + 1, total + (reward if abs(reward) < _SUMMED else 0.0)


def _cancel(batch: Batch, ticket: str) -> Status:
    request = batch.requests.get(ticket)
    if request is None:
        if ticket not in batch.gone and own_id(ticket) is None:
            batch.gone.add(ticket)
            batch.told.append((BEFORE, ticket, 0.0, batch.now, 0))
        return "unknown"
    if CANCELLED not in request.events:
        if request.events or request.why is not None:
            return "late"
        request.events[CANCELLED] = (0.0, batch.now, 0)
        batch.told.append((request.id, CANCELLED, 0.0, batch.now, 0))
        batch.ready.append(request)
    return "cancelled"
