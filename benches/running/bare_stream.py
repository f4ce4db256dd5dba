"""The least that a stream of files can be in PySpark with default settings: files in, identity, files out.

`python -m benches.running.bare_stream FOLDER [TRIGGER]`: reads `inbox` of the folder, writes its `outbox`.
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession


def main() -> None:
    """Until it is killed."""
    folder, *trigger = sys.argv[1:]
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    rows = spark.readStream.format("text").option("wholetext", True).load(str(Path(folder, "inbox")))
    writer = rows.mapInArrow(lambda batches: batches, "value string").writeStream.format("text")
    if trigger:
        writer = writer.trigger(processingTime=trigger[0])
    writer = writer.option("checkpointLocation", str(Path(folder, "checkpoint")))
    writer.start(str(Path(folder, "outbox"))).awaitTermination()


if __name__ == "__main__":
    main()
