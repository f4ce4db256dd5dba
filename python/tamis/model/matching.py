"""Arguments and results of the engine's API."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

CACHE_BYTES = 64 << 20
"""Default bound of the caches of one matching thread."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one message. Each has its own error code, `<field>-limit`."""

    document: int = 10 << 20
    """Bytes of a message, as received and as UTF-8."""
    depth: int = 256
    attributes: int = 256
    """Attributes of one element."""
    namespaces: int = 64
    """Namespace declarations of one element."""
    name: int = 1 << 10
    """Bytes of one name."""
    text: int | None = None
    """Bytes of one run of text, attribute value, comment or processing instruction; None: as `document`."""
    internal_subset: bool = False
    """Whether an internal DTD subset is read. If not, it is refused."""
    skip_unread_entities: bool = False
    """Whether references to entities that were not read (external ones, or those that an external part of the
    DTD may declare) are left out and counted. If not, the message is refused: `unread-entity`."""
    expansion: int = 1 << 20
    """Bytes that the entity references of one message expand to."""
    bindings: int = 1 << 20
    """Nodes that the blocks of one transformation bind in one message; the same limit for returned nodes."""
    tuples: int = 1 << 17
    """Records of local data that one message meets by the joins of all queries."""
    output: int = 10 << 20
    """Bytes of the output of one transformation for one message."""
    outputs: int = 256 << 20
    """Bytes of the outputs of all transformations for one message."""
    work: int = 1 << 28
    """Steps of one query on one message: nodes that are tried, each 16 bytes of text that are searched, and
    bytes of texts that functions make."""


@dataclass(frozen=True, slots=True, order=True)
class Line:
    """A linear path with at most one test, as canonical text: `//item/price>50`."""

    text: str
    path: str
    """The same without the test: `//item/price`."""

    @property
    def untested(self) -> "Line":
        """The line without its test."""
        return Line(self.path, self.path)


@dataclass(frozen=True, slots=True)
class Weakening:
    """A weaker query: every message that the query matches satisfies all lines of one alternative."""

    text: str
    """As a canonical query: `true()` if nothing is necessary, `false()` if the query never matches."""
    alternatives: tuple[tuple[Line, ...], ...]


@dataclass(frozen=True, slots=True)
class QueryWarning:
    """A warning about what is probably not intended, such as a query that can never match."""

    code: str
    reason: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Query:
    """An accepted query. Its id is a hash of its canonical text: the same everywhere."""

    id: str
    canonical: str
    warnings: tuple[QueryWarning, ...] = field(default=(), compare=False)
    """Of the text: another spelling of the same query may have none."""
    data: frozenset[str] = field(default=frozenset(), compare=False)
    """The names of the local data in it. Whether there is such data is not known here."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Parsed messages as four Arrow tables."""

    nodes: "pa.RecordBatch"
    """One row per node but the document node, in document order.

    `message`: place in the batch. `node`: number in pre-order; the document node is 0.
    `kind`: element, text, comment or instruction. `namespace`, `name`: of an element; an
    instruction's target is its name. `parent`: node number. `depth`: 1 for the root element.
    `end`: one past the last node of the sub-tree. `tag_path`: of an element, in `tag_paths`.
    `value`: content of text, comments and instructions. `span_start`, `span_end`: bytes in the
    message's UTF-8 form.
    """
    attributes: "pa.RecordBatch"
    """`message`, `node` (of the element), `namespace`, `name`, `value`."""
    tag_paths: "pa.RecordBatch"
    """The names from the root down to an element, once for the batch.

    `tag_path`: number. `parent`: the path without its last name, null for a root.
    `namespace`, `name`: of the last name.
    """
    errors: "pa.RecordBatch"
    """Refused messages: `message`, `code`, `reason`, `offset`, `line`, `column`, `value`, `limit`."""


@dataclass(frozen=True, slots=True)
class Values:
    """The elements, attributes and text nodes of messages as rows that can be joined."""

    rows: "pa.Table"
    """In document order; the attributes of an element follow it.

    `message`: place in the batch. `node`: number in pre-order, of an attribute that of its element.
    `kind`: element, attribute or text. `path`: the names from the root down, with namespaces as
    `Q{uri}name`: `/a/b`, `/a/b/@x`, `/a/b/text()`. `path_hash`: 64 bits of its hash. `elements`: the
    nodes of the elements on the path; the last is the row's own or the one that contains it.
    `position`: of an element among siblings of its name, of a text among the texts of its parent, from 1.
    `element_position`: among all sibling elements. `text`: the string-value; of one longer than 64
    bytes only its beginning, with its `length` in bytes and 128 bits of its `hash`. `number`: its
    value by XPath's `number()`; null if it is no number.
    """
    errors: "pa.RecordBatch"
    """Refused messages: `message`, `code`, `reason`, `offset`, `line`, `column`, `value`, `limit`."""


@dataclass(frozen=True, slots=True)
class CacheBytes:
    """Bytes of each cache of the idle matchers."""

    automaton: int = 0
    """States of the lazy DFA, with copies of the rows that they lead to."""
    probes: int = 0
    """Which conditions short values satisfy."""
    values: int = 0
    """Which constants values equal; of fixed size for each segment."""
    transformations: int = 0
    """Plans and buffers of transformations."""
    memo: int = 0
    """Buffers of what verification remembers during a message."""
    twigs: int = 0
    """Queries compiled for `match_elements` and `match_bindings`."""
    records: int = 0
    """Records of local data that messages met."""

    @property
    def total(self) -> int:
        kept = self.automaton + self.probes + self.values + self.transformations + self.memo + self.twigs
        return kept + self.records


