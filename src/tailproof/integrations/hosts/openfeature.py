"""Our agents behind OpenFeature: evaluating a flag asks, and tracking an event tells."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tailproof.checks import require
from tailproof.extras import import_extra

if TYPE_CHECKING:
    from openfeature import exception, provider
    from openfeature.evaluation_context import EvaluationContext
    from openfeature.flag_evaluation import FlagResolutionDetails, Reason
    from openfeature.track import TrackingEventDetails

    from tailproof.live.agent import Agent
else:
    import_extra("openfeature", "openfeature")
    from openfeature import exception, provider
    from openfeature.flag_evaluation import FlagResolutionDetails, Reason

__all__ = ["BanditFlag", "BanditProvider"]


@dataclass(frozen=True)
class BanditFlag:
    """A flag that learns which of its variants earns most.

    Parameters
    ----------
    agent : Agent
        Chooses the variant; its policy knows the aim.
    variants : mapping
        The value of each variant by its name, which is the arm; all values of one type.
    goal : str
        The tracking event whose value is the reward.
    """

    agent: "Agent"
    variants: Mapping[str, Any]
    goal: str

    def __post_init__(self) -> None:
        kinds = {type(value) for value in self.variants.values()}
        rule = "a mapping from names to values of one type"
        require(len(kinds) == 1, "variants", rule, self.variants)
        require(isinstance(self.goal, str) and self.goal != "", "goal", "a name", self.goal)


class BanditProvider(provider.AbstractProvider):
    """A provider of flags for the OpenFeature SDK, one agent behind each flag.

    The targeting key of a request is its ticket: the same key always gets the same variant, and
    gets one reward, the value of the first event that is tracked with it (1 for an event without a
    value). A key whose event never comes is a lost reward, so track a value of 0 where nothing was
    bought.

    The details of an evaluation have the reason SPLIT, and the propensity of the choice in their
    metadata. Flags without a targeting key, of another type or unknown keep their default value.

    Parameters
    ----------
    flags : mapping from flag keys to BanditFlag

    Examples
    --------
    >>> from openfeature import api
    >>> from openfeature.evaluation_context import EvaluationContext
    >>> from openfeature.track import TrackingEventDetails
    >>> from tailproof import RevenueUCB
    >>> from tailproof.live import Agent
    >>> agent = Agent(RevenueUCB(), ":memory:")
    >>> flag = BanditFlag(agent, {"short": 1, "long": 3}, goal="purchase")
    >>> api.set_provider(BanditProvider({"checkout-pages": flag}))
    >>> client, visitor = api.get_client(), EvaluationContext("visitor 17")
    >>> client.get_integer_value("checkout-pages", 2, visitor) in (1, 3)
    True
    >>> client.track("purchase", visitor, TrackingEventDetails(49.9))
    >>> api.shutdown()

    Source: the OpenFeature specification 0.8, sections 2 and 6. Differences: none.
    """

    def __init__(self, flags: Mapping[str, BanditFlag]) -> None:
        super().__init__()
        ok = len(flags) > 0 and all(isinstance(flag, BanditFlag) for flag in flags.values())
        require(ok, "flags", "a mapping from keys to BanditFlag", flags)
        self.flags = dict(flags)

    def get_metadata(self) -> provider.Metadata:
        """Return the name of the provider."""
        return provider.Metadata("tailproof")

    def shutdown(self) -> None:
        """Close the agents; what they learned is in their journals."""
        for agent in {id(flag.agent): flag.agent for flag in self.flags.values()}.values():
            agent.close()

    def track(
        self,
        tracking_event_name: str,
        evaluation_context: "EvaluationContext | None" = None,
        tracking_event_details: "TrackingEventDetails | None" = None,
    ) -> None:
        """Tell the reward of every flag that has this goal and was shown under the key."""
        key = evaluation_context.targeting_key if evaluation_context else None
        value = tracking_event_details.value if tracking_event_details else None
        for name, flag in self.flags.items():
            if key and flag.goal == tracking_event_name:
                flag.agent.tell(_ticket(name, key), 1.0 if value is None else value)

    def resolve_boolean_details(
        self,
        flag_key: str,
        default_value: bool,
        evaluation_context: "EvaluationContext | None" = None,
    ) -> "FlagResolutionDetails[bool]":
        """Return a variant of a flag whose values are true and false."""
        return self._resolve(flag_key, (bool,), evaluation_context)

    def resolve_string_details(
        self,
        flag_key: str,
        default_value: str,
        evaluation_context: "EvaluationContext | None" = None,
    ) -> "FlagResolutionDetails[str]":
        """Return a variant of a flag whose values are strings."""
        return self._resolve(flag_key, (str,), evaluation_context)

    def resolve_integer_details(
        self,
        flag_key: str,
        default_value: int,
        evaluation_context: "EvaluationContext | None" = None,
    ) -> "FlagResolutionDetails[int]":
        """Return a variant of a flag whose values are whole numbers."""
        return self._resolve(flag_key, (int,), evaluation_context)

    def resolve_float_details(
        self,
        flag_key: str,
        default_value: float,
        evaluation_context: "EvaluationContext | None" = None,
    ) -> "FlagResolutionDetails[float]":
        """Return a variant of a flag whose values are numbers."""
        return self._resolve(flag_key, (float,), evaluation_context)

    def resolve_object_details(
        self,
        flag_key: str,
        default_value: Any,
        evaluation_context: "EvaluationContext | None" = None,
    ) -> "FlagResolutionDetails[Any]":
        """Return a variant of a flag whose values are lists or mappings."""
        return self._resolve(flag_key, (dict, list), evaluation_context)

    def _resolve(
        self, key: str, kinds: tuple[type, ...], context: "EvaluationContext | None"
    ) -> "FlagResolutionDetails[Any]":
        flag = self.flags.get(key)
        if flag is None:
            raise exception.FlagNotFoundError(f"{key} is none of {', '.join(self.flags)}")
        if type(next(iter(flag.variants.values()))) not in kinds:
            raise exception.TypeMismatchError(f"the variants of {key} have another type")
        if context is None or not context.targeting_key:
            raise exception.TargetingKeyMissingError(f"{key} needs a targeting key, as its ticket")
        ticket = flag.agent.ask(list(flag.variants), _ticket(key, context.targeting_key))
        about = {} if ticket.propensity is None else {"propensity": ticket.propensity}
        chosen = flag.variants[ticket.arm]
        return FlagResolutionDetails(
            chosen, reason=Reason.SPLIT, variant=ticket.arm, flag_metadata=about
        )


def _ticket(flag: str, key: str) -> str:
    return f"{flag}/{key}"
