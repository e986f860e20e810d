"""Request and response bodies: strict, bounded, with readable validation errors."""

import reprlib
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tailproof.live import Ask, Status, Tell, Ticket
from tailproof.live.acts import LONGEST_ID
from tailproof.live.offer import LONGEST_NAME, MOST_ARMS, Offer

__all__ = [
    "REFUSALS",
    "RULES",
    "ArmBody",
    "AskBody",
    "BatchAnswer",
    "BatchBody",
    "StatusAnswer",
    "TellBody",
    "TicketAnswer",
    "answer",
    "problem",
    "sentence",
]

_MOST_FEATURES, _MOST_ACTS = 1000, 1000
"""Numbers in a vector, and acts in a batch; more of them are most likely a mistake."""
_MOST_CANCELLED = 100
"""Asks that a call may cancel; a client that gave up more sends them with several calls."""
_LONGEST = 1000
"""Characters of an error, which may quote what was sent."""
RULES = {
    "offer": f"a list of 1 to {MOST_ARMS} arm names of 1 to {LONGEST_NAME} characters, or an object"
    f" that maps arm names to vectors of 1 to {_MOST_FEATURES} finite numbers",
    "ticket": f"a string of 1 to {LONGEST_ID} printable characters",
    "unit": f"a string of 1 to {LONGEST_ID} printable characters; the same unit gets the same arm",
    "reward": 'a finite number, "Infinity" or "-Infinity"',
    "event": f"a string of 1 to {LONGEST_ID} printable characters, to tell rewards apart",
    "cancel": f"a list of at most {_MOST_CANCELLED} tickets whose asks nobody waited for",
    "do": '"ask" or "tell"',
    "arm": 'the name of an arm, such as "red"',
    "act": '"ask", "tell", "batch", "drop", "pause", "stop" or "resume"',
    "events": "true or false",
    "format": '"csv"; `tailproof log --out log.parquet` writes Parquet',
    "acts": f'a list of 1 to {_MOST_ACTS} objects, each with "do": "ask" or "do": "tell"',
}
"""What each field must be, for the OpenAPI page and for the sentence of a refusal."""
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60

Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Vector = Annotated[list[Number], Field(min_length=1, max_length=_MOST_FEATURES)]
Names = Annotated[list[Name], Field(min_length=1, max_length=MOST_ARMS)]
Vectors = Annotated[dict[Name, Vector], Field(min_length=1, max_length=MOST_ARMS)]
Id = Annotated[
    str, Field(min_length=1, max_length=LONGEST_ID, description=RULES["ticket"], examples=["v17"])
]

Cancelled = Annotated[
    list[Id],
    Field(max_length=_MOST_CANCELLED, description=RULES["cancel"], examples=[["v16"]]),
]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class AskBody(_Strict):
    """Ask for an arm of `offer`, or of the experiment's own arms if `offer` is left out."""

    do: Literal["ask"] = "ask"
    offer: Names | Vectors | None = Field(
        None,
        description=RULES["offer"],
        examples=[["red", "blue"], {"red": [1.0, 0.5], "blue": [0.0, 2.0]}],
    )
    ticket: Id | None = None
    unit: Id | None = Field(None, description=RULES["unit"], examples=["user 7"])
    cancel: Cancelled = []

    def act(self, arms: Offer | None) -> Ask:
        """Return the ask for the agent; raises ``ValueError`` if it is invalid."""
        offer = arms if self.offer is None else self.offer
        if offer is None:
            raise ValueError("offer is required: this experiment has no arms of its own")
        return Ask(offer, self.ticket, self.unit)


class TellBody(_Strict):
    """Tell the reward of a ticket."""

    do: Literal["tell"] = "tell"
    ticket: Id
    reward: Number | Literal["Infinity", "-Infinity"] = Field(
        description=RULES["reward"], examples=[12.5, "-Infinity"]
    )
    event: Id | None = Field(None, description=RULES["event"], examples=["order 4711"])
    cancel: Cancelled = []

    def act(self, _: Offer | None) -> Tell:
        """Return the tell for the agent."""
        return Tell(self.ticket, float(self.reward), self.event)


class BatchBody(_Strict):
    """Several asks and tells, done in one commit."""

    acts: Annotated[
        list[Annotated[AskBody | TellBody, Field(discriminator="do")]],
        Field(
            min_length=1,
            max_length=_MOST_ACTS,
            description=RULES["acts"],
            examples=[
                [
                    {"do": "ask", "offer": ["red", "blue"], "ticket": "v18"},
                    {"do": "tell", "ticket": "v17", "reward": 12.5},
                ]
            ],
        ),
    ]


