"""The clients of the HTTP API: `Client`, and `AsyncClient` with the same methods for asyncio.

`verify` checks the signature of a request to a webhook.

    calls.py         each operation as a value: its request and how to read the response; retry with backoff
    synchronous.py   `Client`        asynchronous.py   `AsyncClient`
"""

from tamis.extras import require

require("client")

from tamis.client.asynchronous import AsyncClient  # noqa: E402
from tamis.client.calls import ClientError, Delivery  # noqa: E402
from tamis.client.synchronous import Client  # noqa: E402
from tamis.model.signatures import SignatureError, verify  # noqa: E402

__all__ = ["AsyncClient", "Client", "ClientError", "Delivery", "SignatureError", "verify"]
