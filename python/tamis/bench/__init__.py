"""Measuring: what filtering costs, beside what expat takes merely to parse the same bytes.

What measures needs lxml, the extra `bench`; the command line comes up without it.
"""

ROUNDS = 7
"""Runs to take the median of."""

CACHE_BYTES = 64 << 20
