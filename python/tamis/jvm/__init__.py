"""The processes of an embedded Spark, Java and Python, started before PySpark is imported.

    options.py         settings → Spark's configuration, with JVM options for small local jobs
    launch.py          the process, started by `spark-submit` and found by PySpark through its environment
    fork_server.py     the server that forks Spark's Python processes
    fork_client.py     what Spark runs in place of Python: it asks the server
    signals.py         Ctrl-C is for the job, not for its processes
    class_archive.py   the classes that Spark loads, parsed and verified once (AppCDS)

A cluster's `master` gets none of this: PySpark starts its driver as usual.
"""
