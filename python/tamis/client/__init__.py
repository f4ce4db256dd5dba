"""The service from Python: `Client`, and `AsyncClient` with the same verbs for asyncio."""

from tamis.client.asynchronous import AsyncClient
from tamis.client.calls import ClientError, Delivery
from tamis.client.synchronous import Client

__all__ = ["AsyncClient", "Client", "ClientError", "Delivery"]
