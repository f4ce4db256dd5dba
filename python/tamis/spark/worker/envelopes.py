"""The messages of a batch with their envelopes, as the kernel reads them: for queries with `$envelope`."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.model.headers import unpack_headers

_NAMES = ["message", "source", "topic", "received", "headers"]

_MAP = pa.map_(pa.string(), pa.string())


def messages_with_envelopes(batch: pa.RecordBatch, messages: Any) -> pa.StructArray:
    """A column of messages with the `source`, `topic`, `received` and `headers` of their envelopes."""
    source, topic = (batch.column(name).cast(pa.string()) for name in ("source", "topic"))
    columns = [messages, source, topic, _times(batch.column("received")), _maps(batch.column("headers"))]
    return pa.StructArray.from_arrays(columns, _NAMES)


def messages_in_envelopes(messages: Any, envelopes: Any) -> pa.StructArray:
    """A column of messages with a column of structs that has their envelopes; fields may be missing."""

    def field(name: str, kind: Any) -> Any:
        place = envelopes.type.get_field_index(name)
        return pa.nulls(len(envelopes), kind) if place < 0 else envelopes.field(place)

    received = field("received", pa.string())
    if pa.types.is_timestamp(received.type):
        received = _times(received)
    texts = [field("source", pa.string()), field("topic", pa.string()), received]
    columns = [messages, *(text.cast(pa.string()) for text in texts), field("headers", _MAP).cast(_MAP)]
    return pa.StructArray.from_arrays(columns, _NAMES, mask=envelopes.is_null())


def _times(received: Any) -> Any:
    """Times in the form of `xs:dateTime`, as `Envelope.received_text`."""
    # Without its zone: Arrow would look for the zones of the host.
    plain = received.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).cast(pa.timestamp("us"))
    return pc.strftime(plain, format="%Y-%m-%dT%H:%M:%SZ")


def _maps(headers: Any) -> Any:
    if headers.null_count == len(headers):
        return pa.nulls(len(headers), _MAP)
    return pa.array([list(unpack_headers(stored).items()) for stored in headers.to_pylist()], _MAP)
