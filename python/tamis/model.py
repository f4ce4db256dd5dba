"""The values that the API takes and gives."""

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Limits:
    """What a message may cost. Each limit has an error code of its own, `<field>-limit`."""

    document: int = 10 << 20
    """Bytes of a message, as received and as UTF-8."""
    depth: int = 256
    attributes: int = 256
    """Attributes of one element."""
    namespaces: int = 64
    """Namespace declarations of one element."""
    name: int = 1 << 10
    """Bytes of one name."""
    text: int = 1 << 20
    """Bytes of one run of text, attribute value, comment or processing instruction."""
    internal_subset: bool = False
    """Whether an internal DTD subset is read; refused otherwise."""
    expansion: int = 1 << 20
    """Bytes that entity references of one message may add up to."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query that was accepted: its id is the same everywhere, its canonical text too."""

    id: str
    canonical: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages, read: four Arrow tables."""

    nodes: pa.RecordBatch
    """One row per node but the document node, in document order.

    `message`: place in the batch. `node`: number in pre-order; the document node is 0.
    `kind`: element, text, comment or instruction. `namespace`, `name`: of an element; an
    instruction's target is its name. `parent`: node number. `depth`: 1 for the root element.
    `end`: one past the last node of the sub-tree. `tag_path`: of an element, in `tag_paths`.
    `value`: content of text, comments and instructions. `span_start`, `span_end`: bytes in the
    message's UTF-8 form.
    """
    attributes: pa.RecordBatch
    """`message`, `node` (of the element), `namespace`, `name`, `value`."""
    tag_paths: pa.RecordBatch
    """The names from the root down to an element, once for the batch.

    `tag_path`: number. `parent`: the path without its last name, null for a root.
    `namespace`, `name`: of the last name.
    """
    errors: pa.RecordBatch
    """Refused messages: `message`, `code`, `reason`, `offset`, `line`, `column`, and for a limit `value`, `limit`."""
