"""The Spark type of an envelope."""

from pyspark.sql.pandas.types import from_arrow_schema

from tamis.model.envelope import ENVELOPE

ENVELOPE_TYPE = from_arrow_schema(ENVELOPE)
