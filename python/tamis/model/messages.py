"""Messages of a batch, as the kernel takes them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    # Arrow takes 0.2 s to import: functions import it when they need it.
    import pyarrow as pa

Messages: TypeAlias = "pa.Array[Any] | pa.ChunkedArray[Any] | Iterable[bytes | str | None]"
"""Messages of a batch: an Arrow array of bytes or strings, or a Python iterable of them."""


def as_arrow(messages: Messages) -> Any:
    """What speaks Arrow goes as it is, anything else is copied into an Arrow array once."""
    if hasattr(messages, "__arrow_c_array__") or hasattr(messages, "__arrow_c_stream__"):
        return messages
    import pyarrow as pa

    # A string is UTF-8 whatever it declares: in an array of bytes, a byte order mark says so.
    given = [text_message(one) if isinstance(one, str) else one for one in messages]
    return pa.array(given, pa.large_binary())


def text_message(text: str) -> bytes:
    """The bytes of a message that came as a string, with a byte order mark, which positions do not count."""
    return ("" if text.startswith("\ufeff") else "\ufeff").encode() + text.encode()
