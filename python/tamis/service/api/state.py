"""`/v1/status`, `/v1/sources`, `/v1/sinks`, `/v1/network` and `/metrics`.

An admin of the tenant without a name is an admin of the whole broker and sees everything; others see what
belongs to their tenant.
"""

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime

from fastapi import APIRouter, Response

from tamis.service.api.security import Admin, Anyone, Caller, Publisher
from tamis.service.api.values import ResponseModel, example
from tamis.service.errors import ServiceError
from tamis.service.service import CurrentService, Service
from tamis.settings import ConsoleSink, DirectorySink, Sink, Source
from tamis.sources.directory import DirectorySource
from tamis.status import Failure, LinkReport, SourceStatus, StatusError, read_status

router = APIRouter()


class JobResponse(ResponseModel):
    """The job, as of its last report."""

    version: str
    """The version of tamis."""
    state: str
    """`starting`, `running`, `stopping`, `stopped` or `died`."""
    started: datetime
    """When the job started."""
    now: datetime
    """When the job last reported."""
    generation: int | None
    """The generation that the last batch was matched against."""
    subscriptions: int | None
    """Subscriptions of all tenants in it; only for an admin of the broker."""
    failure: Failure | None
    """The current failure; only for an admin of the broker."""
    sources: list[SourceStatus]
    """The sources that the caller may see."""


class ProcessResponse(ResponseModel):
    """The process of the job, if the service runs it."""

    pid: int | None
    """Null while it does not run."""
    starts: int
    """How often it was started."""
    last_exit: int | None
    """The exit code of the previous process; negative: the number of the signal that killed it."""


class StatusResponse(ResponseModel):
    """The job and the queues."""

    model_config = example(
        job={
            "version": "0.1.0",
            "state": "running",
            "started": "2026-03-01T12:00:00Z",
            "now": "2026-03-01T12:05:00Z",
            "generation": 3,
            "subscriptions": 1200,
            "failure": None,
            "sources": [{"name": "inbox", "state": "running", "messages_rate": 98.5, "matches_rate": 310.2}],
        },
        process={"pid": 4711, "starts": 1, "last_exit": None},
        waiting_messages={"inbox": 12},
        waiting_deliveries=40,
    )

    job: JobResponse | None
    """Null before a job has run."""
    process: ProcessResponse | None
    """Only for an admin of the broker."""
    waiting_messages: dict[str, int]
    """Accepted messages that are not yet read, by source."""
    waiting_deliveries: int
    """Deliveries that are not acknowledged, of the subscriber or the tenant."""


class NetworkResponse(ResponseModel):
    """The broker that the service is, and its links."""

    model_config = example(
        broker="london",
        brokers=["london", "paris"],
        links=[{"link": "london-paris", "neighbour": "paris", "state": "up", "routes": 12}],
    )

    broker: str | None
    """Its name; null if the service is not part of a network."""
    brokers: list[str]
    """All brokers of the network."""
    links: list[LinkReport]
    """The links of this broker, as its job reported them last."""


class SourceResponse(ResponseModel):
    """A source of messages."""

    model_config = example(name="inbox", kind="directory", tenant="", state="running", waiting=12)

    name: str
    """Its name."""
    kind: str
    """`directory` or `kafka`."""
    tenant: str
    """Whose messages it has."""
    state: str | None
    """`waiting`, `running`, `retrying` or `stopped`; null before a job has run."""
    waiting: int | None
    """Messages that are not yet read; null if only the job knows."""


class SinkResponse(ResponseModel):
    """A sink of deliveries."""

    model_config = example(kind="directory", targets=None, place="outbox")

    kind: str
    """`directory`, `kafka` or `console`."""
    targets: list[str] | None
    """It gets only deliveries with these delivery targets; null: all that no other sink names."""
    place: str | None
    """A path, or a topic; only for an admin of the broker."""


@router.get("/v1/status", tags=["state"])
def status(service: CurrentService, caller: Anyone) -> StatusResponse:
    """The job, and how many messages and deliveries wait."""
    mine = list(_visible(service.settings.sources, caller))
    process = service.supervisor.state if service.supervisor is not None and caller.operates else None
    return StatusResponse(
        job=_job(service, caller, {source.name for source in mine}),
        process=None if process is None else ProcessResponse(**asdict(process)),
        waiting_messages={
            source.name: service.inboxes.waiting(source)
            for source in service.inboxes.sources
            if source in mine
        },
        waiting_deliveries=service.catalog.mailbox.count(caller.tenant, caller.subscriber),
    )


@router.get("/v1/sources", tags=["state"])
def sources(service: CurrentService, caller: Publisher) -> list[SourceResponse]:
    """The sources of the tenant."""
    mine = list(_visible(service.settings.sources, caller))
    job = _job(service, caller, {source.name for source in mine})
    waiting = {one.name: service.inboxes.waiting(one) for one in service.inboxes.sources}
    states = {} if job is None else {source.name: source.state for source in job.sources}
    return [
        SourceResponse(
            name=source.name,
            kind="directory" if isinstance(source, DirectorySource) else "kafka",
            tenant=source.tenant,
            state=states.get(source.name),
            waiting=waiting.get(source.name),
        )
        for source in mine
    ]


@router.get("/v1/sinks", tags=["state"])
def sinks(service: CurrentService, caller: Admin) -> list[SinkResponse]:
    """The sinks, which all tenants share."""
    return [
        SinkResponse(
            kind=_kind(sink),
            targets=None if sink.targets is None else list(sink.targets),
            place=_place(sink) if caller.operates else None,
        )
        for sink in service.settings.sinks
    ]


@router.get("/v1/network", tags=["state"])
def network(service: CurrentService, caller: Admin) -> NetworkResponse:
    """The network of brokers; only for an admin of the broker."""
    _check_operates(caller)
    broker = service.settings.broker
    try:
        links = read_status(service.settings.state).links
    except StatusError:
        links = ()
    name = None if broker is None else broker.name
    return NetworkResponse(broker=name, brokers=list(service.brokers), links=list(links))


@router.get(
    "/metrics",
    tags=["state"],
    response_class=Response,
    responses={
        200: {
            "description": "Metrics in the text format of Prometheus.",
            "content": {
                "text/plain": {"schema": {"type": "string"}, "example": "tamis_up 1.0\n"},
            },
        }
    },
)
def metrics(service: CurrentService, caller: Admin) -> Response:
    """Metrics for Prometheus; only for an admin of the broker."""
    _check_operates(caller)
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _check_operates(caller: Caller) -> None:
    if not caller.operates:
        raise ServiceError("forbidden", "this is for an admin of the tenant without a name")


def _job(service: Service, caller: Caller, names: set[str]) -> JobResponse | None:
    try:
        found = read_status(service.settings.state)
    except StatusError:
        return None
    return JobResponse(
        version=found.version,
        state=found.state,
        started=found.started,
        now=found.now,
        generation=found.generation,
        subscriptions=found.subscriptions if caller.operates else None,
        failure=found.failure if caller.operates else None,
        sources=[source for source in found.sources if source.name in names],
    )


def _visible(sources: Iterable[Source], caller: Caller) -> Iterable[Source]:
    return (source for source in sources if caller.operates or source.tenant == caller.tenant)


def _kind(sink: Sink) -> str:
    return {DirectorySink: "directory", ConsoleSink: "console"}.get(type(sink), "kafka")


def _place(sink: Sink) -> str | None:
    if isinstance(sink, DirectorySink):
        return sink.path
    return None if isinstance(sink, ConsoleSink) else f"{sink.kafka.servers}: {sink.kafka.topic}"
