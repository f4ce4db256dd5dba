"""Subscriptions and tag paths as tables, for matching by joins (`tamis.spark.relational`). No Spark here.

| file | what it holds |
|---|---|
| `alternative.py` | a query → rows: lines, anchors, access line, and why it must be verified |
| `tables.py` | the tables of a set of subscriptions, as Parquet files with a manifest |
| `schemas.py` | the columns of the tables |
| `path_match.py` | tag paths × linear paths, by the kernel's automaton |
"""
