"""The HTTP service: ask and tell, with many requests sharing a commit."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException as AnyHTTPException

from tailproof.live import page_routes
from tailproof.live.agent import Agent, Ask, Fate, Tell, Ticket
from tailproof.live.config import Arms, Config
from tailproof.live.experiments import open_all
from tailproof.live.gate import Gate, Name, check_token, named
from tailproof.live.export import csv_pieces
from tailproof.live.messages import (
    AskBody,
    BatchAnswer,
    BatchBody,
    ErrorAnswer,
    FateAnswer,
    TellBody,
    TicketAnswer,
    answer,
    problem,
    sentence,
)
from tailproof.live.metrics import Metrics
from tailproof.live.offers import Offer

__all__ = ["create_app"]

_LOG = logging.getLogger("tailproof.live")
_REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorAnswer, "description": "The body cannot be parsed."},
    401: {"model": ErrorAnswer, "description": "The token is missing or wrong."},
    404: {"model": ErrorAnswer, "description": "There is no such experiment."},
    413: {"model": ErrorAnswer, "description": "The body is too large."},
    422: {"model": ErrorAnswer, "description": "The request is refused; `error` says why."},
    503: {"model": ErrorAnswer, "description": "The commit failed; nothing was stored."},
}
_LOG_EXAMPLE = (
    "ticket,hold,arm,propensity,reward,fate,asked,told\r\n"
    "v17,0,red,0.5,12.5,kept,2026-01-05T09:00:00+00:00,2026-01-05T09:02:11+00:00\r\n"
)
_METRICS_EXAMPLE = 'tailproof_asks_total{experiment="shop"} 1204.0\n'


class _Line:
    """The queue of an experiment: asks and tells that wait share the next commit."""

    def __init__(self, agent: Agent, arms: Arms) -> None:
        self.agent, self.arms = agent, None if arms is None else Offer.of(arms)
        self._thread = ThreadPoolExecutor(1)
        self._waiting: list[tuple[Sequence[Ask | Tell], asyncio.Future[Any]]] = []
        self._busy: asyncio.Task[None] | None = None

    async def act(self, acts: Sequence[Ask | Tell]) -> list[Ticket | Fate | ValueError]:
        """Queue asks and tells, and return their answers."""
        done: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self._waiting.append((acts, done))
        if self._busy is None:
            self._busy = asyncio.create_task(self._work())
        return await done

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                acts = [act for some, _ in batch for act in some]
                try:
                    answers = await loop.run_in_executor(self._thread, self.agent.act, acts)
                except Exception as error:
                    for _, done in batch:
                        if not done.done():
                            done.set_exception(_unwritten(error))
                    continue
                rest = iter(answers)
                for some, done in batch:
                    own = [next(rest) for _ in some]
                    if not done.done():  # the client may have disconnected
                        done.set_result(own)
        finally:
            self._busy = None

    async def close(self) -> None:
        """Finish queued requests and close the journal."""
        if self._busy is not None:
            await self._busy
        self._thread.shutdown()
        self.agent.close()


def _unwritten(error: Exception) -> HTTPException:
    _LOG.error("commit failed", exc_info=error)
    told = isinstance(error, sqlite3.Error | OSError)  # other messages may name hosts
    why = error if told else type(error).__name__
    return HTTPException(503, f"commit failed, nothing was stored: {why}")


def create_app(config: Config, token: str | None = None) -> FastAPI:
    """Open all experiments and return the ASGI application.

    ``app.state.experiments`` has each `Experiment` by name; paths in ``app.state.open_paths`` need
    no token.
    """
    token = check_token(config.address, token)
    experiments = open_all(config)
    lines = {name: _Line(one.agent, one.arms) for name, one in experiments.items()}
    metrics = Metrics(experiments)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        for line in lines.values():
            await line.close()

    app = FastAPI(
        title="tailproof",
        version=version("tailproof"),
        description="Ask for an arm and tell its reward, at any time and in any order.",
        docs_url=None,  # these pages would load scripts from another host
        redoc_url=None,
        lifespan=lifespan,
        responses={key: _REFUSALS[key] for key in (401,)},
    )
    app.state.experiments, app.state.open_paths = experiments, {"/health"}
    app.add_middleware(
        Gate, token=token, open_paths=app.state.open_paths, answered=metrics.answered
    )

    async def acted(name: str, acts: list[Ask | Tell]) -> list[Ticket | Fate | ValueError]:
        answers = await lines[name].act(acts)
        metrics.acted(name, acts, answers)
        return answers

    async def one(name: str, body: AskBody | TellBody) -> Response:
        named(experiments, name)
        try:
            act = body.act(lines[name].arms)
        except ValueError as refusal:
            return JSONResponse(problem(refusal), 422)
        (said,) = await acted(name, [act])
        return JSONResponse(answer(act, said), 422 if isinstance(said, ValueError) else 200)

    @app.post("/experiments/{name}/ask", response_model=TicketAnswer, responses=_REFUSALS)
    async def ask(name: Name, body: AskBody) -> Response:
        """Get an arm; a repeated request with the same ticket gets the same answer."""
        return await one(name, body)

    @app.post("/experiments/{name}/tell", response_model=FateAnswer, responses=_REFUSALS)
    async def tell(name: Name, body: TellBody) -> Response:
        """Tell the reward of a ticket, and get what happened to it."""
        return await one(name, body)

    @app.post("/experiments/{name}/batch", response_model=BatchAnswer, responses=_REFUSALS)
    async def batch(name: Name, body: BatchBody) -> Response:
        """Do several asks and tells in one commit; a refused one does not affect the others."""
        named(experiments, name)
        acts: list[Ask | Tell | ValueError] = []
        for one in body.acts:
            try:
                acts.append(one.act(lines[name].arms))
            except ValueError as refusal:
                acts.append(refusal)
        fit = [act for act in acts if not isinstance(act, ValueError)]
        said = iter(await acted(name, fit)) if fit else iter(())
        answers = [
            problem(act) if isinstance(act, ValueError) else answer(act, next(said)) for act in acts
        ]
        return JSONResponse({"answers": answers})

    @app.get(
        "/experiments/{name}/log",
        response_class=StreamingResponse,
        responses={
            200: {"content": {"text/csv": {"example": _LOG_EXAMPLE}}},
            404: _REFUSALS[404],
            422: _REFUSALS[422],
        },
    )
    def log(name: Name) -> StreamingResponse:
        """Download every ticket with its arm, reward and status as CSV."""
        journal = named(experiments, name).reader()

        def pieces() -> Iterator[str]:
            try:
                yield from csv_pieces(journal)
            finally:
                journal.close()

        saved_as = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
        return StreamingResponse(pieces(), media_type="text/csv", headers=saved_as)

    @app.get("/health", responses={200: {"content": {"application/json": {"example": _HEALTH}}}})
    async def health() -> dict[str, str]:
        """Report that the service is up; needs no token."""
        return _HEALTH

    @app.get(
        "/metrics",
        response_class=PlainTextResponse,
        responses={200: {"content": {"text/plain": {"example": _METRICS_EXAMPLE}}}},
    )
    def show_metrics() -> PlainTextResponse:
        """Get metrics for Prometheus."""
        return PlainTextResponse(metrics.page())

    @app.exception_handler(RequestValidationError)
    async def refused(_: Request, error: RequestValidationError) -> Response:
        return JSONResponse(problem(sentence(error.errors())), 422)

    @app.exception_handler(AnyHTTPException)
    async def stopped(_: Request, error: AnyHTTPException) -> Response:
        unread = (
            "cannot parse the body as JSON: it is nested too deeply, has a number with too many "
            "digits, or is not UTF-8"
        )
        text = unread if error.status_code == 400 else error.detail
        return JSONResponse(problem(text), error.status_code, error.headers)

    @app.exception_handler(Exception)
    async def failed(_: Request, __: Exception) -> Response:
        return JSONResponse(problem("internal error; see the log of the service"), 500)

    app.include_router(page_routes.router)
    if token is not None:
        page = app.openapi()
        page["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        page["security"] = [{"token": []}]
    return app


_HEALTH = {"status": "ok", "version": version("tailproof")}
