"""What goes over the wire: strict, bounded, and with the rules that refusals quote."""

import reprlib
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tailproof.live.agent import LONGEST_ID, Ask, Fate, Tell, Ticket
from tailproof.live.offers import LONGEST_NAME, MOST_ARMS, Offer

__all__ = [
    "AskBody",
    "BatchAnswer",
    "BatchBody",
    "ErrorAnswer",
    "FateAnswer",
    "TellBody",
    "TicketAnswer",
    "answer",
    "problem",
    "sentence",
]

_MOST_FEATURES = 1000
_MOST_ACTS = 1000
_LONGEST = 1000
_RULES = {
    "offer": f"a list of 1 to {MOST_ARMS} names of 1 to {LONGEST_NAME} signs, or a mapping from"
    f" such names to vectors of 1 to {_MOST_FEATURES} finite numbers",
    "ticket": f"a text of 1 to {LONGEST_ID} signs",
    "reward": 'a finite number, "Infinity" or "-Infinity"',
    "do": '"ask" or "tell"',
    "acts": f"a list of 1 to {_MOST_ACTS} acts, each with do",
}
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60

Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Vector = Annotated[list[Number], Field(min_length=1, max_length=_MOST_FEATURES)]
Names = Annotated[list[Name], Field(min_length=1, max_length=MOST_ARMS)]
Vectors = Annotated[dict[Name, Vector], Field(min_length=1, max_length=MOST_ARMS)]
Id = Annotated[
    str, Field(min_length=1, max_length=LONGEST_ID, description=_RULES["ticket"], examples=["v17"])
]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class AskBody(_Strict):
    """A request for an arm; without an offer, of the experiment's own arms."""

    offer: Names | Vectors | None = Field(
        None,
        description=_RULES["offer"],
        examples=[["red", "blue"], {"red": [1.0, 0.5], "blue": [0.0, 2.0]}],
    )
    ticket: Id | None = None

    def act(self, arms: Offer | None) -> Ask:
        """Return what the agent is asked; one that does not fit raises ``ValueError``."""
        offer = arms if self.offer is None else self.offer
        if offer is None:
            raise ValueError("offer must be given, as the experiment has no arms of its own")
        return Ask(offer, self.ticket)


class TellBody(_Strict):
    """The reward of a ticket."""

    ticket: Id
    reward: Number | Literal["Infinity", "-Infinity"] = Field(
        description=_RULES["reward"], examples=[12.5, "-Infinity"]
    )

    def act(self, _: Offer | None) -> Tell:
        """Return what the agent is told."""
        return Tell(self.ticket, float(self.reward))


class _AskAct(AskBody):
    do: Literal["ask"]


class _TellAct(TellBody):
    do: Literal["tell"]


class BatchBody(_Strict):
    """Several acts, done in one commit."""

    acts: Annotated[
        list[Annotated[_AskAct | _TellAct, Field(discriminator="do")]],
        Field(
            min_length=1,
            max_length=_MOST_ACTS,
            description=_RULES["acts"],
            examples=[
                [
                    {"do": "ask", "offer": ["red", "blue"], "ticket": "v18"},
                    {"do": "tell", "ticket": "v17", "reward": 12.5},
                ]
            ],
        ),
    ]


class TicketAnswer(_Strict):
    """An arm, and the ticket to tell its reward to."""

    ticket: str = Field(examples=["v17"])
    arm: str = Field(examples=["red"])
    propensity: float | None = Field(
        description="how probable this arm was; null where the policy cannot tell", examples=[0.5]
    )
    hold: int = Field(description="the number of the decision", examples=[0])


class FateAnswer(_Strict):
    """What became of a reward."""

    ticket: str = Field(examples=["v17"])
    fate: Fate = Field(
        description="kept: its hold awaits more; learned; duplicate: the first one stays; late: its"
        " hold had ended; unknown: there is no such ticket",
        examples=["kept"],
    )


class ErrorAnswer(_Strict):
    """Why something was refused, in one sentence."""

    error: str = Field(examples=["reward must be a finite number, got 'much'"])


class BatchAnswer(_Strict):
    """An answer for each act, in their order; one that was refused has its error."""

    answers: list[TicketAnswer | FateAnswer | ErrorAnswer] = Field(
        examples=[
            [
                {"ticket": "v18", "arm": "blue", "propensity": 0.5, "hold": 0},
                {"ticket": "v17", "fate": "kept"},
            ]
        ]
    )


def answer(act: Ask | Tell, found: Ticket | Fate | ValueError) -> dict[str, Any]:
    """Return what became of an act, as it goes over the wire."""
    if isinstance(found, Ticket):
        return {
            "ticket": found.id,
            "arm": found.arm,
            "propensity": found.propensity,
            "hold": found.hold,
        }
    if isinstance(found, ValueError):
        return problem(found)
    return {"ticket": act.ticket, "fate": found}


def problem(error: object) -> dict[str, Any]:
    """Return a refusal as it goes over the wire, of bounded length."""
    text = str(error)
    return {"error": text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"}


def sentence(errors: Sequence[Any]) -> str:
    """Return the first mistake in a body as one sentence: the field, its rule and the value.

    >>> sentence([{"type": "x", "loc": ("body", "acts", 3, "tell", "reward"), "input": None}])
    'acts[3].reward must be a finite number, "Infinity" or "-Infinity", got None'
    """
    first = errors[0]
    if first["type"] == "json_invalid":
        return f"the body must be JSON, but: {first['ctx']['error']}"
    if first["type"] == "extra_forbidden":
        return f"{_SHORT.repr(first['loc'][-1])} must be left out: it is not known here"
    steps = [step for step in first["loc"] if isinstance(step, int) or step in _RULES]
    while steps and isinstance(steps[-1], int):
        steps.pop()
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    if not steps and isinstance(first["input"], bytes):
        return "the body must be JSON and said to be: Content-Type: application/json"
    if not steps:
        return f"the body must be an object of JSON, got {_SHORT.repr(first['input'])}"
    if first["type"] == "missing":
        return f"{path[1:]} must be given: {_RULES[steps[-1]]}"
    return f"{path[1:]} must be {_RULES[steps[-1]]}, got {_SHORT.repr(first['input'])}"
