"""The application: experiments, routes, middleware and error answers."""

import reprlib
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Route

from tailproof.live.config import Config
from tailproof.live.ordering import Scheduler
from tailproof.service import routes
from tailproof.service.experiments import open_all
from tailproof.service.metrics import Metrics
from tailproof.service.middleware import Middleware, check_token
from tailproof.service.page.pages import Pages
from tailproof.service.schemas import REFUSALS, problem, sentence

__all__ = ["create_app"]

_UNREADABLE = (
    "cannot parse the body as JSON: it is nested too deeply, has a number with too many digits, or "
    "is not UTF-8"
)


def create_app(config: Config, token: str | None = None) -> FastAPI:
    """Open all experiments and return the ASGI application.

    ``app.state.experiments`` has each `Experiment` by name.
    """
    token = check_token(config.address, token)
    experiments = open_all(config)
    agents = {name: experiment.agent for name, experiment in experiments.items()}

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with ExitStack() as stack:
            for agent in agents.values():
                stack.callback(agent.close)
            stack.callback(app.state.pages.close)
            stack.enter_context(Scheduler({name: agent.tick for name, agent in agents.items()}))
            yield

    app = FastAPI(
        title="tailproof",
        version=version("tailproof"),
        description="Ask for an arm and tell its reward, at any time and in any order.",
        docs_url=None,  # these pages would load scripts from another host
        redoc_url=None,
        lifespan=lifespan,
        responses={key: REFUSALS[key] for key in (401, 403)},
    )
    app.state.experiments = experiments
    app.state.pages = Pages(experiments)
    app.state.metrics = Metrics(experiments, app.state.pages.counts)
    app.add_middleware(
        Middleware,
        token=token,
        hosts=config.hosts,
        open_paths={"/health"} | routes.PATHS,
        answered=app.state.metrics.answered,
    )
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _failed)
    app.include_router(routes.router)
    for path in routes.PATHS:
        app.routes.append(Route(path, GZipMiddleware(routes.FILES), include_in_schema=False))
    if token is not None:
        schema = app.openapi()
        schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"token": []}]
    return app


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return JSONResponse(problem(sentence(error.errors())), 422)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text, path = error.detail, reprlib.repr(request.url.path)
    if error.status_code == 400:
        text = _UNREADABLE
    elif error.status_code == 405:
        text += f": {path} takes {(error.headers or {}).get('Allow', 'another method')}"
    elif text == "Not Found":
        text += f": nothing is at {path}; /openapi.json lists all paths"
    return JSONResponse(problem(text), error.status_code, error.headers)


async def _failed(_: Request, __: Exception) -> Response:
    return JSONResponse(problem("internal error; see the log of the service"), 500)
