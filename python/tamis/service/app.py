"""The application: routers, with access control and the request log around them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

import tamis
from tamis.service import errors, page
from tamis.service.api import (
    data,
    deliveries,
    docs,
    health,
    matching,
    messages,
    state,
    subscriptions,
    token,
    webhooks,
)
from tamis.service.api import dead_letters as letters
from tamis.service.api.security import AccessControl
from tamis.service.logs import RequestLog
from tamis.service.service import Service


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    async with service.running():
        yield


def application(service: Service) -> FastAPI:
    """The service as an ASGI application."""
    app = FastAPI(
        title="tamis",
        description="Subscribe to XML messages by query, publish them, receive what matches.",
        version=tamis.__version__,
        responses=errors.ERROR_RESPONSES,
        # FastAPI's own pages load scripts from other hosts.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
    )
    app.state.service = service
    errors.install(app)
    for module in (
        health,
        subscriptions,
        webhooks,
        data,
        messages,
        matching,
        deliveries,
        letters,
        state,
        token,
        docs,
        page,
    ):
        app.include_router(module.router)
    docs.complete(app)
    # The middleware added last is the outermost.
    app.add_middleware(AccessControl, service=service)
    app.add_middleware(RequestLog, metrics=service.metrics)
    return app
