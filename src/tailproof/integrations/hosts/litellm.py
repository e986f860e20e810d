"""Our router in LiteLLM: deployments by a quantile of latency, first token, cost, or a sum."""

import logging
import math
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, get_args

from tailproof.checks import number, require
from tailproof.extras import import_extra
from tailproof.integrations.routing import Router

if TYPE_CHECKING:
    import litellm
    from litellm.integrations.custom_logger import CustomLogger
    from litellm.router_utils.cooldown_handlers import get_cooldown_deployments
    from litellm.types.router import CustomRoutingStrategyBase
else:
    litellm = import_extra("litellm", "litellm")
    from litellm.integrations.custom_logger import CustomLogger
    from litellm.router_utils.cooldown_handlers import get_cooldown_deployments
    from litellm.types.router import CustomRoutingStrategyBase

__all__ = ["LiteLLMStrategy", "Measure"]

Measure = Literal["latency", "first_token", "cost"]
"""Seconds until the answer is complete, seconds until its first token, and its price."""
_PRIVATE = ("_target_order", "_excluded_deployment_ids", "_retry_skipped_deployment_ids")
"""What LiteLLM's own selection takes out of the arguments of a call."""
_log = logging.getLogger("tailproof.integrations.guests")


class LiteLLMStrategy(CustomRoutingStrategyBase, CustomLogger):  # type: ignore[misc]
    """A routing strategy for `litellm.Router` that makes the 95 % quantile of costs small.

    Each model group has a `tailproof.routing.Router` among its deployments. Cooldowns, retries and
    fallbacks remain LiteLLM's, and so do its checks before a call. Each attempt is learned alone:
    the failure of a deployment does not count against the deployment that answers in its place.

    Parameters
    ----------
    router : litellm.Router
        Its strategy is replaced, and this object is added to LiteLLM's callbacks; `close` removes
        it from them.
    measure : "latency", "first_token" or "cost", or weights for several
        ``{"latency": 1, "cost": 300}`` adds a second for a third of a cent. An answer that was not
        streamed has its first token at its end. If "cost" counts, a call without a price is not
        learned.
    settings :
        Those of `tailproof.routing.Router`: `aim`, `failure`, `memory`, `probe`, `policy`, `seed`.
        A time-out or another error costs `failure`, by default infinitely much.
    journal : callable, optional
        Returns the journal of a model group, given its name; by default the state is in memory.

    Examples
    --------
    >>> fast, slow = (
    ...     {"model_name": "chat", "litellm_params": {"model": "openai/x", "mock_response": "Hi"},
    ...      "model_info": {"id": name}} for name in ("fast", "slow")
    ... )
    >>> router = litellm.Router([fast, slow])
    >>> strategy = LiteLLMStrategy(router, measure={"latency": 1, "cost": 300})
    >>> router.completion("chat", [{"role": "user", "content": "?"}]).choices[0].message.content
    'Hi'
    >>> strategy.close()

    Source: LiteLLM 1.106, its extension points for strategies and callbacks. Differences: its own
    strategies compare means of the last ten calls, or a percentile of them.
    """

    def __init__(
        self,
        router: "litellm.Router",
        *,
        measure: Measure | Mapping[Measure, float] = "latency",
        journal: Any = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        weights = {measure: 1.0} if isinstance(measure, str) else dict(measure)
        measures = get_args(Measure)
        ok = len(weights) > 0 and all(name in measures for name in weights)
        require(ok, "measure", f"one or more of {', '.join(measures)}", measure)
        self.weights = {n: number(f"the weight of {n}", w, above=0) for n, w in weights.items()}
        require(journal is None or callable(journal), "journal", "callable, given a group", journal)
        Router(["a deployment"], **settings)  # refuses wrong settings before the first call
        self.router, self._settings, self._journal = router, settings, journal
        self.groups: dict[str, Router] = {}
        self._routers: dict[str, Router] = {}
        router.set_custom_routing_strategy(self)
        litellm.logging_callback_manager.add_litellm_callback(self)

    def close(self) -> None:
        """Give LiteLLM its own strategy back, and stop learning."""
        for name in ("get_available_deployment", "async_get_available_deployment"):
            if name in vars(self.router):
                delattr(self.router, name)
        litellm.logging_callback_manager.remove_callback_from_all_lists(self)
        for group in self.groups.values():
            group.close()

    def get_available_deployment(
        self,
        model: str,
        messages: Any = None,
        input: Any = None,  # noqa: A002 (LiteLLM's name)
        specific_deployment: bool | None = False,
        request_kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Return a deployment of the model for a call that blocks."""
        given = request_kwargs if request_kwargs is not None else {}
        model, deployments = self.router._common_checks_available_deployment(
            model, messages, input, specific_deployment, given
        )
        if isinstance(deployments, dict):
            return deployments
        resting = get_cooldown_deployments(self.router, None)
        deployments = self.router._filter_cooldown_deployments(deployments, resting)
        if self.router.enable_pre_call_checks and messages is not None:
            deployments = self.router._pre_call_checks(
                model=model,
                healthy_deployments=deployments,
                messages=messages,
                request_kwargs=given,
            )
        order, excluded, skipped = (given.pop(name, None) for name in _PRIVATE)
        deployments = litellm.utils.get_order_filtered_deployments(deployments, target_order=order)
        without = litellm.utils.get_excluded_filtered_deployments
        deployments = without(deployments, excluded_deployment_ids=excluded)
        deployments = without(deployments, excluded_deployment_ids=skipped) or deployments
        return self._among(model, deployments)

    async def async_get_available_deployment(
        self,
        model: str,
        messages: Any = None,
        input: Any = None,  # noqa: A002 (LiteLLM's name)
        specific_deployment: bool | None = False,
        request_kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Return a deployment of the model for a call in an event loop."""
        given = request_kwargs if request_kwargs is not None else {}
        deployments = await self.router.async_get_healthy_deployments(
            model=model,
            request_kwargs=given,
            messages=messages,
            input=input,
            specific_deployment=specific_deployment,
        )
        return deployments if isinstance(deployments, dict) else self._among(model, deployments)

    def log_success_event(
        self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Learn what an answer cost."""
        router, deployment = self._router_of(kwargs)
        if router is not None:
            cost = self._cost(kwargs, start_time, end_time)
            if math.isnan(cost):
                _log.warning("not learned, as it has no price: a call to %s", deployment)
            else:
                router.tell(deployment, cost)

    def log_failure_event(
        self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Learn that a call failed."""
        router, deployment = self._router_of(kwargs)
        if router is not None:
            router.fail(deployment)

    async def async_log_success_event(
        self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Learn what an answer cost."""
        self.log_success_event(kwargs, response_obj, start_time, end_time)

    async def async_log_failure_event(
        self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Learn that a call failed."""
        self.log_failure_event(kwargs, response_obj, start_time, end_time)

    def _among(self, model: str, deployments: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the deployment that the router of the group chooses."""
        if not deployments:
            raise litellm.ServiceUnavailableError(
                f"no deployment of {model} is healthy", model=model, llm_provider=""
            )
        ids = {str(deployment["model_info"]["id"]): deployment for deployment in deployments}
        group = deployments[0]["model_name"]  # the model may have been called by an alias
        if group not in self.groups:
            journal = None if self._journal is None else self._journal(group)
            self.groups[group] = Router(list(ids), journal=journal, **self._settings)
        chosen = self.groups[group].choose(list(ids))
        self._routers[chosen] = self.groups[group]
        return ids[chosen]

    def _router_of(self, kwargs: Any) -> tuple[Router | None, str]:
        """Return the router that chose the deployment of a call, None if there is none."""
        params = kwargs.get("litellm_params") or {}
        deployment = str((params.get("model_info") or {}).get("id"))
        return self._routers.get(deployment), deployment

    def _cost(self, kwargs: Any, start: Any, end: Any) -> float:
        """Return the weighted sum of the measures, NaN if a price is needed and missing."""
        first = kwargs.get("completion_start_time") if kwargs.get("stream") else None
        price = kwargs.get("response_cost")
        measured = {
            "latency": _seconds(end - start),
            "first_token": _seconds((first or end) - start),
            "cost": math.nan if price is None else float(price),
        }
        return sum(weight * measured[name] for name, weight in self.weights.items())


def _seconds(span: timedelta | float) -> float:
    return span.total_seconds() if isinstance(span, timedelta) else float(span)
