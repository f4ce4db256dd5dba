"""`/v1/messages`: publishing, one message or many."""

import base64
import binascii
import uuid
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import BaseModel, TypeAdapter, ValidationError, model_validator
from starlette.concurrency import run_in_threadpool

from tamis.service.api.security import Publisher
from tamis.service.api.values import Name, RequestModel
from tamis.service.errors import ServiceError
from tamis.service.inbox_writer import NewMessage
from tamis.service.service import CurrentService

router = APIRouter(prefix="/v1", tags=["messages"])

XML = ("application/xml", "text/xml")
LINES = ("application/x-ndjson", "application/jsonl")
JSON = "application/json"


class MessageRequest(RequestModel):
    """A message in JSON: as text, or as the base64 of its bytes."""

    id: Name | None = None
    xml: str | None = None
    base64: str | None = None

    @model_validator(mode="after")
    def _one_form(self) -> "MessageRequest":
        if (self.xml is None) == (self.base64 is None):
            raise ValueError("a message has either `xml` or `base64`")
        return self

    def content(self) -> str | bytes:
        if self.base64 is None:
            return self.xml or ""
        try:
            return base64.b64decode(self.base64, validate=True)
        except (binascii.Error, ValueError) as error:
            raise ServiceError("bad-request", f"base64: {error}") from error


class AcceptedMessage(BaseModel):
    """A message that is stored."""

    id: str
    new: bool
    """Whether it was not accepted before, under the same id."""


class AcceptedMessages(BaseModel):
    """All of them, in the order in which they came."""

    source: str
    messages: list[AcceptedMessage]


OneOrMany = list[MessageRequest] | MessageRequest
_one_or_many: TypeAdapter[OneOrMany] = TypeAdapter(OneOrMany)
_one: TypeAdapter[MessageRequest] = TypeAdapter(MessageRequest)

_MESSAGE = {"$ref": "#/components/schemas/MessageRequest"}
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            XML[0]: {"schema": {"type": "string", "description": "One message, as it is."}},
            JSON: {"schema": {"anyOf": [_MESSAGE, {"type": "array", "items": _MESSAGE}]}},
            LINES[0]: {"schema": {"type": "string", "description": "A message a line, in JSON."}},
        },
    }
}


@router.post(
    "/messages",
    status_code=202,
    openapi_extra=_BODY,
    responses={200: {"model": AcceptedMessages, "description": "All were accepted before."}},
)
async def publish(
    request: Request,
    response: Response,
    service: CurrentService,
    caller: Publisher,
    source: Annotated[Name | None, Query(description="The tenant's first one unless given.")] = None,
    tamis_message_id: Annotated[Name | None, Header(description="The id of a message sent as XML.")] = None,
) -> AcceptedMessages:
    """Publish. What is accepted is stored; the same id again is the same message, and is not stored twice.

    A message that turns out not to be well-formed becomes a dead letter.
    """
    body = await request.body()
    messages = _messages(body, request.headers.get("content-type", ""), tamis_message_id)
    place = service.inboxes.source(caller.tenant, source)
    fresh = await run_in_threadpool(service.inboxes.publish, place, messages)
    if not fresh:
        response.status_code = 200
    told = []
    for message in messages:
        told.append(AcceptedMessage(id=message.id, new=message.id in fresh))
        # The same id twice in one request: only the first one is new.
        fresh.discard(message.id)
    return AcceptedMessages(source=place.name, messages=told)


def _messages(body: bytes, kind: str, id: str | None) -> list[NewMessage]:
    kind = kind.partition(";")[0].strip().lower()
    if kind in XML:
        if not body:
            raise ServiceError("bad-request", "there is no message in the request")
        return [NewMessage(id or _new_id(), body)]
    if id is not None:
        raise ServiceError("bad-request", "Tamis-Message-Id is for a message sent as XML")
    if kind == JSON:
        asked = _read(_one_or_many, body, "")
        many = asked if isinstance(asked, list) else [asked]
    elif kind in LINES:
        lines = enumerate(body.split(b"\n"), 1)
        many = [_read(_one, line, f"line {place}: ") for place, line in lines if line.strip()]
    else:
        known = ", ".join((XML[0], JSON, LINES[0]))
        raise ServiceError("media-type", f"{kind or 'no content type'}: messages are sent as {known}")
    if not many:
        raise ServiceError("bad-request", "there is no message in the request")
    return [NewMessage(one.id or _new_id(), one.content()) for one in many]


def _read(adapter: TypeAdapter[Any], text: bytes, where: str) -> Any:
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ServiceError("bad-request", f"{where}{place}: {first['msg']}") from error


def _new_id() -> str:
    return uuid.uuid4().hex
