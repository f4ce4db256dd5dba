"""An exception of Spark or Java with its stack traces → an error with a code, in one line with a remedy."""

import re
from dataclasses import dataclass

from tamis.errors import TamisError

UNKNOWN = "spark-failed"

MAX_QUOTED = 300
"""The most characters that are quoted of an exception."""

# A TamisError that was raised in a Python worker, as its traceback shows it.
_OURS = re.compile(r"^tamis\.[\w.]+: (?P<code>[a-z][a-z0-9-]*): (?P<reason>[^\n]+)", re.MULTILINE)

_KAFKA = r"org\.apache\.kafka\.common\.(?:errors|config)\."
_KAFKA_REMEDY = "is a broker there, and can all hosts reach it?"


@dataclass(frozen=True, slots=True)
class _ErrorPattern:
    """A pattern to search for; its group `message` is quoted."""

    pattern: str
    code: str
    remedy: str


_ERROR_PATTERNS = (
    _ErrorPattern(
        r"(?P<message>[^\n]*(?:No space left on device|Disk quota exceeded)[^\n]*)",
        "disk-full",
        "make room: the job then continues by itself",
    ),
    _ErrorPattern(
        rf"{_KAFKA}\w*(?:Authentication|Authorization)Exception(?:: (?P<message>[^\n]*))?",
        "kafka-refused",
        "check user, password and rights in `client`",
    ),
    _ErrorPattern(
        r"(?P<message>[^\n]*(?:data may have been lost|OffsetOutOfRangeException)[^\n]*)",
        "kafka-data-loss",
        "Kafka dropped messages before they were read; remove the source's checkpoint to start again",
    ),
    _ErrorPattern(r"(?P<message>No resolvable bootstrap urls[^\n]*)", "kafka-unreachable", _KAFKA_REMEDY),
    _ErrorPattern(
        rf"{_KAFKA}\w+(?:Exception|Error)(?:: (?P<message>[^\n]*))?", "kafka-unreachable", _KAFKA_REMEDY
    ),
)
"""The first one that matches counts."""


class SparkError(TamisError):
    """A failure on Spark: of a source, a sink, or Spark itself."""


def root_cause(error: Exception, place: str) -> TamisError:
    """The cause of an exception as a `TamisError`; `place` is what was read or written."""
    if isinstance(error, TamisError):
        return error
    text = str(error)
    for pattern in _ERROR_PATTERNS:
        found = re.search(pattern.pattern, text)
        if found:
            return SparkError(
                pattern.code, f"{place}: {_short(found['message'] or found[0])}; {pattern.remedy}"
            )
    ours = _OURS.search(text)
    if ours:
        return SparkError(ours["code"], _short(ours["reason"]))
    causes = re.findall(r"^Caused by: ([^\n]+)", text, re.MULTILINE)
    quoted = causes[-1] if causes else text.strip().partition("\n")[0]
    return SparkError(UNKNOWN, f"{place}: {_short(quoted) or type(error).__name__}; see the log")


def _short(text: str) -> str:
    return text.strip()[:MAX_QUOTED]
