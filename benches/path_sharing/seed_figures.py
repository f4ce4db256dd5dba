"""The figures of seed 001 §6.7: tables 8 to 13, the end of figure 6.12. Times are milliseconds."""

OPERATORS = ("engine", "selection", "dupelim", "semijoin", "outerjoin")

BIBLIOGRAPHY_OPERATORS = {
    "none": (28, 61, 451, 140, 235),
    "query": (27, 51, 15, 67, 112),
    "dtd": (9, 42, 0, 18, 22),
}
"""Table 8: PathSharing-FWR, 5,000 queries."""

BOOK_OPERATORS = {
    "none": (36, 101, 560, 225, 287),
    "query": (31, 101, 82, 184, 252),
    "dtd": (21, 93, 30, 137, 163),
}
"""Table 10: PathSharing-FWR, 10,000 queries."""

# Semijoins by hash and by merge, outer joins by hash and by merge, eliminations of duplicates.
BIBLIOGRAPHY_PROFILE = {
    "none": (5_000, 0, 5_000, 0, 15_000),
    "query": (1_966, 3_034, 1_966, 3_034, 429),
    "dtd": (0, 5_000, 0, 5_000, 0),
}
"""Table 9."""

BOOK_PROFILE = {
    "none": (10_000, 0, 10_000, 0, 30_000),
    "query": (5_963, 4_037, 5_963, 4_037, 2_833),
    "dtd": (3_968, 6_032, 3_968, 6_032, 1_500),
}
"""Table 11."""

UNSHARED = {10_000: 516, 20_000: 1_111, 30_000: 1_715, 40_000: 2_344, 50_000: 2_985}
"""Table 12, totals: PathSharing-FWR on the book, by the number of queries."""

SHARED = {10_000: 105, 20_000: 156, 30_000: 212, 40_000: 264, 50_000: 317}
"""Table 13, totals: the same with shared post-processing."""

UNIQUE_PLANS = {10_000: 8_232, 20_000: 16_482, 30_000: 24_576, 40_000: 32_736, 50_000: 40_392}
"""Table 13: plans that differ, by the number of queries."""

SHARED_AT_MOST = (100_000, 472)
"""Figure 6.12: unique plans, and the time with shared post-processing."""
