"""Measuring: what filtering costs, beside what expat takes merely to parse the same bytes.

files.py    documents and queries to measure with, from files and archives
measure.py  one workload: messages against queries, one thread, medians

What measures needs lxml, the extra `bench`; the command line comes up without it.
"""

ROUNDS = 7
"""Runs to take the median of."""

CACHE_BYTES = 64 << 20
