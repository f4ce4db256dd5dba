"""tamis on Spark: functions from DataFrame to DataFrame for any job, and the job of `tamis run`.

The functions work with batch and streaming DataFrames, classic and Spark Connect. The workers need tamis
installed, and the directory of the snapshot under the same path.

For any Spark job:
    matching.py             match, with_matches: messages → targets
    transforming.py         transform: messages → outputs
    subscriptions.py        match_subscriptions: messages → subscriptions
    values.py               values: messages → a row per element, attribute and text
    frames.py               checks of DataFrames, and the step that Python workers run on them
The job of `tamis run`, in the order of the message flow:
    job.py                  one streaming query per source, restarted after failures
    session.py              the Spark session
    warm_up.py              the plan of a batch, run once before the first message
    pipeline.py             one batch, from envelopes to sinks
    batch_plan.py           a hash of what Spark planned for a batch
    match_and_transform.py  envelopes → matching subscriptions and outputs
    deliveries.py           … → deliveries, dead letters and counts
    broker_links.py         the links of the broker that the job is
    envelope.py             the type of an envelope
    error_causes.py         exceptions of Spark and Java → errors with a code, in one line
connectors/ has sources and sinks as DataFrames, worker/ the code that runs in Python workers.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tamis.extras import require

require("spark")

if TYPE_CHECKING:
    from tamis.spark.matching import match, with_matches
    from tamis.spark.subscriptions import match_subscriptions
    from tamis.spark.transforming import transform
    from tamis.spark.values import values

__all__ = ["match", "match_subscriptions", "transform", "values", "with_matches"]

_MODULES = {
    "match": "matching",
    "match_subscriptions": "subscriptions",
    "transform": "transforming",
    "values": "values",
    "with_matches": "matching",
}


def __getattr__(name: str) -> Any:
    """Import a function on first use: the session of a job is created while the rest is imported."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = function
    return function
