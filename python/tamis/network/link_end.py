"""One end of a link: publishes messages, stores what arrives, acknowledges it, deletes what is acknowledged.

    a batch → parcel → log → … → log of the neighbour → arrivals → acknowledgement → …

Every step can be repeated: a parcel is published once for its key, stored once by its position and its hash.
What cannot be continued (a damaged parcel, a barred tenant, a newer format, a gap) stops what arrives over
the link, and the status says why; it is tried again at each exchange: a repaired link continues by itself.
"""

import itertools
import json
import logging
import threading
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa

from tamis.model.link import LinkState
from tamis.network.arrivals import Arrivals
from tamis.network.carrier import Carrier, open_carrier
from tamis.network.log import KEEP, UnknownPositionError
from tamis.network.messages import arrived, crossing, pack, unpack
from tamis.network.parcel import LinkError, Parcel, Position
from tamis.network.topology import Link, Topology

log = logging.getLogger(__name__)

MOST_HOPS = 32
"""A message that crossed more links is refused."""

ACKNOWLEDGE_AFTER = 64
"""So many acknowledgements are acknowledged at once: one for each would never end."""

MOST_BYTES = 1 << 30
"""A log with more bytes that are not acknowledged is full."""

ROOM = 0.75
"""It stays full until only this share of them is left."""

COUNTED = 64

WANTED = "wanted"
"""A column of a batch: whether the neighbour wants the message; without it, it is sent everything."""


@dataclass(slots=True)
class Traffic:
    """The messages of one end since the process started, but for those of repeated batches."""

    offered: int = 0
    """That would cross if the neighbour were sent everything."""
    messages: int = 0
    """That crossed."""
    bytes: int = 0
    """Of their parcels."""
    received: int = 0
    in_vain: int = 0
    """Of those, that neither a subscription here nor another neighbour wanted."""


@dataclass(frozen=True, slots=True)
class LinkStatus:
    """One end of a link at one moment."""

    link: str
    neighbour: str
    state: LinkState = "up"
    code: str = ""
    reason: str = ""
    epoch: str = ""
    began: str = ""
    """Why the log of what is sent began."""
    sent: int = 0
    """The number of the last parcel."""
    acknowledged: int = 0
    waiting_bytes: int = 0
    """Of what is not acknowledged."""
    received: int = 0
    """The number of the last stored parcel, in the log of the neighbour."""


