"""Errors by phase. Each has a stable code, a reason for people and, where there is one, the position."""

from typing import Any


class TamisError(Exception):
    """Base class of all errors of tamis."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.code}: {self.reason}"


class PositionedError(TamisError):
    """An error with a position in a text: byte offset from 0, line and column from 1.

    For a limit, `value` is the actual size and `limit` the allowed one.
    """

    def __init__(
        self,
        code: str,
        reason: str,
        offset: int,
        line: int,
        column: int,
        value: int | None = None,
        limit: int | None = None,
    ) -> None:
        super().__init__(code, reason)
        self.offset = offset
        self.line = line
        self.column = column
        self.value = value
        self.limit = limit

    def __str__(self) -> str:
        return f"{self.code}: {self.reason} (line {self.line}, column {self.column})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by all fields: an error raised in a worker arrives whole."""
        place = (self.offset, self.line, self.column, self.value, self.limit)
        return (type(self), (self.code, self.reason, *place))


class ReadError(PositionedError):
    """A message or DTD that is refused."""


class QueryError(PositionedError):
    """A query that is refused."""


class MatchError(TamisError):
    """Queries that failed, so that it is not known whether a message matches them."""

    def __init__(
        self, targets: list[int], failed: list[int], limit: int, cause: tuple[str, str] | None = None
    ) -> None:
        """`targets` match, `failed` is not known; `cause` is code and reason, if not the work limit."""
        some = ", ".join(map(str, failed[:10])) + (", …" if len(failed) > 10 else "")
        code, self.cause = cause or ("work-limit", f"the query takes more than {limit} steps")
        steps = f"queries of {len(failed)} targets take more than {limit} steps: {some}"
        super().__init__(code, f"{some}: {self.cause}" if cause else steps)
        self.targets = targets
        self.failed = failed


class GenerationError(TamisError):
    """A segment, generation or snapshot that cannot be built, written or opened."""


class DataError(TamisError):
    """Local data that cannot be read; what was attached before stays."""


class CatalogError(TamisError):
    """A catalog that cannot be opened or reached, or that does not hold what was asked for."""


class StoreError(TamisError):
    """A store that cannot be read or written, or a generation that it does not have."""


class SinkError(TamisError):
    """Deliveries or dead letters that cannot be written; nothing of their batch is published."""


class JobError(TamisError):
    """A job that cannot start, or a query of it that ended."""


class FrameError(TamisError):
    """A DataFrame that cannot be matched: a wrong column or argument."""


def marked(text: str, line: int, column: int, width: int = 100) -> str:
    """The line of an error's position, with a caret below the column."""
    lines = text.split("\n")
    shown = lines[line - 1] if line <= len(lines) else ""
    start = max(0, min(column - width // 2, len(shown) - width)) if len(shown) > width else 0
    # A tab would shift the caret.
    window = shown[start : start + width].replace("\t", " ").replace("\r", " ")
    return f"  {window}\n  {' ' * (column - 1 - start)}^"
