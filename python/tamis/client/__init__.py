"""The service from Python: `Client`, and `AsyncClient` with the same verbs for asyncio.

And `verify`, for those who receive what a webhook is sent.
"""

from tamis.client.asynchronous import AsyncClient
from tamis.client.calls import ClientError, Delivery
from tamis.client.synchronous import Client
from tamis.model.signatures import SignatureError, verify

__all__ = ["AsyncClient", "Client", "ClientError", "Delivery", "SignatureError", "verify"]
