"""The clients of the HTTP API: `Client`, and `AsyncClient` with the same methods for asyncio.

`verify` checks the signature of a request to a webhook.

    calls.py         each operation as a value: its request and how to read the response; retry with backoff
    synchronous.py   `Client`        asynchronous.py   `AsyncClient`
"""

from tamis.client.asynchronous import AsyncClient
from tamis.client.calls import ClientError, Delivery
from tamis.client.synchronous import Client
from tamis.model.signatures import SignatureError, verify

__all__ = ["AsyncClient", "Client", "ClientError", "Delivery", "SignatureError", "verify"]
