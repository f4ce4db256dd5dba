"""What Spark tells in a hundred lines, and Java in a hundred more → an error in one line, with what to do."""

import re
from dataclasses import dataclass

from tamis.errors import TamisError

UNKNOWN = "spark-failed"

LONGEST = 300
"""Characters of what is quoted."""

# An error of ours that was raised in another process, as Python prints it.
_OURS = re.compile(r"^tamis\.[\w.]+: (?P<code>[a-z][a-z0-9-]*): (?P<reason>[^\n]+)", re.MULTILINE)

_KAFKA = r"org\.apache\.kafka\.common\.(?:errors|config)\."
_KAFKA_REMEDY = "is a broker there, and can all hosts reach it?"


@dataclass(frozen=True, slots=True)
class _Sign:
    """Something to look for; its group `told` is what is quoted."""

    pattern: str
    code: str
    remedy: str


_SIGNS = (
    _Sign(
        r"(?P<told>[^\n]*(?:No space left on device|Disk quota exceeded)[^\n]*)",
        "disk-full",
        "make room: it goes on by itself then",
    ),
    _Sign(
        rf"{_KAFKA}\w*(?:Authentication|Authorization)Exception(?:: (?P<told>[^\n]*))?",
        "kafka-refused",
        "check user, password and rights in `client`",
    ),
    _Sign(
        r"(?P<told>[^\n]*(?:data may have been lost|OffsetOutOfRangeException)[^\n]*)",
        "kafka-data-loss",
        "Kafka dropped messages before they were read; without the source's checkpoint it begins anew",
    ),
    _Sign(r"(?P<told>No resolvable bootstrap urls[^\n]*)", "kafka-unreachable", _KAFKA_REMEDY),
    _Sign(rf"{_KAFKA}\w+(?:Exception|Error)(?:: (?P<told>[^\n]*))?", "kafka-unreachable", _KAFKA_REMEDY),
)
"""In the order in which they count."""


class SparkError(TamisError):
    """Something that failed on Spark: a source, a sink, or Spark itself."""


def clear(error: Exception, place: str) -> TamisError:
    """An error as one of ours; `place` is what was being read or written."""
    if isinstance(error, TamisError):
        return error
    text = str(error)
    for sign in _SIGNS:
        found = re.search(sign.pattern, text)
        if found:
            return SparkError(sign.code, f"{place}: {_short(found['told'] or found[0])}; {sign.remedy}")
    ours = _OURS.search(text)
    if ours:
        return SparkError(ours["code"], _short(ours["reason"]))
    causes = re.findall(r"^Caused by: ([^\n]+)", text, re.MULTILINE)
    told = causes[-1] if causes else text.strip().partition("\n")[0]
    return SparkError(UNKNOWN, f"{place}: {_short(told) or type(error).__name__}; the log has all of it")


def _short(text: str) -> str:
    return text.strip()[:LONGEST]