class LinkEnd:
    """The end of a link at a broker. One thread exchanges; any thread publishes."""

    def __init__(
        self,
        topology: Topology,
        broker: str,
        link: Link,
        arrivals: Arrivals,
        carrier: Carrier,
        *,
        most_hops: int = MOST_HOPS,
        keep: float = KEEP,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self.link = link
        self.topology = topology
        self.broker = broker
        self._arrivals = arrivals
        self._carrier = carrier
        self._most_hops = most_hops
        self._keep = keep
        self.most_bytes = most_bytes
        self._is_full = False
        # What was stored before a restart may not be acknowledged.
        self._owed = 0 if arrivals.position(link.name) is None else ACKNOWLEDGE_AFTER
        """How many acknowledgements were stored since the last one was sent; more if anything else was."""
        self._asked: Position | None = None
        """The position that the neighbour reported as unknown."""
        self.status = LinkStatus(link.name, link.other(broker))
        self.on_notice: Callable[[bytes], None] = _ignored
        """Called with each notice that arrives."""
        self.traffic = Traffic()
        self._counting = threading.Lock()
        self._process = uuid.uuid4().hex
        self._notices = itertools.count()
        self._counted: deque[str] = deque(maxlen=COUNTED)
        """The last batches whose messages in vain were counted: one that is repeated is not counted again."""

    @property
    def epoch(self) -> str:
        """The log that messages and notices are sent in."""
        return self._carrier.log.head.epoch

    @property
    def is_full(self) -> bool:
        """Whether the log has so much to send that roots must wait; what is under way is sent anyway."""
        with suppress(LinkError):
            waiting = self._carrier.log.waiting_bytes()
            self._is_full = waiting >= self.most_bytes * (ROOM if self._is_full else 1)
        return self._is_full

    @property
    def in_vain(self) -> int:
        """How many of the messages that arrived nobody wanted."""
        return self.traffic.in_vain

    def send(self, notice: bytes) -> None:
        """Publish a notice about routes."""
        self._carrier.log.publish("interest", f"interest:{self._process}/{next(self._notices)}", notice)

    def publish(self, key: str, messages: pa.Table) -> Position | None:
        """Publish the messages of a batch that cross this link; their parcel, None if none crosses."""
        crosses = crossing(messages, self.topology, self.broker, self.link)
        offered = crosses.num_rows
        if WANTED in crosses.schema.names:
            crosses = crosses.filter(crosses[WANTED])
        with self._counting:
            last = self._carrier.log.last
            body = pack(crosses) if crosses.num_rows else b""
            position = self._carrier.log.publish("messages", key, body) if body else None
            if position is None or position.number > last:
                self.traffic.offered += offered
                self.traffic.messages += crosses.num_rows
                self.traffic.bytes += len(body)
        return position

    def count_in_vain(self, key: str, messages: int) -> None:
        """Add messages of a batch that arrived over this link in vain."""
        if key not in self._counted:
            self._counted.append(key)
            self.traffic.in_vain += messages

    def exchange(self) -> LinkStatus:
        """Send and receive all there is."""
        state: tuple[LinkState, str, str] = ("up", "", "")
        try:
            self._carrier.push()
            self._receive()
            self._carrier.log.trim(keep=self._keep)
            self._carrier.push()
        except LinkError as error:
            kind: LinkState = "unreachable" if error.code == "link-unreachable" else "stopped"
            state = (kind, error.code, error.reason)
        self._report(*state)
        return self.status

    def close(self) -> None:
        self._carrier.close()

    def _receive(self) -> None:
        """Store what follows the last stored parcel, and acknowledge it."""
        position = self._arrivals.position(self.link.name)
        try:
            has = partial(self._arrivals.has, self.link.name)
            for parcel in self._carrier.incoming(position, has):
                self._store(parcel)
        except UnknownPositionError:
            self._ask(position)
            return
        finally:
            with suppress(LinkError):
                self._acknowledge()

    def _store(self, parcel: Parcel) -> None:
        name = self.link.name
        messages = None
        if not self._arrivals.has(name, parcel.hash):
            if parcel.kind == "messages":
                place = f"parcel {parcel.number} of {self.link.other(self.broker)}"
                sent = unpack(parcel.body, place)
                messages = arrived(sent, self.topology, self.broker, self.link, self._most_hops)
            elif parcel.kind == "acknowledgements":
                self._confirm(parcel)
        is_notice = parcel.kind == "interest" and not self._arrivals.has(name, parcel.hash)
        self._arrivals.store(name, parcel, messages)
        self.traffic.received += 0 if messages is None else messages.num_rows
        if is_notice:
            # A notice that is lost in a crash is asked for again: each process begins with a question.
            self.on_notice(parcel.body)
        self._owed += 1 if parcel.kind == "acknowledgements" else ACKNOWLEDGE_AFTER

    def _confirm(self, parcel: Parcel) -> None:
        """The neighbour has stored what we sent up to a position."""
        try:
            value = json.loads(parcel.body)
            position = Position(value["epoch"], value["number"], value["hash"])
        except (ValueError, KeyError, TypeError) as error:
            reason = f"parcel {parcel.number} is no acknowledgement that is known: use a newer tamis"
            raise LinkError("newer-format", reason) from error
        if not self._carrier.log.confirm(position):
            log.warning("link %s: a new log began: %s", self.link.name, self._carrier.log.head.reason)

    def _acknowledge(self) -> None:
        position = self._arrivals.position(self.link.name)
        if self._owed >= ACKNOWLEDGE_AFTER and position is not None:
            self._send_position(position, "ack")
            self._owed = 0

    def _ask(self, position: Position | None) -> None:
        """Ask the neighbour to continue from a position, which its log does not know.

        In a log of our own that begins anew: if both logs were restored from one copy, neither would be read.
        """
        if position is not None and self._asked != position:
            self._carrier.log.begin("the neighbour's log does not know what it sent here")
            self._send_position(position, f"ask-{self._carrier.log.head.epoch}")
            self._asked = position

    def _send_position(self, position: Position, stream: str) -> None:
        body = {"epoch": position.epoch, "number": position.number, "hash": position.hash}
        key = f"{stream}:{position.epoch}/{position.number}/{position.hash}"
        self._carrier.log.publish("acknowledgements", key, json.dumps(body).encode())

    def _report(self, state: LinkState, code: str, reason: str) -> None:
        """Update the status; a change of the state is logged once."""
        before = self.status
        received = self._arrivals.position(self.link.name)
        status = replace(before, state=state, code=code, reason=reason)
        with suppress(LinkError):
            head = self._carrier.log.head
            status = replace(
                status,
                epoch=head.epoch,
                began=head.reason,
                sent=self._carrier.log.last,
                acknowledged=head.acknowledged,
                waiting_bytes=self._carrier.log.waiting_bytes(),
                received=received.number if received else 0,
            )
        self.status = status
        if (before.state, before.code) != (state, code):
            say = log.info if state == "up" else log.error
            say("link %s: %s %s %s", self.link.name, state, code, reason)


def _ignored(notice: bytes) -> None:
    """Without routing, everything is sent."""


def open_links(
    topology: Topology,
    broker: str,
    state: Path,
    *,
    most_hops: int = MOST_HOPS,
    keep: float = KEEP,
    client: Mapping[str, str] = MappingProxyType({}),
    most_bytes: int = MOST_BYTES,
) -> Sequence[LinkEnd]:
    """The ends of all links of a broker; `state` is a directory of its own for them.

    `client`: settings of this broker's Kafka clients.
    """
    arrivals = Arrivals(state)
    return [
        LinkEnd(
            topology,
            broker,
            link,
            arrivals,
            open_carrier(link, broker, state, client),
            most_hops=most_hops,
            keep=keep,
            most_bytes=most_bytes,
        )
        for link in topology.links_of(broker)
    ]
