"""Warnings of queries, printed to standard error."""

import sys
from collections.abc import Iterable

from tamis.errors import marked
from tamis.model.matching import QueryWarning


def print_warnings(query: str, warnings: Iterable[QueryWarning]) -> None:
    """Print each warning with a caret at its position in the query."""
    for warning in warnings:
        print(f"warning: {warning.line}:{warning.column}: {warning.reason}", file=sys.stderr)
        print(marked(query, warning.line, warning.column), file=sys.stderr)
