"""`/health` and `/ready`: for supervisors of processes. They need no token."""

from typing import Literal

from fastapi import APIRouter

from tamis.service.api.values import ResponseModel
from tamis.service.errors import ServiceError
from tamis.service.service import CurrentService

router = APIRouter(tags=["health"])


class Health(ResponseModel):
    """The service answers."""

    status: Literal["ok"] = "ok"


@router.get("/health")
async def health() -> Health:
    """Whether the process answers."""
    return Health()


@router.get("/ready")
def ready(service: CurrentService) -> Health:
    """Whether requests can be served: the catalog answers, and mailboxes are up to date."""
    _ = service.catalog.version
    if service.outbox_follower is not None and service.outbox_follower.failure is not None:
        raise ServiceError("not-ready", f"mailboxes are behind: {service.outbox_follower.failure.code}")
    return Health()
