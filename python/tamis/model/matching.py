"""The values that the API takes and gives."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

CACHE_BYTES = 64 << 20
"""What the caches of one matching thread may hold, unless it is told otherwise."""


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
    bindings: int = 1 << 20
    """Nodes that all blocks of a transformation may bind in one message, and as many that they may take."""
    output: int = 10 << 20
    """Bytes that a transformation may make of one message."""
    outputs: int = 256 << 20
    """Bytes that all transformations together may make of one message."""


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
    """Refused messages: `message`, `code`, `reason`, `offset`, `line`, `column`, `value`, `limit`."""


@dataclass(frozen=True, slots=True)
class Stats:
    """What an index amounts to."""

    generation: int
    segments: int
    targets: int
    queries: int
    """Distinct queries; many targets can share one."""
    index_bytes: int
    """All segments, which is what a snapshot's files hold beside query texts."""
    text_bytes: int
    """The texts of the queries."""
    cache_bytes: int
    """What the caches of matchers at rest hold."""
    cache_states: int
    """States of their automata."""
    cache_clears: int
    """How often a cache was full and started anew."""
    sample: int
    """Messages kept to tell rare conditions from frequent ones."""


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation by its place: what travels to other processes, which map its files."""

    directory: str
    """Of its snapshot, or the URL of the store that it is published in."""
    number: int
    cache_bytes: int = CACHE_BYTES
    """Bounds the caches of one matching thread; 0 is without."""
    stored: bool = False
    """Whether it is a store's, so that a host may copy its files to a cache first."""
    cache: str | None = None
    """That cache, unless a host names its own; none: files are mapped where they are."""


@dataclass(frozen=True, slots=True)
class Found:
    """What matching queries select in messages, and which messages were refused."""

    rows: pa.RecordBatch
    """As `Index.match_elements` and `Index.match_bindings` tell."""
    errors: pa.RecordBatch
    """Refused messages: `message`, `code`, `reason`, `offset`, `line`, `column`, `value`, `limit`."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a message becomes for a target."""

    target: int
    payload: bytes | None
    """The transformed message, or the message itself for a filter; none if the transformation failed."""
    code: str | None = None
    reason: str | None = None
    """Why it failed."""


@dataclass(frozen=True, slots=True)
class Transformed:
    """Matches, and what matching transformations make of the messages."""

    matches: pa.RecordBatch
    """One row per message: as `Index.match_batch` gives them."""
    made: pa.RecordBatch
    """One row per message and matching transformation; a filter has none, it leaves the message as it is.

    `message`, `query`, and `output`: its place in `outputs`. If the transformation failed that is null, and
    `code`, `reason` and for a limit `value` and `limit` say why.
    """
    outputs: "pa.Array[Any]"
    """The bytes of the outputs; equal ones of a message are there once."""


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Queries, taken apart as the planner itself uses them: Arrow tables with `query`, a place, first."""

    queries: pa.RecordBatch
    """`query`, `id`, `canonical` of those that were accepted."""
    steps: pa.RecordBatch
    """The twigs. `step`: number in its query. `parent`: the step above, null for the document node.

    `axis`: child or descendant. `namespace`, `name`: null for any. `branches`: the steps and tests
    that hang from it; more than one makes it a branch point.
    """
    lines: pa.RecordBatch
    """Linear paths with one test at their end.

    `line`: number in its query. `step`: the element its path leads to. `subject`: what is tested
    there, one of element, attribute, text, value, position. `namespace`, `name`: of an attribute,
    null for any. `operator`: exists or a comparison. `text`, `number`: the constant, by its type.
    """
    alternatives: pa.RecordBatch
    """A safe weakening: a query implies that one of its alternatives holds.

    `alternative`: number in its query. `positive`, `negative`: lines that hold, lines that do not.
    `anchors`: steps where these branch. `exact`: whether the alternative also implies the query,
    if each anchor binds one element at most.
    """
    postfix: pa.RecordBatch
    """The boolean tree over top-level paths. `place`, `operator` (path, and, or, not), `argument`.

    The argument of a path is its number, that of `and` and `or` how many operands they take.
    """
    errors: pa.RecordBatch
    """Refused queries: `query`, `code`, `reason`, `offset`, `line`, `column`, `value`, `limit`."""
