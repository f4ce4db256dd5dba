"""Exceptions of Spark and Java as errors in one line."""

import pytest

from tamis.errors import SinkError
from tamis.spark.error_causes import MAX_QUOTED, UNKNOWN, root_cause

STACK = "\n\tat org.apache.spark.Some.method(Some.scala:1)\n"

SAID = {
    "disk": ("java.io.IOException: No space left on device", "disk-full", "No space left on device"),
    "timeout": (
        f"Job aborted.{STACK}Caused by: org.apache.kafka.common.errors.TimeoutException: Topic t not present",
        "kafka-unreachable",
        "Topic t not present",
    ),
    "no such host": (
        "org.apache.kafka.common.config.ConfigException: No resolvable bootstrap urls given in x",
        "kafka-unreachable",
        "No resolvable bootstrap urls",
    ),
    "password": (
        "org.apache.kafka.common.errors.SaslAuthenticationException: Invalid credentials",
        "kafka-refused",
        "Invalid credentials",
    ),
    "retention": (
        "Partition t-0's offset was changed from 9 to 5; some data may have been lost",
        "kafka-data-loss",
        "offset was changed",
    ),
    "ours, from another process": (
        "Traceback (most recent):\n  File x\ntamis.connectors.directory.SourceError: no-inbox: gone",
        "no-inbox",
        "gone",
    ),
    "anything": (
        f"java.lang.A: one{STACK}Caused by: java.lang.B: two{STACK}Caused by: java.lang.C: three{STACK}",
        UNKNOWN,
        "java.lang.C: three",
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_one_line_says_what_is_wrong_and_what_to_do(name: str) -> None:
    said, code, quoted = SAID[name]
    error = root_cause(RuntimeError(said), "the place")
    assert error.code == code
    assert quoted in error.reason
    assert "\n" not in error.reason


def test_errors_of_ours_stay_and_long_ones_are_cut() -> None:
    ours = SinkError("sink-full", "x")
    assert root_cause(ours, "the place") is ours
    assert len(root_cause(RuntimeError("x" * 10_000), "the place").reason) < MAX_QUOTED + 100
