"""The messages of a parcel: the columns of envelopes that cross a link, as an Arrow stream.

A message keeps its tenant, source, id and encoding everywhere. What one broker alone knows, such as the DTD
of a source, does not cross.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.model.envelope import ADDED, ENVELOPE, with_added_columns
from tamis.network.parcel import LinkError
from tamis.network.topology import Link, Topology

CROSSING = (
    *("version", "tenant", "source", "id", "offset", "broker", "hops", "encoding", "received"),
    *("topic", "headers", "xml"),
)
"""The columns of a message in a parcel; `broker` is the root, where it entered the network."""

MESSAGES = pa.schema([ENVELOPE.field(name) for name in CROSSING])

_EARLIER = pa.schema([field for field in MESSAGES if field.name not in ADDED])
"""The columns of parcels of earlier versions, which can read a parcel that needs no more."""

_ORDER: Any = [(name, "ascending") for name in ("source", "id", "offset", "broker")]


def pack(messages: pa.Table) -> bytes:
    """The body of a parcel; the same for the same messages in any order."""
    needs_all = any(messages[name].null_count < messages.num_rows for name in ADDED)
    schema = MESSAGES if needs_all else _EARLIER
    ordered = messages.select(schema.names).cast(schema).sort_by(_ORDER).combine_chunks()
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        writer.write_table(ordered)
    return sink.getvalue().to_pybytes()


def unpack(body: bytes, place: str) -> pa.Table:
    """The messages of a parcel; `place` names it in errors."""
    try:
        with pa.ipc.open_stream(body) as reader:
            table = reader.read_all()
    except (pa.ArrowInvalid, OSError) as error:
        raise LinkError("damaged-parcel", f"{place} has no messages that can be read: {error}") from error
    if table.schema not in (MESSAGES, _EARLIER):
        columns = ", ".join(table.schema.names)
        raise LinkError("newer-format", f"{place} has other columns ({columns}): use a newer tamis")
    return with_added_columns(table)


def crossing(messages: pa.Table, topology: Topology, broker: str, link: Link) -> pa.Table:
    """Of a broker's messages, those that cross a link: not those that came over it, nor of barred tenants."""
    behind = pa.array(sorted(topology.behind(broker, link)), pa.string())
    crosses: Any = pc.invert(pc.is_in(messages["broker"], value_set=behind))
    if link.tenants is not None:
        tenants = pa.array(sorted(link.tenants), pa.string())
        crosses = pc.and_(crosses, pc.is_in(messages["tenant"], value_set=tenants))
    return messages.filter(crosses)


def arrived(messages: pa.Table, topology: Topology, broker: str, link: Link, most_hops: int) -> pa.Table:
    """Messages as they arrive over a link: full envelopes, one hop further.

    One that should not have come this way, or from too far, is refused with a code: it becomes a dead letter.
    """
    tenants = [str(name) for name in pc.unique(messages["tenant"]).to_pylist()]
    barred = sorted(name for name in tenants if not link.carries(name))
    if barred:
        reason = f"a parcel from {link.other(broker)} has messages of {', '.join(map(repr, barred))}"
        raise LinkError(
            "barred-tenant", f"{reason}; the link is not for them: is its network.toml another one?"
        )
    behind = pa.array(sorted(topology.behind(broker, link)), pa.string())
    strays: Any = pc.invert(pc.is_in(messages["broker"], value_set=behind))
    hops: Any = pc.add(messages["hops"], pa.scalar(1, pa.int32()))
    far: Any = pc.greater(hops, pa.scalar(most_hops, pa.int32()))
    neighbour = link.other(broker)
    none: Any = pa.scalar(None, pa.string())
    join: Any = pc.binary_join_element_wise
    root: Any = pc.coalesce(messages["broker"], pa.scalar("nowhere"))
    stray_reason = join(
        "the message came from ", neighbour, ", which is not on the way from its root, ", root, ""
    )
    far_reason = join(
        "the message crossed ", pc.cast(hops, pa.string()), f" links, {most_hops} are allowed", ""
    )
    code: Any = pc.if_else(strays, "not-from-parent", pc.if_else(far, "hop-limit", none))
    reason_text: Any = pc.if_else(strays, stray_reason, pc.if_else(far, far_reason, none))
    columns = {name: messages[name] for name in CROSSING} | {
        "hops": hops,
        "code": code,
        "reason": reason_text,
    }
    columns["schema"] = pa.nulls(messages.num_rows, pa.string())
    arrays = [columns[field.name].cast(field.type) for field in ENVELOPE]
    return pa.table(arrays, schema=ENVELOPE)
