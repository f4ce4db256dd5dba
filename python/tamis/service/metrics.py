"""Metrics for Prometheus: those of the job, from its status file, and those of the service."""

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tamis.service.background.supervisor import Supervisor
from tamis.service.inbox_writer import InboxWriter
from tamis.service.webhooks.dead_letters import DeadLetterWriter
from tamis.service.webhooks.sender import Sender
from tamis.settings import Settings
from tamis.status import StatusError, read_status
from tamis.status.metrics import metrics


class ServiceMetrics:
    """The metrics of a service."""

    def __init__(
        self,
        settings: Settings,
        inboxes: InboxWriter,
        supervisor: Supervisor | None,
        sender: Sender,
        dead_letters: DeadLetterWriter,
    ) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_StateCollector(settings, inboxes, supervisor, sender, dead_letters))
        self._requests = Counter(
            "tamis_requests", "Requests answered", ["method", "route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "tamis_request_seconds", "How long answers took", ["route"], registry=self._registry
        )

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request. `route`: the pattern of its path."""
        self._requests.labels(method, route, status).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """All metrics, in Prometheus's text format."""
        return generate_latest(self._registry)


class _StateCollector(Collector):
    """Values that are read at each scrape."""

    def __init__(
        self,
        settings: Settings,
        inboxes: InboxWriter,
        supervisor: Supervisor | None,
        sender: Sender,
        dead_letters: DeadLetterWriter,
    ) -> None:
        self._settings = settings
        self._inboxes = inboxes
        self._supervisor = supervisor
        self._sender = sender
        self._dead_letters = dead_letters

    def describe(self) -> Iterable[Metric]:
        """Nothing: registering must not read the catalog."""
        return ()

    def collect(self) -> Iterator[Metric]:
        waiting = GaugeMetricFamily("tamis_waiting", "Messages that wait in an inbox", labels=["source"])
        for source in self._inboxes.sources:
            waiting.add_metric([source.name], self._inboxes.waiting(source))
        yield waiting
        yield from self._webhooks()
        if self._supervisor is not None:
            text = "How often the job was started"
            yield GaugeMetricFamily("tamis_job_starts", text, self._supervisor.state.starts)
        try:
            yield from metrics(read_status(self._settings.state))
        except StatusError:
            # No job has run yet.
            return

    def _webhooks(self) -> Iterator[Metric]:
        for name, text, count in (
            ("sent", "Deliveries that arrived at webhooks", self._sender.counts.sent),
            ("failed", "Attempts to send to webhooks that failed", self._sender.counts.failed),
            ("dead", "Deliveries to webhooks that became dead letters", self._dead_letters.written),
        ):
            yield CounterMetricFamily(f"tamis_webhook_{name}", text, count)
        text = "Deliveries that wait to be sent to webhooks"
        yield GaugeMetricFamily("tamis_webhook_waiting", text, self._sender.waiting())
