"""A link by Kafka: a topic for each direction, `PREFIX.SENDER.RECEIVER`, with one partition.

The log of what this end sends is a directory beside the broker. Its parcels are copied to the topic, each in
chunks, by an idempotent producer. What is not acknowledged is copied again after a restart: the receiver
drops what it has.

    log → chunks → topic → chunks → parcels → the next one, or a repeated one, or a reason to stop

The receiver remembers the offset after the last parcel that it stored. From there it expects the next number
of the log, or a new log. An older number with unknown content is that of a log restored from a copy. If
anything else comes, it looks further, and stops if the parcel it needs is not in the topic.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tamis.network.log import LinkLog, UnknownPositionError
from tamis.network.parcel import LINK_ERRORS, LinkError, Parcel, Position
from tamis.network.topology import KafkaCarrier
from tamis.sources.kafka import TIMEOUT_MS
from tamis.storage.files import atomic_file

log = logging.getLogger(__name__)

CHUNK_BYTES = 500_000
"""Of one record: by default a Kafka broker takes up to a megabyte."""

TIMEOUT = TIMEOUT_MS / 1000
PARTITION = 0


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A record of a topic."""

    parcel: str
    """The epoch, the number and the hash of its parcel."""
    at: int
    count: int

    def header(self) -> bytes:
        return json.dumps([self.parcel, self.at, self.count]).encode()

    @staticmethod
    def of(record: Message) -> "_Chunk":
        try:
            parcel, at, count = json.loads(dict(record.headers() or ())[HEADER] or b"")
            return _Chunk(str(parcel), int(at), int(count))
        except (ValueError, TypeError, KeyError) as error:
            place = f"record {record.offset()} of {record.topic()}"
            raise LinkError("damaged-parcel", f"{place} is no part of a parcel: {error}") from error


HEADER = "tamis-parcel"

_THERE = (KafkaError.TOPIC_ALREADY_EXISTS, KafkaError.TOPIC_AUTHORIZATION_FAILED)
"""Errors of creating a topic that another one has created, perhaps because we may not."""

_NOT_YET = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE)
"""Errors of a topic that was created at this moment."""


class KafkaEnd:
    """One end of a link by Kafka. One thread uses it, but for the log."""

    def __init__(
        self, carrier: KafkaCarrier, broker: str, neighbour: str, state: Path, client: Mapping[str, str]
    ) -> None:
        """`state`: a directory for the log and the offset; `client`: more settings of Kafka's clients."""
        self.log = LinkLog(str(state / "logs" / f"{broker}.{neighbour}"))
        self._carrier = carrier
        self._outgoing = _Topic(carrier, f"{carrier.topics}.{broker}.{neighbour}", client)
        self._pushed = ("", 0)
        """The log and the number of the last parcel that is in the topic."""
        self._incoming = _Topic(carrier, f"{carrier.topics}.{neighbour}.{broker}", client)
        self._offset_file = state / "logs" / f"{neighbour}.{broker}.offset"
        self._offset: int | None = None
        """Of the first record that is not settled; None: not read yet."""

    def push(self) -> None:
        epoch = self.log.head.epoch
        waiting = self.log.unacknowledged()
        first = self._pushed[1] + 1 if self._pushed[0] == epoch else 1
        for number in waiting[max(0, first - waiting.start) :]:
            parcel = self.log.parcel(number)
            if parcel.epoch != epoch:
                return
            self._outgoing.write(parcel)
            self._pushed = (epoch, number)

    def incoming(self, after: Position | None, has: Callable[[str], bool]) -> Iterator[Parcel]:
        epoch, number = ("", 0) if after is None else (after.epoch, after.number)
        if self._offset is None:
            self._offset = self._read_offset()
        # Without an offset, all before the position is passed over.
        is_found = after is None or self._offset is not None
        is_restored, problem = False, None
        for parcel, end in self._incoming.parcels(self._offset):
            if isinstance(parcel, LinkError):
                problem = problem or parcel
                continue
            follows = parcel.epoch == epoch and parcel.number == number + 1 and not is_restored
            if follows or (parcel.epoch > epoch and parcel.number == 1):
                yield parcel
                epoch, number = parcel.epoch, parcel.number
                is_found, is_restored, problem = True, False, None
                self._write_offset(end)
            elif has(parcel.hash) or not is_found:
                is_found = is_found or parcel.position == after
                if problem is None and not is_restored:
                    self._offset = end
            elif (parcel.epoch, parcel.number) > (epoch, number):
                missing = (
                    f"{number + 1} to {parcel.number - 1}" if parcel.epoch == epoch else "the first ones"
                )
                reason = f"{self._incoming.name} has lost parcels ({missing}), which were not received here"
                advice = "restart the sender if it still has them, else restore this broker's state"
                problem = problem or LinkError("gap", f"{reason}; {advice}")
            else:
                is_restored = True
        if is_restored:
            raise UnknownPositionError
        if problem is not None:
            raise problem

    def close(self) -> None:
        self._outgoing.close()
        self._incoming.close()

    def _read_offset(self) -> int | None:
        try:
            return int(self._offset_file.read_text())
        except FileNotFoundError:
            return None
        except ValueError:
            log.warning("%s is damaged: the topic is read from its beginning", self._offset_file)
            return None

    def _write_offset(self, offset: int) -> None:
        self._offset = offset
        with LINK_ERRORS.at(self._offset_file):
            self._offset_file.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(self._offset_file) as draft:
                draft.write_text(str(offset))


