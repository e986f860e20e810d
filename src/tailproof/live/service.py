"""The service: ask and tell over HTTP, many requests to a commit."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec

from fastapi import FastAPI

from tailproof.live.config import Config
from tailproof.live.experiments import open_all

__all__ = ["create_app"]


def create_app(config: Config) -> FastAPI:
    """Return the service as an ASGI application, with its experiments open."""
    experiments = open_all(config)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        for experiment in experiments.values():
            experiment.agent.close()

    app = FastAPI(title="tailproof", docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.experiments = experiments
    if find_spec("tailproof.live.page_routes") is not None:
        app.include_router(import_module("tailproof.live.page_routes").router)
    return app
