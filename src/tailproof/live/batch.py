"""The acts of one transaction: reading, deciding and writing."""

import math
from typing import TYPE_CHECKING, Any

from tailproof.live.acts import Act, Ask, Status, Tell, Ticket
from tailproof.live.journal import BEFORE, CANCELLED, BatchRead, Request, own_id
from tailproof.live.learner import certain, draws, packed
from tailproof.live.offer import Offer
from tailproof.live.ordering import order

if TYPE_CHECKING:
    from tailproof.live.agent import Agent

__all__ = ["AT_ONCE", "Batch", "group_of"]

AT_ONCE = 256
"""Outcomes that are numbered, and that are learned, in one transaction at most."""
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

_NONE = (None,) * 6
"""In place of an earlier request that the policy or the control group decided."""


class Batch:
    """Asks, tells and cancellations within one transaction, and the rows that they lead to.

    Parameters
    ----------
    agent : Agent
    read : BatchRead
        What was read at the start.
    """

    def __init__(self, agent: "Agent", read: BatchRead) -> None:
        self.agent, self.read, self.now = agent, read, agent.now(read)
        self.requests: list[tuple[Any, ...]] = []
        self.events: list[tuple[int, str, float, float, int]] = []
        self.due: list[tuple[float, int]] = []
        self.ready: list[Request] = []
        self.ignored: dict[str, tuple[int, float]] = {}

    def do(self, act: Act) -> Ticket | Status | ValueError:
        """Do one act; a refused act leaves the others as they are."""
        try:
            if isinstance(act, Ask):
                return self._ask(act)
            return self._tell(act) if isinstance(act, Tell) else self._cancel(act.ticket)
        except ValueError as refusal:
            return refusal

    def write(self) -> None:
        """Write the rows, and number outcomes if nobody else does so just now."""
        agent, journal, now = self.agent, self.agent.journal, self.now
        if self.requests:
            journal.add_requests(self.requests)
        if self.events:
            journal.add_events(self.events)
        if not self.read.orders:
            self.due += [(now, request.id) for request in self.ready]
        if self.due:
            journal.add_due(self.due)
        if self.ignored:
            journal.add_ignored(self.ignored)
        if self.read.orders:
            read_due = not 0 <= now - agent.due_read < _DUE_EVERY or not journal.serial
            if read_due or self.ready:
                most = AT_ONCE if read_due else 0
                order(journal, agent.recipe_of, (now, self.read.outcomes), most, self.ready)
            agent.due_read = now if read_due else agent.due_read
            agent.save(self.read)

    # ---- asks

    def _ask(self, ask: Ask) -> Ticket:
        agent, read, ticket = self.agent, self.read, ask.ticket
        if ticket is not None:
            request = read.requests.get(ticket)
            if request is not None:
                return Ticket(ticket, agent.name(request.arm), request.propensity)
            if ticket[0] == "#" and own_id(ticket) is not None:
                raise ValueError(
                    f"ticket {ticket!r} is reserved for ids that the agent generates: use another, "
                    f"such as 'v{ticket[1:]}'"
                )
        known = agent.accepted.get(ask.offer.key)
        if known is None:
            id_, offer, number, group, repeats, arm, shares = self._met(ask)
        else:
            offer, number, even = known
            id_ = agent.journal.new_id(read.last)
            group, repeats, arm, shares = self._chosen(id_, ask, offer, even)
        if repeats is None:
            earlier, text = None, packed(shares)
            share = None if shares is None else shares[arm]
        else:  # id, arm, propensity, shares, offer and group of the request that is repeated
            earlier, _, share, text, its, _ = repeats
            text = text if its == number else None
        return self._stored(ask, (id_, number, offer.names[arm], share, text, group, earlier))

    def _stored(self, ask: Ask, chosen: tuple[Any, ...]) -> Ticket:
        """Keep a new request, for the journal and for later acts of the batch."""
        id_, number, name, share, text, group, earlier = chosen
        read, agent, now = self.read, self.agent, self.now
        learner, ends = agent.learner, now + float(agent.recipe.wait)
        arm, ticket = learner.numbers[name], ask.ticket
        asked = id_, ticket, ask.unit, now, ends, agent.number
        again = int(ask.unit in read.units)
        decided = (arm, share, text, group, again, earlier, learner.learned)
        self.requests.append((*asked, number, *decided))
        ticket = f"#{id_}" if ticket is None else ticket
        read.requests[ticket] = Request(*asked, arm, share, group, again)
        if ask.unit is not None and group != "fixed":
            read.units[ask.unit] = (id_, arm, share, text, number, group)
        elif ask.unit is not None:
            read.units.setdefault(ask.unit, _NONE)
        if ticket in read.gone:
            self._cancel(ticket)
        else:
            self.due.append((ends + agent.journal.GRACE, id_))
        return Ticket(ticket, name, share)

    def _met(self, ask: Ask) -> tuple[Any, ...]:
        """Choose from an offer that is not known as accepted; store it and its arms if new."""
        agent, journal = self.agent, self.agent.journal
        offer = self._offered(ask.offer)
        even, number = agent.recipe.even(offer), self._offer_id(offer)
        with agent.numbering(offer):
            id_ = journal.new_id(self.read.last)
            chosen = self._chosen(id_, ask, offer, even)
        if number is None:
            number = id_
            journal.add_offer(id_, offer.key, *offer.row())
        if offer.vectors is not None:  # it may be pruned later
            self.read.offers[offer.key] = number
        else:
            if len(agent.accepted) >= _ACCEPTED:
                agent.accepted.clear()
            agent.accepted[ask.offer.key] = offer, number, even
        return id_, offer, number, *chosen

    def _offered(self, asked: Offer) -> Offer:
        """Return an offer as the policy sees it, without dropped arms."""
        agent, offer = self.agent, asked
        if not agent.dropped.isdisjoint(offer.names):
            left = [i for i, name in enumerate(offer.names) if name not in agent.dropped]
            if not left:
                raise ValueError(f"all arms on offer were dropped: {list(asked.names)}")
            offer = offer.among(left)
        arms = agent.recipe.arms
        if arms is not None and not set(arms).issuperset(offer.names):
            foreign = [name for name in offer.names if name not in arms]
            raise ValueError(
                f"{foreign} are not among the arms of this experiment: leave them out of the "
                "offer, list them, or let it be open to new arms"
            )
        if offer.vectors is not None and not agent.learner.uses_vectors:
            return Offer.of(offer.names)
        return offer

    def _offer_id(self, offer: Offer) -> int | None:
        """Return the id of an offer, None if it is new; refuse one that is never learned."""
        agent, key = self.agent, offer.key
        number = self.read.offers.get(key)
        if number is None:
            number = agent.journal.offer_ids([key]).get(key)
        pulls, strange = agent.policy.pulls, agent.strange
        if pulls == 1 or offer.vectors is None:
            return number
        if number is not None or key in strange:
            strange.clear()
            return number
        strange[key] = None
        if len(strange) > _STRANGE:
            strange.pop(next(iter(strange)))
        if len(strange) > _NEVER_TWICE:
            raise ValueError(
                f"this policy needs offers that repeat, as it takes {pulls} rewards of the same "
                "arm and features at a time; recent offers all differed. Use LinStudentUCB, which "
                "learns from single rewards"
            )
        return None

    def _chosen(
        self, id_: int, ask: Ask, offer: Offer, even: float
    ) -> tuple[str | None, tuple[Any, ...] | None, int, list[float] | None]:
        """Return the group of a request, the request that it repeats, its arm, and the shares."""
        agent = self.agent
        control: Any = agent.recipe.control
        if agent.fixed in offer.names:
            return "fixed", None, *certain(offer, str(agent.fixed))
        group = group_of(agent.learner.seed, id_, ask.unit, control, offer)
        earlier = _NONE if ask.unit is None else self.read.units.get(ask.unit, _NONE)
        if earlier[0] is not None and earlier[5] == group:
            arm = agent.name(earlier[1])
            if arm in offer.names if group is None else arm == control.arm:
                return group, earlier, *certain(offer, arm)
        return group, None, *agent.learner.choose(id_, offer, even, control, group)

    # ---- tells and cancellations

    def _tell(self, tell: Tell) -> Status:
        request, name = self.read.requests.get(tell.ticket), tell.event or ""
        if request is None:
            self._ignore("unknown", tell.reward)
            return "unknown"
        if CANCELLED in request.events:
            return "cancelled"
        recipe = self.agent.recipe_of(request.recipe)
        if name in request.events or (request.events and recipe.rewards == "first"):
            known = request.events.get(name) or next(iter(request.events.values()))
            same = known[0] == tell.reward and (name in request.events or not name)
            self._ignore("repeated" if same else "second", tell.reward)
            return "duplicate"
        if recipe.rewards == "sum" and math.isinf(tell.reward):
            raise ValueError(f"a reward that is added to others must be finite, got {tell.reward}")
        late = int(request.why is not None or self.now > request.ends)
        request.events[name] = (tell.reward, self.now, late)
        self.events.append((request.id, name, tell.reward, self.now, late))
        if late:
            return "late"
        if recipe.at_once:
            self.ready.append(request)
        return "kept"

    def _ignore(self, why: str, reward: float) -> None:
        """Count a reward that is not stored; the sum is of those that cannot spoil it."""
        count, total = self.ignored.get(why, (0, 0.0))
        self.ignored[why] = count + 1, total + (reward if abs(reward) < _SUMMED else 0.0)

    def _cancel(self, ticket: str) -> Status:
        request = self.read.requests.get(ticket)
        if request is None:
            if ticket not in self.read.gone and own_id(ticket) is None:
                self.read.gone.add(ticket)
                self.events.append((BEFORE, ticket, 0.0, self.now, 0))
            return "unknown"
        if CANCELLED not in request.events:
            if request.events or request.why is not None:
                return "late"
            request.events[CANCELLED] = (0.0, self.now, 0)
            self.events.append((request.id, CANCELLED, 0.0, self.now, 0))
            self.ready.append(request)
        return "cancelled"


def group_of(seed: int, id_: int, unit: str | None, control: Any, offer: Offer) -> str | None:
    """Return "control" if a request belongs to the control group; all of a unit do, or none."""
    if control is None or control.arm not in offer.names:
        return None
    draw = draws(seed, id_)[1] if unit is None else draws(seed, "unit", unit)[1]
    return "control" if draw < control.share else None
