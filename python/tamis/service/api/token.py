"""`/v1/token`: the token of the request."""

from fastapi import APIRouter

from tamis.model.token import Role
from tamis.service.api.security import Anyone
from tamis.service.api.values import ResponseModel, example

router = APIRouter(prefix="/v1", tags=["token"])


class TokenResponse(ResponseModel):
    """The token of the request, without its secret."""

    model_config = example(
        name="ann's laptop", role="subscriber", tenant="", subscriber="ann", operates=False
    )

    name: str
    """Its name."""
    role: Role
    """What it may do."""
    tenant: str
    """Its tenant; empty: the default tenant."""
    subscriber: str | None
    """The subscriber it is limited to; null: all of its tenant."""
    operates: bool
    """Whether it is an admin of the whole broker."""


@router.get("/token")
async def show(caller: Anyone) -> TokenResponse:
    """The name, role, tenant and subscriber of the token of the request."""
    token = caller.token
    return TokenResponse(
        name=token.name,
        role=token.role,
        tenant=token.tenant,
        subscriber=token.subscriber,
        operates=caller.operates,
    )
