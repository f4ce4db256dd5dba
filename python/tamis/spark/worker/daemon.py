"""The process that Python workers are forked from, for an embedded Spark: `spark.python.daemon.module`.

PySpark's daemon imports nothing before it forks, so every worker spends a second on imports.
This one imports first what the job's workers need. What it imports starts no thread but that of jemalloc,
which handles forks.
"""

import os

# Its threads would not survive a fork.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys

from pyspark.daemon import manager

from tamis.spark.worker.without_pandas import without_pandas

if __name__ == "__main__":
    if sys.argv[1:] == ["pyspark.worker"]:
        import pyspark.worker  # noqa: F401

        import tamis.spark.connectors.inbox
        import tamis.spark.connectors.publishing
        import tamis.spark.match_and_transform  # noqa: F401
    without_pandas()
    manager()
