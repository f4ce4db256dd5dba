"""Prefix maps: from flags, TOML files and the declarations of a document."""

import argparse
import shlex
import sys
from pathlib import Path

from tamis.cli.documents import DocumentError, read_document
from tamis.errors import QueryError
from tamis.model.matching import Limits

DEFAULT = "default"
"""The prefix that `--namespaces-from` gives to the default namespace of a document."""


def add_namespaces(command: argparse._ActionsContainer) -> None:
    """The flags for a prefix map."""
    command.add_argument(
        "--namespace",
        type=_binding,
        action="append",
        metavar="PREFIX=URI",
        help="bind a prefix; may be repeated. `=URI`: the default namespace, of elements without a prefix",
    )
    command.add_argument(
        "--default-namespace",
        type=lambda uri: ("", uri),
        action="append",
        dest="namespace",
        metavar="URI",
        help="the namespace of elements without a prefix, the same as `--namespace =URI`",
    )
    command.add_argument(
        "--namespaces", type=read_namespaces, metavar="FILE", help='TOML, one line `prefix = "uri"` for each'
    )
    command.add_argument(
        "--namespaces-from",
        type=declared_namespaces,
        metavar="DOC",
        help=f"the prefixes that a document declares; `{DEFAULT}` is its default namespace",
    )


def namespaces_of(options: argparse.Namespace) -> dict[str, str] | None:
    """The prefix map of the flags, `--namespace` first; None if none is given."""
    prefix_maps = [options.namespaces_from, options.namespaces, dict(options.namespace or ())]
    if not any(prefix_maps):
        return None
    return {prefix: uri for some in prefix_maps if some for prefix, uri in some.items()}


def _binding(text: str) -> tuple[str, str]:
    prefix, equals, uri = text.partition("=")
    if not (equals and uri):
        raise argparse.ArgumentTypeError(f"`{text}` has not the form PREFIX=URI")
    return prefix, uri


def read_namespaces(path: str) -> dict[str, str]:
    """A prefix map from a TOML file: its top level, or its table `namespaces`."""
    import tomllib

    try:
        content = tomllib.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{path}: {error}") from error
    table = content.get("namespaces", content)
    if not isinstance(table, dict) or not all(isinstance(uri, str) for uri in table.values()):
        raise argparse.ArgumentTypeError(f'{path}: a prefix map has the form `prefix = "uri"`')
    return table


def binding_hint(error: QueryError, query: str, document: str) -> str | None:
    """The flag that binds the unbound prefix of a refused query as the document does."""
    if error.code != "unbound-prefix":
        return None
    line = query.split("\n")[error.line - 1]
    prefix = line[error.column - 1 :].partition(":")[0].lstrip("</$@")
    try:
        uri = declared_namespaces(document).get(prefix)
    except argparse.ArgumentTypeError:
        return None
    return uri and f"{document} binds `{prefix}`; add --namespace {shlex.quote(f'{prefix}={uri}')}"


def declared_namespaces(name: str) -> dict[str, str]:
    """The prefixes that a document declares anywhere. If it binds one to two URIs, the first counts."""
    from xml.parsers import expat

    found: dict[str, str] = {}

    def declare(prefix: str | None, uri: str | None) -> None:
        if uri and found.setdefault(prefix or DEFAULT, uri) != uri:
            print(f"tamis: {name}: {prefix or DEFAULT} is also bound to {uri}", file=sys.stderr)

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartNamespaceDeclHandler = declare
    try:
        parser.Parse(read_document(name, Limits().document), True)
    except (DocumentError, expat.ExpatError, LookupError) as error:
        raise argparse.ArgumentTypeError(f"{name}: {error}") from error
    return found
