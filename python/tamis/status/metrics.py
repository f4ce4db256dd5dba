"""A job's status as Prometheus metrics, served over HTTP."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from tamis.errors import TamisError
from tamis.status import LinkReport, SourceStatus, Status, StatusBoard
from tamis.status.value import BOUNDS

COUNTERS = (
    ("tamis_messages", "Messages read", "read"),
    ("tamis_matched", "Messages that match a subscription", "matched"),
    ("tamis_unmatched", "Messages that match no subscription", "unmatched"),
    ("tamis_dead_letters", "Messages that were refused", "dead"),
    ("tamis_deliveries", "Deliveries made: a message for each subscription that it matches", "deliveries"),
    ("tamis_failed", "Deliveries that could not be made, because a transformation failed", "failed"),
    ("tamis_skipped_entities", "References that were left out of messages", "skipped_entities"),
    ("tamis_candidates", "Candidates: queries that the index could not rule out", "candidates"),
    ("tamis_settled", "Candidates that were decided from what the automaton found", "settled"),
    ("tamis_verified", "Candidates that were decided on the message itself", "verified"),
    ("tamis_verification_steps", "Steps of verification: nodes tried, text searched", "steps"),
    ("tamis_looked_up", "How often verification looked elements up by value", "looked_up"),
    ("tamis_uncached", "Messages that the automaton's cache had no room for", "uncached"),
)
"""Metric, help, and the field of a source's totals; Prometheus appends `_total`."""


GAUGES = (
    ("tamis_cache_bytes", "Bytes in the caches of the worker with most, after the last batch", "cache_bytes"),
    (
        "tamis_subscription_bytes",
        "Bytes of the table of subscriptions that a worker maps",
        "subscription_bytes",
    ),
)
"""Metric, help, and the field of the last batch's report."""


LINK_COUNTERS = (
    (
        "tamis_link_offered_messages",
        "Messages that would cross if the neighbour were sent everything",
        "offered",
    ),
    ("tamis_link_messages", "Messages that crossed to the neighbour", "messages"),
    ("tamis_link_bytes", "Bytes of the parcels of these messages", "bytes"),
    ("tamis_link_received_messages", "Messages that crossed from the neighbour", "received"),
    (
        "tamis_link_in_vain_messages",
        "Of these, messages that nobody here and no other neighbour wanted",
        "in_vain",
    ),
)
"""Metric, help, and the field of a link's report; Prometheus appends `_total`."""

LINK_GAUGES = (
    ("tamis_link_waiting", "Parcels that the neighbour has not acknowledged", "waiting"),
    ("tamis_link_waiting_bytes", "Bytes of these parcels", "waiting_bytes"),
    ("tamis_link_pressed", "1 if sources wait because of this link, 0 if not", "pressed"),
    ("tamis_link_routes", "Rows of what the neighbour wants", "routes"),
    ("tamis_link_routed", "1 if the neighbour is sent only what it wants, 0 if everything", "routed"),
)


class MetricsError(TamisError):
    """Metrics that cannot be served."""


@contextmanager
def serve_metrics(board: StatusBoard, host: str, port: int) -> Iterator[int]:
    """Serve a board's metrics from a thread; yields the port, which the system chooses for 0."""
    registry = CollectorRegistry()
    registry.register(_BoardCollector(board))
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        reason = f"metrics cannot be served on {host}:{port}: {error}; choose another metrics port"
        raise MetricsError("metrics-port", reason) from error
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _BoardCollector(Collector):
    def __init__(self, board: StatusBoard) -> None:
        self._board = board

    def collect(self) -> Iterable[Metric]:
        return metrics(self._board.now())


def metrics(status: Status) -> Iterator[Metric]:
    """A status as metrics."""
    for name, text, field in COUNTERS:
        counter = CounterMetricFamily(name, text, labels=["source"])
        for source in status.sources:
            counter.add_metric([source.name], getattr(source.totals, field))
        yield counter
    yield _errors(status)
    yield _seconds(status.sources)
    yield _lag(status.sources)
    if status.links:
        yield from _links(status.links)
    for name, text, field in GAUGES:
        gauge = GaugeMetricFamily(name, text, labels=["source"])
        for source in status.sources:
            if source.last is not None:
                gauge.add_metric([source.name], getattr(source.last, field))
        yield gauge
    if status.generation is not None:
        yield GaugeMetricFamily("tamis_generation", "The newest generation", status.generation)
    if status.subscriptions is not None:
        text = "Subscriptions that are matched against"
        yield GaugeMetricFamily("tamis_subscriptions", text, status.subscriptions)


def _links(links: Sequence[LinkReport]) -> Iterator[Metric]:
    for name, text, field in LINK_COUNTERS:
        counter = CounterMetricFamily(name, text, labels=["link"])
        for one in links:
            counter.add_metric([one.link], getattr(one, field))
        yield counter
    for name, text, field in LINK_GAUGES:
        gauge = GaugeMetricFamily(name, text, labels=["link"])
        for one in links:
            gauge.add_metric([one.link], getattr(one, field))
        yield gauge
    up = GaugeMetricFamily("tamis_link_up", "1 if the link works", labels=["link"])
    for one in links:
        up.add_metric([one.link], one.state == "up")
    yield up


def _errors(status: Status) -> Metric:
    text = "Failures that were retried: of a source and its sinks, or without a source, of the job"
    errors = CounterMetricFamily("tamis_errors", text, labels=["source", "code"])
    for code, count in status.failures.items():
        errors.add_metric(["", code], count)
    for source in status.sources:
        for code, count in source.failures.items():
            errors.add_metric([source.name, code], count)
    return errors


def _seconds(sources: Iterable[SourceStatus]) -> Metric:
    seconds = HistogramMetricFamily("tamis_batch_seconds", "How long batches took", labels=["source"])
    bounds = (*map(str, BOUNDS), "+Inf")
    for source in sources:
        buckets = list(zip(bounds, accumulate(source.durations.counts), strict=True))
        seconds.add_metric([source.name], buckets, source.durations.seconds)
    return seconds


def _lag(sources: Iterable[SourceStatus]) -> Metric:
    lag = GaugeMetricFamily("tamis_lag", "How much there is still to read", labels=["source", "kind"])
    for source in sources:
        for kind, count in ((source.last and source.last.lag) or {}).items():
            lag.add_metric([source.name, kind], count)
    return lag
