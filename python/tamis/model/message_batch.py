"""Messages of a batch as Arrow arrays: bytes, strings, or structs of these with their envelopes."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from tamis.model.envelope_value import Envelope

if TYPE_CHECKING:
    # Arrow takes 0.2 s to import: functions import it when they need it.
    import pyarrow as pa

Messages: TypeAlias = "pa.Array[Any] | pa.ChunkedArray[Any] | Iterable[bytes | str | None]"
"""Messages of a batch: an Arrow array of bytes or strings, or a Python iterable of them.

Or an array of structs that `with_envelopes` makes.
"""

EnvelopeFields: TypeAlias = tuple[str | None, str | None, str | None, list[tuple[str, str]]]
"""Source, topic, time received, headers."""


def arrow_messages(messages: Messages) -> Any:
    """What speaks Arrow goes as it is, anything else is copied into an Arrow array once."""
    if hasattr(messages, "__arrow_c_array__") or hasattr(messages, "__arrow_c_stream__"):
        return messages
    import pyarrow as pa

    # A string is UTF-8 whatever it declares: in an array of bytes, a byte order mark says so.
    given = [text_message(one) if isinstance(one, str) else one for one in messages]
    return pa.array(given, pa.large_binary())


def with_envelopes(messages: Messages, envelopes: Iterable[Envelope | None]) -> "pa.StructArray":
    """Messages with their envelopes, for `Index.match_batch` and others that take a batch of messages.

    An array of structs with the field `message`, and the envelope's fields.
    """
    import pyarrow as pa

    column: Any = arrow_messages(messages)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    known = list(envelopes)
    given = [Envelope() if one is None else one for one in known]
    texts = [[one.source for one in given], [one.topic for one in given]]
    texts.append([one.received_text for one in given])
    headers = pa.array([list(one.headers.items()) for one in given], pa.map_(pa.string(), pa.string()))
    columns = [column, *(pa.array(text, pa.string()) for text in texts), headers]
    names = ["message", "source", "topic", "received", "headers"]
    return pa.StructArray.from_arrays(
        columns, names, mask=pa.array([one is None for one in known], pa.bool_())
    )


def envelope_fields(envelope: Envelope | None) -> EnvelopeFields | None:
    """An envelope as the kernel takes it."""
    if envelope is None:
        return None
    headers = list(envelope.headers.items())
    return envelope.source, envelope.topic, envelope.received_text, headers


def text_message(text: str) -> bytes:
    """The bytes of a message that came as a string, with a byte order mark, which positions do not count."""
    return ("" if text.startswith("\ufeff") else "\ufeff").encode() + text.encode()
