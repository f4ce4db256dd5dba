"""Measuring: what filtering costs, beside what expat takes merely to parse the same bytes."""
