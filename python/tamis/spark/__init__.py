"""tamis for anybody's Spark job: functions from DataFrame to DataFrame.

They are for batch and streaming DataFrames, classic and Spark Connect. The workers need tamis installed,
and the directory of the snapshot under the same path.
"""

from tamis.spark.matching import match, with_matches
from tamis.spark.transforming import transform

__all__ = ["match", "transform", "with_matches"]