class ArmBody(_Strict):
    """The arm that is meant."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"arm": "red"}, {}]})

    arm: str | None = Field(None, description=RULES["arm"])


class TicketAnswer(_Strict):
    """The chosen arm, and the ticket to tell its reward to."""

    ticket: str = Field(examples=["v17"])
    arm: str = Field(examples=["red"])
    propensity: float | None = Field(
        description="the probability that a request with this offer gets this arm; null if the"
        " policy does not report it",
        examples=[0.5],
    )


class StatusAnswer(_Strict):
    """What happened to a reward."""

    ticket: str = Field(examples=["v17"])
    status: Status = Field(
        description="kept: stored, and it counts; duplicate: ignored, the ticket already has this"
        " reward; late: stored, but not learned, as its window had ended; unknown:"
        " there is no such ticket; cancelled: ignored, as the ticket was cancelled",
        examples=["kept"],
    )


class ErrorAnswer(_Strict):
    """Why a request was refused, in one sentence."""

    error: str = Field(examples=["reward must be a finite number, got 'much'"])


class BatchAnswer(_Strict):
    """One answer for each element of `acts`, in order; a refused act has `error`."""

    answers: list[TicketAnswer | StatusAnswer | ErrorAnswer] = Field(
        examples=[
            [
                {"ticket": "v18", "arm": "blue", "propensity": 0.5},
                {"ticket": "v17", "status": "kept"},
            ]
        ]
    )


REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorAnswer, "description": "The body cannot be parsed."},
    401: {"model": ErrorAnswer, "description": "The token is missing or wrong."},
    403: {"model": ErrorAnswer, "description": "The request is for another host, or from one."},
    404: {"model": ErrorAnswer, "description": "There is no such experiment."},
    413: {"model": ErrorAnswer, "description": "The body is too large."},
    415: {"model": ErrorAnswer, "description": "The body is not sent as application/json."},
    422: {"model": ErrorAnswer, "description": "The request is refused; `error` says why."},
    503: {"model": ErrorAnswer, "description": "The commit failed; nothing was stored."},
}


def answer(act: Ask | Tell, outcome: Ticket | Status | ValueError) -> dict[str, Any]:
    """Return the JSON answer to an ask or tell."""
    if isinstance(outcome, Ticket):
        return {
            "ticket": outcome.id,
            "arm": outcome.arm,
            "propensity": outcome.propensity,
        }
    if isinstance(outcome, ValueError):
        return problem(outcome)
    return {"ticket": act.ticket, "status": outcome}


def problem(error: object) -> dict[str, Any]:
    """Return an error as a JSON answer of bounded length."""
    text = str(error)
    return {"error": text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"}


def sentence(errors: Sequence[Any]) -> str:
    """Return the first validation error as a sentence: field, rule and value.

    >>> sentence([{"type": "x", "loc": ("body", "acts", 3, "tell", "reward"), "input": None}])
    'acts[3].reward must be a finite number, "Infinity" or "-Infinity", got None'
    """
    first = errors[0]
    if first["type"] == "json_invalid":
        return (
            f"the body is not valid JSON: {first['ctx']['error']} at character {first['loc'][-1]}"
        )
    steps = [step for step in first["loc"] if isinstance(step, int) or step in RULES]
    if first["type"] == "extra_forbidden":
        place = f" in {_path(steps)[1:]}" if steps else ""
        return f"unknown field {_SHORT.repr(first['loc'][-1])}{place}: leave it out"
    while steps and isinstance(steps[-1], int):
        steps.pop()
    path = _path(steps)
    if not steps and isinstance(first["input"], bytes):
        return "the body must be JSON, sent with Content-Type: application/json"
    if not steps:
        return f"the body must be a JSON object, got {_SHORT.repr(first['input'])}"
    if first["type"] == "missing":
        others = [error["loc"][-1] for error in errors if error["type"] == "extra_forbidden"]
        unknown = f"; there is no field {_SHORT.repr(others[0])}" if others else ""
        return f"{path[1:]} is required: {RULES[steps[-1]]}{unknown}"
    return f"{path[1:]} must be {RULES[steps[-1]]}, got {_SHORT.repr(first['input'])}"


def _path(steps: Sequence[int | str]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
