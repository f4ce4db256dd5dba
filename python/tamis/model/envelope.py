"""The envelope of a message: its metadata, as Arrow columns beside its bytes."""

from itertools import chain
from typing import Any

import pyarrow as pa

VERSION = 2
"""The format version of stored envelopes: 2 has the topology and the form."""

_COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("version", pa.int32(), nullable=False),
    pa.field("tenant", pa.string(), nullable=False),
    pa.field("source", pa.string(), nullable=False),
    # (source, id) is unique. The publisher gives the id; else it is derived from the position.
    pa.field("id", pa.string(), nullable=False),
    # The position, for people and dead letters: file and byte, or topic, partition and offset.
    pa.field("offset", pa.string(), nullable=False),
    # The root broker, and the number of links crossed since.
    pa.field("broker", pa.string()),
    pa.field("hops", pa.int32(), nullable=False),
    # The number of the topology that it entered the network with; null: the first one, or no network.
    pa.field("topology", pa.int32()),
    # The form of `xml`; null: XML text. There is no other one yet.
    pa.field("form", pa.string()),
    # The encoding if the transport states it; null: the XML declaration decides.
    pa.field("encoding", pa.string()),
    # The DTD that messages of its source conform to.
    pa.field("schema", pa.string()),
    pa.field("received", pa.timestamp("us", "UTC"), nullable=False),
    # The topic that it was read from; null if it came otherwise.
    pa.field("topic", pa.string()),
    # What the publisher says of it: see `headers`. Null if nothing.
    pa.field("headers", pa.string()),
    pa.field("xml", pa.binary()),
    # Set if the bytes are not a message: a dead letter, with the first bytes in `xml`.
    pa.field("code", pa.string()),
    pa.field("reason", pa.string()),
]

ENVELOPE: pa.Schema = pa.schema(_COLUMNS)

ADDED = (("topic", "headers"), ("topology", "form"))
"""Columns that envelopes which were stored by earlier versions do not have, oldest first."""


def with_added_columns(stored: pa.Table) -> pa.Table:
    """Stored envelopes with the columns that an earlier version did not know, as nulls."""
    for name in chain.from_iterable(ADDED):
        if name not in stored.schema.names:
            field = ENVELOPE.field(name)
            stored = stored.append_column(field, pa.nulls(stored.num_rows, field.type))
    return stored.select([name for name in ENVELOPE.names if name in stored.schema.names])
