"""The messages of a parcel: the columns of envelopes that cross a link, as an Arrow stream.

A message keeps its tenant, source, id and encoding everywhere. What one broker alone knows, such as the DTD
of a source, does not cross.
"""

from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.model.envelope import ADDED, ENVELOPE, with_added_columns
from tamis.network.parcel import LinkError
from tamis.network.topology import FIRST, Link, Topology

CROSSING = (
    *("version", "tenant", "source", "id", "offset", "broker", "hops", "topology", "form"),
    *("encoding", "received", "topic", "headers", "xml"),
)
"""The columns of a message in a parcel; `broker` is the root, where it entered the network."""

MESSAGES = pa.schema([ENVELOPE.field(name) for name in CROSSING])

_SCHEMAS = [
    pa.schema([field for field in MESSAGES if field.name not in chain.from_iterable(ADDED[known:])])
    for known in range(len(ADDED) + 1)
]
"""The columns of parcels by version, oldest first: an earlier one can read a parcel that needs no more."""

_ORDER: Any = [(name, "ascending") for name in ("source", "id", "offset", "broker")]


def pack(messages: pa.Table) -> bytes:
    """The body of a parcel; the same for the same messages in any order."""
    needed = {name for name in MESSAGES.names if messages[name].null_count < messages.num_rows}
    unneeded = (set(MESSAGES.names) - needed) & set(chain.from_iterable(ADDED))
    schema = next(one for one in _SCHEMAS if set(MESSAGES.names) - set(one.names) <= unneeded)
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
    if table.schema not in _SCHEMAS:
        columns = ", ".join(table.schema.names)
        raise LinkError("newer-format", f"{place} has other columns ({columns}): use a newer tamis")
    messages = with_added_columns(table)
    forms = pc.drop_null(pc.unique(messages["form"])).to_pylist()
    if forms:
        raise LinkError("newer-format", f"{place} has messages in the form {forms[0]!r}: use a newer tamis")
    return messages


def crossing(messages: pa.Table, topology: Topology, broker: str, link: Link) -> pa.Table:
    """Of a broker's messages, those that cross a link: not those that came over it, nor of barred tenants.

    Those that entered the network here get the number of the topology, which they keep.
    """
    crossed = messages.filter(crosses(messages, topology, broker, link))
    if topology.number == FIRST:
        return crossed
    own: Any = pc.and_(pc.is_null(crossed["topology"]), pc.equal(crossed["broker"], pa.scalar(broker)))
    numbers: Any = pc.if_else(own, pa.scalar(topology.number, pa.int32()), crossed["topology"])
    return crossed.set_column(crossed.schema.get_field_index("topology"), "topology", numbers)


def crosses(messages: pa.Table, topology: Topology, broker: str, link: Link) -> Any:
    """Whether each message of a broker crosses a link if it is sent everything."""
    outward = pc.invert(came_over(messages, topology, broker, link))
    if link.tenants is None:
        return outward
    tenants = pa.array(sorted(link.tenants), pa.string())
    return pc.and_(outward, pc.is_in(messages["tenant"], value_set=tenants))


def came_over(messages: pa.Table, topology: Topology, broker: str, link: Link) -> Any:
    """Whether the root of each message is behind a link of the broker."""
    behind = pa.array(sorted(topology.behind(broker, link)), pa.string())
    return pc.is_in(messages["broker"], value_set=behind)


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
    numbers: list[Any] = pc.unique(messages["topology"]).to_pylist()
    newest = max((one for one in numbers if one is not None), default=FIRST)
    if newest > topology.number:
        reason = f"a parcel from {link.other(broker)} has messages of topology {newest}"
        raise LinkError(
            "newer-topology",
            f"{reason}, and {topology.number} is known: give this broker the same network.toml",
        )
    strays: Any = pc.invert(came_over(messages, topology, broker, link))
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
