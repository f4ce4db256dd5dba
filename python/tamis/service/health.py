"""`/health` and `/ready`: for those who look after processes; no token is asked for."""

from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel

from tamis.service.service import Running

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """That it answers."""

    status: Literal["ok"] = "ok"


@router.get("/health")
async def health() -> Health:
    """Whether the process answers."""
    return Health()


@router.get("/ready")
def ready(service: Running) -> Health:
    """Whether requests can be served: the catalog answers."""
    _ = service.catalog.version
    return Health()