@dataclass(frozen=True, slots=True)
class Stats:
    """Statistics of an index."""

    generation: int
    segments: int
    targets: int
    queries: int
    """Distinct queries; many targets can share one."""
    index_bytes: int
    """Bytes of all segments: the files of a snapshot without the query texts."""
    text_bytes: int
    """Bytes of the query texts."""
    cache_bytes: int
    """Bytes of the automaton, its probes and transformations: what the bound on caches counts."""
    cache_states: int
    """States of their lazy DFAs."""
    cache_clears: int
    """How often a full cache was cleared."""
    sample: int
    """Messages in the sample that selectivity is estimated from."""
    caches: CacheBytes = CacheBytes()
    """Every cache of the idle matchers."""


@dataclass(frozen=True, slots=True)
class AttachedData:
    """Local data in files, as other processes attach it."""

    tenant: str
    name: str
    directory: str
    manifest: str
    """The file of the directory that names the others."""


@dataclass(frozen=True, slots=True)
class Generation:
    """A reference to a generation: directory and number. Other processes open it by this."""

    directory: str
    """The directory of its snapshot, or the URL of its store."""
    number: int
    cache_bytes: int = CACHE_BYTES
    """Bound of the caches of one matching thread; 0: no caches."""
    stored: bool = False
    """Whether `directory` is a store, whose files a host may copy to its cache."""
    cache: str | None = None
    """The cache, unless a host sets its own; None: files are mapped in place."""
    data: tuple[AttachedData, ...] = ()
    """The local data of a snapshot. That of a store's generation is in its manifest."""
    open_bytes: int | None = None
    """Of several shards: the bytes of segments that a matching thread keeps open; None: the default."""


@dataclass(frozen=True, slots=True)
class Found:
    """The nodes that matching queries select, and the refused messages."""

    rows: "pa.RecordBatch"
    """See `Index.match_elements` and `Index.match_bindings`."""
    errors: "pa.RecordBatch"
    """Refused messages: `message`, `code`, `reason`, `offset`, `line`, `column`, `value`, `limit`."""


@dataclass(frozen=True, slots=True)
class Output:
    """The output of a message for a target."""

    target: int
    payload: bytes | None
    """The transformed message, or the message itself for a filter; None if the transformation failed."""
    code: str | None = None
    reason: str | None = None
    """Why it failed."""


@dataclass(frozen=True, slots=True)
class Transformed:
    """Matches, and the outputs of matching transformations."""

    matches: "pa.RecordBatch"
    """One row per message: as `Index.match_batch` gives them."""
    made: "pa.RecordBatch"
    """One row per message and matching transformation. A filter has none: its output is the message.

    `message`, `query`, and `output`: an index into `outputs`. If the transformation failed, `output` is null
    and `code`, `reason` and, for a limit, `value` and `limit` give the cause.
    """
    outputs: "pa.Array[Any]"
    """The bytes of the outputs; equal outputs of a message are stored once."""


@dataclass(frozen=True, slots=True)
class Decomposition:
    """The decomposition of queries that the planner uses: Arrow tables. `query` is the place of the query."""

    queries: "pa.RecordBatch"
    """`query`, `id`, `canonical` of those that were accepted."""
    steps: "pa.RecordBatch"
    """The twigs. `step`: number in its query. `parent`: the step above, null for the document node.

    `axis`: child or descendant. `namespace`, `name`: null for any. `branches`: the steps and tests
    that hang from it; more than one makes it a branch point.
    """
    lines: "pa.RecordBatch"
    """Linear paths with one test at their end.

    `line`: number in its query. `step`: the element its path leads to. `subject`: what is tested
    there, one of element, attribute, text, value, position. `namespace`, `name`: of an attribute,
    null for any. `operator`: exists, a comparison, or `normalize-space =`, which compares the value
    without superfluous white space. `text`, `number`: the constant, by its type. `length`, `hash`: of a
    text that is longer than those of `Values`. `path`: the whole path without its test, as canonical
    text: `//b/@x`; `path_hash`: 64 bits of its hash. `steps`: those of the path, from the root down, so
    that an anchor stands on it where its number is.
    """
    alternatives: "pa.RecordBatch"
    """A safe weakening: a query implies that one of its alternatives holds.

    `alternative`: number in its query. `positive`, `negative`: lines that hold, lines that do not.
    `anchors`: steps where these branch. `exact`: whether the alternative also implies the query,
    if each anchor binds one element at most; if not, `reason` says why. `counted`: a step of which
    only the element at `position` counts, among those for which all `counted_lines` hold; or null.
    """
    postfix: "pa.RecordBatch"
    """The boolean tree over top-level paths. `place`, `operator` (path, and, or, not), `argument`.

    The argument of a path is its number, that of `and` and `or` how many operands they take.
    """
    errors: "pa.RecordBatch"
    """Refused queries: `query`, `code`, `reason`, `offset`, `line`, `column`, `value`, `limit`."""
