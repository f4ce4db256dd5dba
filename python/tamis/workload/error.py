"""Errors of workload parameters."""

from tamis.errors import TamisError


class WorkloadError(TamisError, ValueError):
    """Parameters that contradict each other or the DTD."""
