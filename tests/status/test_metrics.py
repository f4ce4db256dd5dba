"""The metrics of a job for Prometheus."""

import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tamis.errors import CatalogError, StoreError
from tamis.status import StatusBoard
from tamis.status.metrics import MetricsError, serve_metrics
from tests.helpers.reports import Clock, run_batch

Samples = dict[tuple[str, ...], float]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def board(tmp_path: Path, clock: Clock) -> StatusBoard:
    return StatusBoard(tmp_path, ["inbox", "orders"], clock)


@pytest.fixture
def port(board: StatusBoard) -> Iterator[int]:
    with serve_metrics(board, "127.0.0.1", 0) as port:
        yield port


def scraped(port: int) -> Samples:
    """Samples by name and label values."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_counters_are_totals_by_source(board: StatusBoard, clock: Clock, port: int) -> None:
    run_batch(board, clock)
    run_batch(board, clock, "orders", messages=10)
    run_batch(board, clock)
    samples = scraped(port)
    names = ("messages", "matched", "unmatched", "dead_letters", "deliveries", "candidates")
    assert [samples[f"tamis_{name}_total", "inbox"] for name in names] == [200, 120, 60, 20, 400, 600]
    assert [samples[f"tamis_{name}_total", "orders"] for name in names] == [10, 6, 3, 1, 20, 30]


def test_gauges(board: StatusBoard, clock: Clock, port: int) -> None:
    samples = scraped(port)
    assert ("tamis_generation",) not in samples, "what is unknown is not 0"
    assert ("tamis_subscriptions",) not in samples
    board.generation(7, 1_000_000)
    run_batch(board, clock, lag={"files": 12})
    samples = scraped(port)
    assert samples["tamis_generation",] == 7
    assert samples["tamis_subscriptions",] == 1_000_000
    assert {key: value for key, value in samples.items() if key[0] == "tamis_lag"} == {
        ("tamis_lag", "files", "inbox"): 12
    }


def test_batches_by_how_long_they_took(board: StatusBoard, clock: Clock, port: int) -> None:
    for seconds in (0.05, 0.5, 7, 1000):
        run_batch(board, clock, seconds=seconds)
    samples = scraped(port)
    counts = {le: samples["tamis_batch_seconds_bucket", le, "inbox"] for le in ("0.1", "0.5", "5.0", "+Inf")}
    assert counts == {"0.1": 1, "0.5": 2, "5.0": 2, "+Inf": 4}
    assert samples["tamis_batch_seconds_count", "inbox"] == 4
    assert samples["tamis_batch_seconds_sum", "inbox"] == pytest.approx(1007.55)


def test_errors_by_source_and_code(board: StatusBoard, port: int) -> None:
    for _ in range(3):
        board.failed("orders", StoreError("store-unreachable", "no room"))
    board.failed("inbox", ValueError("no"))
    board.failed(None, CatalogError("catalog-unreachable", "no server"))
    errors = {key[1:]: value for key, value in scraped(port).items() if key[0] == "tamis_errors_total"}
    assert errors == {
        ("store-unreachable", "orders"): 3,
        ("ValueError", "inbox"): 1,
        ("catalog-unreachable", ""): 1,
    }


def test_a_port_that_is_taken(board: StatusBoard, port: int) -> None:
    with (
        pytest.raises(MetricsError, match=f"metrics-port.*127.0.0.1:{port}"),
        serve_metrics(board, "127.0.0.1", port),
    ):
        pass


def test_the_port_is_free_afterwards(board: StatusBoard) -> None:
    with serve_metrics(board, "127.0.0.1", 0) as port:
        scraped(port)
    with serve_metrics(board, "127.0.0.1", port) as again:
        assert again == port
