"""The participants of the demo; `test_cli.py` runs the demo itself."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis.client import ClientError
from tamis.demo.broker import Broker
from tamis.demo.participants import Participants
from tamis.model.token import Role
from tests.helpers.served import Served, serving, settings_in


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(settings_in(tmp_path)) as served:
        yield served


def broker(served: Served, subscribers: dict[str, str]) -> Broker:
    admin, feed = served.secret(Role.ADMIN), served.secret(Role.PUBLISHER)
    return Broker(served.url, Path("log"), admin, feed, subscribers)


def test_all_published_messages_of_a_feed_are_accepted_whenever_it_ends(served: Served) -> None:
    async def run() -> None:
        async with Participants(broker(served, {})) as participants:
            for number in range(20):
                enough = asyncio.Event()
                messages = [(f"{number}", b"<a/>")]
                feed = asyncio.create_task(participants.publish_until(enough, messages, 5))
                # In the middle of the first request, or soon after it.
                await asyncio.sleep(number * 0.002)
                enough.set()
                await feed
                waiting = (await participants.admin.status())["waiting_messages"]
                assert sum(waiting.values()) == participants.published

    asyncio.run(run())


def test_a_port_in_use_is_an_error(served: Served) -> None:
    async def run() -> None:
        async with Participants(broker(served, {"bob": "no token"})) as participants:
            participants.listen()
            async with asyncio.timeout(60):
                while True:
                    participants.check()
                    await asyncio.sleep(0.01)

    with pytest.raises(ClientError) as refused:
        asyncio.run(run())
    assert refused.value.status == 401
