"""`/v1/messages`: publish one message or many."""

import base64
import binascii
import uuid
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import TypeAdapter, ValidationError, model_validator

from tamis.model.headers import HeaderError, pack_headers
from tamis.service.api.charset import in_stated_encoding
from tamis.service.api.security import Publisher
from tamis.service.api.values import Name, RequestModel, ResponseModel, example
from tamis.service.errors import ServiceError, bad_request
from tamis.service.inbox_writer import NewMessage
from tamis.service.service import CurrentService

T = TypeVar("T")

router = APIRouter(prefix="/v1", tags=["messages"])

XML = ("application/xml", "text/xml")
LINES = ("application/x-ndjson", "application/jsonl")
JSON = "application/json"


class MessageRequest(RequestModel):
    """A message in JSON: `xml` or `base64`."""

    model_config = example(
        id="m1", xml="<story><company symbol='QLT'/></story>", headers={"priority": "high"}
    )

    id: Name | None = None
    """Identifies the message in its source; generated if it is left out."""
    xml: str | None = None
    """The message as text."""
    base64: str | None = None
    """The bytes of the message in base64, for encodings other than UTF-8: the message declares which."""
    headers: dict[str, str] | None = None
    """What the publisher says of the message; its deliveries have them too."""

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


class AcceptedMessage(ResponseModel):
    """A message that is stored."""

    id: str
    """The given or generated id."""
    new: bool
    """False if a message with this id was accepted before: then this one is not stored."""


class AcceptedMessages(ResponseModel):
    """The accepted messages, in the order of the request."""

    model_config = example(source="inbox", messages=[{"id": "m1", "new": True}])

    source: str
    """The source that the messages were published to."""
    messages: list[AcceptedMessage]
    """One for each message of the request."""


_many: TypeAdapter[list[MessageRequest]] = TypeAdapter(list[MessageRequest])
_one: TypeAdapter[MessageRequest] = TypeAdapter(MessageRequest)

_MESSAGE = {"$ref": "#/components/schemas/MessageRequest"}
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            XML[0]: {
                "schema": {"type": "string", "description": "One message."},
                "example": "<story><company symbol='QLT'/></story>",
            },
            JSON: {
                "schema": {
                    "anyOf": [_MESSAGE, {"type": "array", "items": _MESSAGE}],
                    "description": "One message, or a list.",
                },
                "example": [{"id": "m1", "xml": "<a/>"}, {"id": "m2", "base64": "PGEvPg=="}],
            },
            LINES[0]: {
                "schema": {"type": "string", "description": "One message per line, in JSON."},
                "example": '{"id": "m1", "xml": "<a/>"}\n{"id": "m2", "xml": "<b/>"}\n',
            },
        },
    }
}


@router.post(
    "/messages",
    status_code=202,
    openapi_extra=_BODY,
    responses={
        200: {"model": AcceptedMessages, "description": "All of them were accepted before: nothing changed."}
    },
)
async def publish(
    request: Request,
    response: Response,
    service: CurrentService,
    caller: Publisher,
    source: Annotated[
        Name | None, Query(description="The source; the first one of the tenant unless given.")
    ] = None,
    tamis_message_id: Annotated[
        Name | None, Header(description="The id of a message that is sent as XML.")
    ] = None,
) -> AcceptedMessages:
    """Publish messages. What is accepted is durable. An id that was accepted before is not stored again.

    A message that is sent as XML has its headers as `Tamis-Header-NAME: VALUE`, with the name in lower case.

    A message that is not well-formed is accepted, and becomes a dead letter.
    """
    body = await request.body()
    headers = _headers(request)
    messages = _messages(body, request.headers.get("content-type", ""), tamis_message_id, headers)
    place = service.inboxes.source(caller.tenant, source)
    fresh = await service.publishing.run(service.inboxes.publish, place, messages)
    if not fresh:
        response.status_code = 200
    accepted = []
    for message in messages:
        accepted.append(AcceptedMessage(id=message.id, new=message.id in fresh))
        # The same id twice in one request: only the first one is new.
        fresh.discard(message.id)
    return AcceptedMessages(source=place.name, messages=accepted)


def _messages(body: bytes, content_type: str, id: str | None, headers: dict[str, str]) -> list[NewMessage]:
    kind = content_type.partition(";")[0].strip().lower()
    if kind in XML:
        if not body:
            raise ServiceError("bad-request", "the request has no message")
        return [NewMessage(id or _new_id(), in_stated_encoding(body, content_type), pack_headers(headers))]
    if id is not None or headers:
        name = "Tamis-Message-Id" if id is not None else "Tamis-Header"
        raise ServiceError("bad-request", f"{name} is for a message sent as XML")
    if kind == JSON:
        # Not as a union: its errors would be about every member.
        many = _read(_many, body) if body.lstrip().startswith(b"[") else [_read(_one, body)]
    elif kind in LINES:
        lines = enumerate(body.split(b"\n"), 1)
        many = [_read(_one, line, f"line {place}") for place, line in lines if line.strip()]
    else:
        known = ", ".join((XML[0], JSON, LINES[0]))
        raise ServiceError("media-type", f"{kind or 'no content type'}: messages are sent as {known}")
    if not many:
        raise ServiceError("bad-request", "the request has no message")
    return [NewMessage(one.id or _new_id(), one.content(), pack_headers(one.headers)) for one in many]


def _headers(request: Request) -> dict[str, str]:
    """The headers `Tamis-Header-NAME` of a request; of several with one name the last counts."""
    prefix = b"tamis-header-"
    try:
        return {
            name.removeprefix(prefix).decode(): value.decode()
            for name, value in request.headers.raw
            if name.startswith(prefix)
        }
    except UnicodeDecodeError as error:
        raise HeaderError("bad-header", "the value of a header is not UTF-8") from error


def _read(adapter: TypeAdapter[T], text: bytes, place: str = "") -> T:
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        raise bad_request(error.errors(include_url=False, include_input=False), place) from error


def _new_id() -> str:
    return uuid.uuid4().hex
