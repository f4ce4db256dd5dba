"""`/v1/token`: who asks, and as what."""

from fastapi import APIRouter
from pydantic import BaseModel

from tamis.model.token import Role
from tamis.service.api.security import Anyone

router = APIRouter(prefix="/v1", tags=["token"])


class TokenResponse(BaseModel):
    """What the token of the request is good for."""

    name: str
    role: Role
    tenant: str
    subscriber: str | None
    """Whose subscriptions and deliveries it is limited to; None: to nobody's in its tenant."""
    operates: bool
    """Whether it looks after the whole broker."""


@router.get("/token")
def show(caller: Anyone) -> TokenResponse:
    """Who asks; its secret is not told."""
    token = caller.token
    return TokenResponse(
        name=token.name,
        role=token.role,
        tenant=token.tenant,
        subscriber=token.subscriber,
        operates=caller.operates,
    )
