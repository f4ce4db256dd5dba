"""Measures filtering, compared with parsing the same bytes by expat.

files.py    documents and queries to measure with, from files and archives
measure.py  one workload: messages against queries, one thread, medians

The measurements need lxml, the extra `bench`; the command line starts without it.
"""

ROUNDS = 7
"""Runs to take the median of."""

CACHE_BYTES = 64 << 20
