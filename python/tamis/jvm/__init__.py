"""The Java process of an embedded Spark, started before PySpark is imported: both take seconds.

    options.py         settings → Spark's configuration, with JVM options for small local jobs
    launch.py          the process, started by `spark-submit` and found by PySpark through its environment
    class_archive.py   the classes that Spark loads, parsed and verified once (AppCDS)

A cluster's `master` gets none of this: PySpark starts its driver as usual.
"""
