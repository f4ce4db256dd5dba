"""PathMatch: which tag paths of messages match which linear paths of queries, and where (seed 004, 3.4).

The kernel's automaton decides. A tag path is a small document, and a linear path is a query on it; the
bindings of its steps that end at the last node are the positions of branch points (TagPath_BrInfo, 3.5.1):

    tag path /a/b/b/x/@y   document <a><b><b><x y=""/></b></b></a>
    linear path /a//b/x/@y bindings [1, 3, 4] (and not [1, 2, 4]: x is a child of the second b)
    linear path /a//b//@y  bindings [1, 2] and [1, 3]: `//` is ambiguous

Cost: a matching of one small document for each tag path, once.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

from tamis.engine import Index

if TYPE_CHECKING:
    import pyarrow as pa

MAX_BINDINGS = 64
"""Bindings of a tag path and a linear path; where there are more, queries with anchors there are verified."""

LEAF = "tamis-leaf"
"""An attribute of the last element in the document of an element's tag path: only it has one."""

XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"

_STEP = re.compile(r"/(@?)(?:Q\{([^}]*)\})?([^/{}]+)")

LinearPath = tuple[str, str, int]
"""Text, kind of node at its end, number of element steps."""


class PathMatcher:
    """The linear paths of a set of queries, to match tag paths against."""

    def __init__(self, linear_paths: Mapping[int, LinearPath]) -> None:
        """Index the paths, which are given by their hashes."""
        import pyarrow as pa

        self._paths = list(linear_paths.items())
        self._index = Index()
        queries = [f"{text}/@{LEAF}" if kind == "element" else text for _, (text, kind, _) in self._paths]
        targets = pa.array(range(len(queries)), pa.uint64())
        refused = self._index.load(pa.table({"target": targets, "query": pa.array(queries, pa.string())}))
        assert refused.num_rows == 0, refused.to_pylist()[:3]

    def match(self, tag_paths: Mapping[int, str]) -> "pa.Table":
        """The matches of tag paths, which are given by their hashes.

        Rows have `tag_path`, `path`, `bindings` (for each, the depths of the elements that the steps bind)
        and `is_bounded`: False if there are more than `MAX_BINDINGS`, of which `bindings` has none.
        """
        import pyarrow as pa

        hashes = list(tag_paths)
        kinds = [kind_of(text) for text in tag_paths.values()]
        documents = [document(text).encode() for text in tag_paths.values()]
        found: dict[tuple[int, int], list[list[int]]] = {}
        if documents and self._paths:
            rows = self._index.match_bindings(documents, limit=MAX_BINDINGS + 1).rows
            columns: Any = [rows.column("message"), self._index.targets(rows), rows.column("nodes")]
            for place, targets, nodes in zip(*(column.to_pylist() for column in columns), strict=True):
                for target in targets:
                    if self._paths[target][1][1] == kinds[place]:
                        found.setdefault((place, target), []).append(nodes)
        return pa.table(self._columns(found, hashes), schema=path_match_schema())

    def _columns(
        self, found: Mapping[tuple[int, int], list[list[int]]], hashes: list[int]
    ) -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = {"tag_path": [], "path": [], "bindings": [], "is_bounded": []}
        for (place, target), bindings in found.items():
            path, (_, _, steps) = self._paths[target]
            is_bounded = len(bindings) <= MAX_BINDINGS and all(len(nodes) > steps for nodes in bindings)
            unique = sorted({tuple(nodes[:steps]) for nodes in bindings}) if is_bounded else []
            columns["tag_path"].append(hashes[place])
            columns["path"].append(path)
            columns["bindings"].append([list(one) for one in unique])
            columns["is_bounded"].append(is_bounded)
        return columns


def path_match_schema() -> "pa.Schema":
    """The columns of `PathMatcher.match`."""
    import pyarrow as pa

    return pa.schema(
        [
            ("tag_path", pa.int64()),
            ("path", pa.int64()),
            ("bindings", pa.list_(pa.list_(pa.int32()))),
            ("is_bounded", pa.bool_()),
        ]
    )


def kind_of(tag_path: str) -> str:
    """The kind of the node that a tag path leads to."""
    last = _steps(tag_path)[-1]
    return "attribute" if last[0] else "text" if last[2] == "text()" else "element"


def document(tag_path: str) -> str:
    """The small document of a tag path: one element in another, with the path's last node."""
    steps = _steps(tag_path)
    opened, closed = [], []
    for is_attribute, uri, name in steps:
        if is_attribute:
            opened.append(_attribute(uri, name))
        elif name == "text()":
            opened.append(">text")
        else:
            prefix = "xml:" if uri == XML_NAMESPACE else ""
            namespace = "" if prefix else f" xmlns={quoteattr(uri, _WHITE_SPACE)}"
            opened.append(f"{'>' if opened else ''}<{prefix}{name}{namespace}")
            closed.append(f"</{prefix}{name}>")
    if kind_of(tag_path) == "element":
        opened.append(f" {LEAF}=''")
    end = "" if kind_of(tag_path) == "text" else ">"
    return "".join((*opened, end, *reversed(closed)))


_WHITE_SPACE = {"\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}


def _attribute(uri: str, name: str) -> str:
    if not uri:
        return f" {name}=''"
    if uri == XML_NAMESPACE:
        return f" xml:{name}=''"
    return f" xmlns:tamis={quoteattr(uri, _WHITE_SPACE)} tamis:{name}=''"


def _steps(tag_path: str) -> list[tuple[bool, str, str]]:
    # The kernel writes the braces of a URI as U+0001 and U+0002, which no message contains.
    return [
        (bool(at), uri.replace("\x01", "}").replace("\x02", "{"), name)
        for at, uri, name in _STEP.findall(tag_path)
    ]
