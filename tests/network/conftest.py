"""These tests write many small files; none of them cuts the power, so nothing is flushed to disk."""

import os

import pytest


@pytest.fixture(autouse=True)
def no_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `fsync`: on a busy disk it takes minutes in all."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
