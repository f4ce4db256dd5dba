"""`/health` and `/ready`: for supervisors of processes. They need no token."""

from typing import Literal

from fastapi import APIRouter

from tamis.service.api.values import ResponseModel, example
from tamis.service.errors import ServiceError
from tamis.service.service import CurrentService, Service
from tamis.status import StatusError, read_status
from tamis.status.value import JobState

router = APIRouter(tags=["health"])


class Health(ResponseModel):
    """The service answers."""

    model_config = example(status="ok")

    status: Literal["ok"] = "ok"
    """An error is a response with another status code."""


@router.get("/health")
async def health() -> Health:
    """Whether the process answers."""
    return Health()


@router.get("/ready")
def ready(service: CurrentService) -> Health:
    """Whether the service can deliver: the catalog answers, the job runs, mailboxes are up to date."""
    _ = service.catalog.version
    if service.outbox_follower is not None and service.outbox_follower.failure is not None:
        raise ServiceError("not-ready", f"mailboxes are behind: {service.outbox_follower.failure.code}")
    if service.supervisor is not None and (state := _job_state(service)) != "running":
        raise ServiceError("not-ready", f"the job is not running: {state}")
    return Health()


def _job_state(service: Service) -> JobState:
    """The state of the job that the service runs. The status may be the one of the job before."""
    try:
        status = read_status(service.settings.state)
    except StatusError:
        return "starting"
    return "starting" if status.state in ("stopped", "died") else status.state
