"""The state of a job's batches, without Spark.

`batch_log.py`: which generation each batch is matched against, and its counts.
"""
