"""The envelope a message travels in: what is known of it beside its bytes, as columns."""

from typing import Any

import pyarrow as pa

VERSION = 1
"""The version of this form. A reader of stored envelopes tells by it what to expect."""

_COLUMNS: "list[pa.Field[Any]]" = [
    # Columns that every message has.
    pa.field("version", pa.int32(), nullable=False),
    pa.field("tenant", pa.string(), nullable=False),
    pa.field("source", pa.string(), nullable=False),
    # (source, id) is unique: given by the publisher, or made of where the message stood.
    pa.field("id", pa.string(), nullable=False),
    # Where it stood, for people and for dead letters: file and byte, or topic, partition and offset.
    pa.field("offset", pa.string(), nullable=False),
    # The broker it entered the network at, and how many links it has crossed since.
    pa.field("broker", pa.string()),
    pa.field("hops", pa.int32(), nullable=False),
    # What the bytes are encoded in, where the one who handed them over knows; null: the message says.
    pa.field("encoding", pa.string()),
    # The DTD that messages of its source conform to.
    pa.field("schema", pa.string()),
    pa.field("received", pa.timestamp("us", "UTC"), nullable=False),
    pa.field("xml", pa.binary()),
    # Set where no message could be made of the bytes: `xml` is then their beginning, and it is a dead letter.
    pa.field("code", pa.string()),
    pa.field("reason", pa.string()),
]

ENVELOPE: pa.Schema = pa.schema(_COLUMNS)
