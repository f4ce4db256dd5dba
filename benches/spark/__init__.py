"""Matching on Spark, measured."""
