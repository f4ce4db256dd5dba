"""The client for asyncio."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from tamis.client import calls
from tamis.client.calls import (
    TIMEOUT,
    Call,
    ClientError,
    Delivery,
    EventReader,
    Json,
    Retry,
    success,
)

T = TypeVar("T")


class AsyncClient:
    """A client of the service.

    A call that fails temporarily (429, 503, no connection) is retried. All calls are idempotent.
    """

    def __init__(self, url: str, token: str) -> None:
        """`url`: of the service. `token`: the secret of a token."""
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.AsyncClient(base_url=url, headers=headers, timeout=TIMEOUT)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Subscriptions.

    async def subscribe(
        self,
        query: str,
        *,
        id: str | None = None,
        subscriber: str | None = None,
        namespaces: Mapping[str, str] | str | None = None,
        delivery_target: str | None = None,
    ) -> Json:
        """Subscribe; `ClientError` with a position if the query is refused."""
        prefixes = dict(namespaces) if isinstance(namespaces, Mapping) else namespaces
        call = calls.subscribe(
            query, id=id, subscriber=subscriber, namespaces=prefixes, delivery_target=delivery_target
        )
        return await self._send(call)

    async def subscriptions(
        self, *, subscriber: str | None = None, state: str | None = None, text: str | None = None
    ) -> AsyncIterator[Json]:
        """All subscriptions, or those that satisfy all given conditions."""
        after = None
        while True:
            call = calls.subscriptions(subscriber=subscriber, state=state, text=text, after=after)
            page = await self._send(call)
            for one in page["subscriptions"]:
                yield one
            after = page["next"]
            if after is None:
                return

    async def subscription(self, id: str) -> Json:
        """One subscription."""
        return await self._send(calls.subscription(id))

    async def change(self, id: str, **changed: Any) -> Json:
        """Change fields of a subscription: query, subscriber, namespaces, delivery_target."""
        return await self._send(calls.change(id, **changed))

    async def pause(self, id: str) -> Json:
        """Pause a subscription: it matches no messages until it is resumed."""
        return await self._send(calls.change(id, state="paused"))

    async def resume(self, id: str) -> Json:
        """Resume a paused subscription."""
        return await self._send(calls.change(id, state="active"))

    async def unsubscribe(self, id: str) -> None:
        """Remove a subscription. It is no error if there is none."""
        try:
            await self._send(calls.unsubscribe(id))
        except ClientError as error:
            if error.status != 404:
                raise

    async def import_subscriptions(self, lines: Iterable[str]) -> Json:
        """Create or change subscriptions from JSON lines; returns the counts and the refused lines."""
        return await self._send(calls.import_subscriptions(lines))

    async def export_subscriptions(self) -> list[str]:
        """All subscriptions of the tenant, as JSON lines for an import."""
        return await self._send(calls.export_subscriptions())

    # Local data.

    async def data_sets(self) -> list[Json]:
        """The data sets that the tenant can use."""
        found: list[Json] = (await self._send(calls.data_sets()))["data"]
        return found

    async def data_set(self, name: str) -> Json:
        """A data set with its versions and the subscriptions that name it."""
        return await self._send(calls.data_set(name))

    async def records(self, name: str, *, start: int = 0, limit: int = 10) -> list[str]:
        """Some records of a data set, in their order."""
        found: list[str] = (await self._send(calls.records(name, start, limit)))["records"]
        return found

    async def put_data(
        self,
        name: str,
        content: bytes,
        *,
        media_type: str = "application/xml",
        record: str | None = None,
        key: str | None = None,
        index: Sequence[str] | None = None,
    ) -> Json:
        """Replace all records of a data set, or create it. `key` and `index` are of a new one."""
        given = {"record": record, "key": key, "index": index}
        return await self._send(calls.put_data(name, content, media_type, **given))

    async def change_data(
        self,
        name: str,
        content: bytes | None = None,
        *,
        media_type: str = "application/xml",
        record: str | None = None,
        delete: Sequence[str] | None = None,
    ) -> Json:
        """Add records, replace those with the same keys, and remove those with keys in `delete`."""
        given = {"record": record, "delete": delete}
        return await self._send(calls.change_data(name, content, media_type, **given))

    async def revert_data(self, name: str, version: int | None = None) -> Json:
        """Go back to an older version: the given one, or the one before the current one."""
        return await self._send(calls.revert_data(name, version))

    async def remove_data(self, name: str) -> None:
        """Remove a data set that no subscription names. It is no error if there is none."""
        try:
            await self._send(calls.remove_data(name))
        except ClientError as error:
            if error.status != 404:
                raise

    # Messages.

    async def publish(
        self,
        xml: str | bytes,
        *,
        id: str | None = None,
        source: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> str:
        """Publish a message; returns its id. The message is durable when this returns."""
        [accepted] = await self._send(calls.publish([(id, xml)], source, headers))
        return accepted

    async def publish_many(
        self,
        messages: Iterable[tuple[str | None, str | bytes]],
        *,
        source: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Publish pairs of an id or None and the XML, all with the same headers; returns the ids."""
        return await self._send(calls.publish(messages, source, headers))

    async def match(
        self,
        xml: str | bytes,
        *,
        query: str | None = None,
        namespaces: Mapping[str, str] | None = None,
        explain: bool = False,
    ) -> Json:
        """Try a message: which subscriptions match, and does the given query?"""
        prefixes = None if namespaces is None else dict(namespaces)
        return await self._send(calls.match(xml, query=query, namespaces=prefixes, explain=explain))

    # Deliveries.

    async def deliveries(
        self, *, after: int = 0, limit: int = 100, subscriber: str | None = None
    ) -> list[Delivery]:
        """Deliveries after a cursor that are not acknowledged, the oldest first."""
        return await self._send(calls.deliveries(after=after, limit=limit, subscriber=subscriber))

    async def events(self, *, after: int = 0, subscriber: str | None = None) -> AsyncIterator[Delivery]:
        """Deliveries as they arrive, without end. Resumes after the last one if the connection is lost."""
        retry = Retry()
        while True:
            try:
                request = calls.events(after, subscriber).request(self._http)
                response = await self._http.send(request, stream=True)
                try:
                    if not response.is_success:
                        await response.aread()
                    delay = retry.delay(response)
                    if delay is None:
                        success(response)
                        reader = EventReader()
                        async for line in response.aiter_lines():
                            retry = Retry()
                            delivery = reader.read(line)
                            if delivery is not None:
                                after = delivery.cursor
                                yield delivery
                finally:
                    await response.aclose()
            except httpx.TransportError as error:
                delay = retry.delay(error)
            await asyncio.sleep(delay or calls.FIRST_DELAY)

    async def acknowledge(
        self, ids: Iterable[str] = (), *, until: int | None = None, subscriber: str | None = None
    ) -> int:
        """Acknowledge deliveries, by id or all up to a cursor; returns how many."""
        return await self._send(calls.acknowledge(ids, until, subscriber))

    # Webhooks.

    async def webhooks(self) -> list[Json]:
        """All webhooks with their status."""
        return await self._send(calls.webhooks())

    async def add_webhook(self, name: str, url: str, *, subscriber: str | None = None) -> Json:
        """Create a webhook for the delivery target `webhook:NAME`. Only this result has its `secret`."""
        return await self._send(calls.add_webhook(name, url, subscriber))

    async def change_webhook(self, name: str, **changed: Any) -> Json:
        """Change fields of a webhook: url, state (`active` or `disabled`)."""
        return await self._send(calls.change_webhook(name, **changed))

    async def rotate_webhook(self, name: str, *, overlap: int | None = None) -> Json:
        """Replace the `secret`; only this result has it. Both sign for `overlap` seconds, or a day."""
        return await self._send(calls.rotate_webhook(name, overlap))

    async def test_webhook(self, name: str) -> Json:
        """Send a test event; returns its result."""
        return await self._send(calls.test_webhook(name))

    async def remove_webhook(self, name: str) -> None:
        """Remove a webhook that no subscription uses. It is no error if there is none."""
        try:
            await self._send(calls.remove_webhook(name))
        except ClientError as error:
            if error.status != 404:
                raise

    # Operations.

    async def dead_letters(
        self,
        *,
        source: str | None = None,
        code: str | None = None,
        since: datetime | None = None,
        limit: int = 100,
    ) -> list[Json]:
        """The newest dead letters; `since`: received since then."""
        call = calls.dead_letters(source=source, code=code, since=since, limit=limit)
        return await self._send(call)

    async def dead_letter(self, key: str) -> Json:
        """One dead letter, with the bytes of its message in base64."""
        return await self._send(calls.dead_letter(key))

    async def replay(
        self,
        letters: Iterable[str] = (),
        *,
        source: str | None = None,
        code: str | None = None,
        since: datetime | None = None,
        again: bool = False,
    ) -> Json:
        """Replay dead letters: put their messages back into the inbox of their source."""
        call = calls.replay(letters=list(letters), source=source, code=code, since=since, again=again)
        return await self._send(call)

    async def status(self) -> Json:
        """The job, and how many messages and deliveries wait."""
        return await self._send(calls.status())

    async def _send(self, call: Call[T]) -> T:
        retry = Retry()
        while True:
            outcome: httpx.Response | httpx.TransportError
            try:
                outcome = await self._http.send(call.request(self._http))
            except httpx.TransportError as error:
                outcome = error
            delay = retry.delay(outcome)
            if delay is None and isinstance(outcome, httpx.Response):
                return call.read(success(outcome))
            await asyncio.sleep(delay or calls.FIRST_DELAY)
