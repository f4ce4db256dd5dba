"""The plans of the relational engine: functions from a batch of values to candidates.

Candidates have the columns `CANDIDATE`: a message, an alternative of a query with all that its row says, and
`is_decided`: whether all its lines were tested already, so that nothing is left to join.
"""

from collections.abc import Callable

from pyspark.sql import DataFrame

from tamis.errors import FrameError
from tamis.spark.relational.chain import chain
from tamis.spark.relational.unroll import unroll
from tamis.spark.relational.values_of_batch import BatchOfValues

Plan = Callable[[BatchOfValues], DataFrame]

PLANS: dict[str, Plan] = {"unroll": unroll, "chain": chain}
"""By name. The first is the default."""


def plan_named(name: str | None) -> Plan:
    """The plan of a name; `FrameError` if there is none."""
    if name is None:
        return next(iter(PLANS.values()))
    if name not in PLANS:
        raise FrameError("no-plan", f"there is no plan {name!r}; the plans are {', '.join(PLANS)}")
    return PLANS[name]