class _Topic:
    """A topic, which is created if it is missing, and its clients."""

    def __init__(self, carrier: KafkaCarrier, name: str, client: Mapping[str, str]) -> None:
        self.name = name
        self._carrier = carrier
        self._settings: dict[str, str | int | float | bool] = {
            "bootstrap.servers": carrier.servers,
            "socket.timeout.ms": TIMEOUT_MS,
            **carrier.client,
            **client,
        }
        self._exists = False
        self._producer: Producer | None = None
        self._consumer: Consumer | None = None
        self._at = -1
        """The offset that the consumer reads next."""

    def write(self, parcel: Parcel) -> None:
        """Append a parcel; it is stored when this returns."""
        data = parcel.encode()
        name = f"{parcel.epoch}/{parcel.number}/{parcel.hash}"
        pieces = [data[at : at + CHUNK_BYTES] for at in range(0, len(data), CHUNK_BYTES)]
        failures: list[KafkaError] = []

        def written(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failures.append(error)

        with self._errors():
            self._create()
            if self._producer is None:
                more = {"enable.idempotence": True, "message.timeout.ms": TIMEOUT_MS, "linger.ms": 0}
                self._producer = Producer({**self._settings, **more}, logger=log)
            for at, piece in enumerate(pieces):
                header = _Chunk(name, at, len(pieces)).header()
                self._producer.produce(
                    self.name, piece, partition=PARTITION, headers={HEADER: header}, on_delivery=written
                )
            if self._producer.flush(2 * TIMEOUT) or failures:
                # What is still on its way is dropped by the receiver, as a repeated parcel.
                self._producer.purge()
                self._producer = None
                raise KafkaException(*failures[:1])

    def parcels(self, start: int | None) -> Iterator[tuple[Parcel | LinkError, int]]:
        """The parcels from an offset to the end of the topic, each with the offset after it.

        From the first record if the offset is None, or if there is no such record. A parcel that was not
        written to its end has been written again.
        """
        chunks: list[bytes] = []
        begun: _Chunk | None = None
        for record in self._records(start):
            try:
                chunk = _Chunk.of(record)
            except LinkError as error:
                yield error, _end(record)
                continue
            if chunk.at == 0:
                begun, chunks = chunk, []
            if begun is None or (chunk.parcel, chunk.at, chunk.count) != (
                begun.parcel,
                len(chunks),
                begun.count,
            ):
                begun = None
                continue
            chunks.append(record.value() or b"")
            if len(chunks) == chunk.count:
                begun = None
                yield self._decoded(chunk, chunks), _end(record)

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
        self._producer = None

    def _decoded(self, chunk: _Chunk, chunks: list[bytes]) -> Parcel | LinkError:
        try:
            return Parcel.decode(b"".join(chunks), f"parcel {chunk.parcel} in {self.name}")
        except LinkError as error:
            return error

    def _records(self, start: int | None) -> Iterator[Message]:
        """The records that there are now."""
        place = TopicPartition(self.name, PARTITION)
        with self._errors():
            self._create()
            if self._consumer is None:
                more = {"group.id": "tamis", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
                self._consumer = Consumer({**self._settings, **more}, logger=log)
                self._at = -1
            low, high = self._consumer.get_watermark_offsets(place, timeout=TIMEOUT, cached=False)
            at = low if start is None or not low <= start <= high else start
            if at < high and at != self._at:
                self._consumer.assign([TopicPartition(self.name, PARTITION, at)])
        consumer, end = self._consumer, time.monotonic() + TIMEOUT
        while at < high:
            with self._errors():
                record = consumer.poll(0.5)
                if record is None:
                    if time.monotonic() > end:
                        raise LinkError(
                            "link-unreachable", f"{self.name} at {self._carrier.servers}: no answer"
                        )
                    continue
                error = record.error()
                if error is not None:
                    raise KafkaException(error)
            # Where it is now, should the reader not come back.
            at = self._at = _end(record)
            end = time.monotonic() + TIMEOUT
            yield record

    def _create(self) -> None:
        """Create the topic if it is missing; a topic with several partitions has no order."""
        if self._exists:
            return
        admin = AdminClient(self._settings, logger=log)
        retention = {"retention.ms": str(round(self._carrier.retention * 1000))}
        # First of all: to ask for a topic that is missing may create it, with many partitions.
        new = NewTopic(self.name, 1, -1, config=retention)
        try:
            admin.create_topics([new])[self.name].result(TIMEOUT)
        except KafkaException as error:
            if error.args[0].code() not in _THERE:
                raise
        end = time.monotonic() + TIMEOUT
        while (found := admin.list_topics(self.name, TIMEOUT).topics[self.name]).error is not None:
            if found.error.code() not in _NOT_YET or time.monotonic() > end:
                raise KafkaException(found.error)
            time.sleep(0.05)
        if len(found.partitions) != 1:
            reason = f"the topic {self.name} has {len(found.partitions)} partitions"
            raise LinkError("bad-topic", f"{reason}, so it has no order; create it with one")
        self._exists = True

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise Kafka's errors as `LinkError`, and look at the topic again."""
        try:
            yield
        except (KafkaException, BufferError, TimeoutError) as error:
            self._exists = False
            self._at = -1
            known = error.args and isinstance(error.args[0], KafkaError)
            cause = error.args[0].str() if known else str(error) or "no answer"
            reason = f"{self.name} at {self._carrier.servers}: {cause}"
            raise LinkError("link-unreachable", f"{reason}; is the server up, and may we use it?") from error


def _end(record: Message) -> int:
    """The offset after a record."""
    offset = record.offset()
    assert offset is not None
    return offset + 1
