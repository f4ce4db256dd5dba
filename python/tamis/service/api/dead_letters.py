"""`/v1/dead-letters`: list, show and replay dead letters."""

import base64
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import Field

from tamis.errors import SinkError
from tamis.model.headers import unpack_headers
from tamis.service.api.security import Admin
from tamis.service.api.values import Name, RequestModel, ResponseModel, example
from tamis.service.errors import ServiceError
from tamis.service.service import CurrentService
from tamis.sinks.dead_letters import DeadLetters, Letter, LetterFilter
from tamis.sinks.replay import ReplayMark, Replays, choose
from tamis.sources.directory import DirectorySource

router = APIRouter(prefix="/v1", tags=["dead letters"])


_LETTER = {
    "letter": "0b7c2f64e1a94d53",
    "message": "m3",
    "source": "inbox",
    "offset": "m3.xml",
    "received": "2026-03-01T12:00:00.100000Z",
    "headers": {"priority": "high"},
    "code": "syntax",
    "reason": "the end tag </a> does not match <b>",
    "subscription": None,
    "delivery": None,
    "position": 6,
    "line": 1,
    "column": 7,
    "replayed": None,
}


class LetterResponse(ResponseModel):
    """A dead letter: a message that was refused, a transformation that failed, or a delivery that failed."""

    model_config = example(**_LETTER)

    letter: str
    """The key of the letter."""
    message: str
    """The id of the message."""
    source: str
    """The source of the message."""
    offset: str
    """Where in the source the message was: a file and line, or a topic, partition and offset."""
    received: datetime
    """When the message was received."""
    headers: dict[str, str] | None
    """The headers of the message, if it has any."""
    code: str
    """The code of the error."""
    reason: str
    """What is wrong."""
    subscription: str | None
    """The subscription whose transformation or delivery failed; null if the message itself was refused."""
    delivery: str | None
    """The id of the delivery that failed."""
    position: int | None
    """The byte offset of the error in the UTF-8 form of the message, from 0."""
    line: int | None
    """The line of the error, from 1."""
    column: int | None
    """The column of the error, from 1."""
    replayed: datetime | None
    """When it was last replayed."""

    @classmethod
    def of(cls, letter: Letter, mark: ReplayMark | None) -> "LetterResponse":
        names = cls.model_fields.keys() & Letter.__dataclass_fields__.keys()
        values = {name: getattr(letter, name) for name in names}
        values["headers"] = unpack_headers(letter.headers) or None
        replayed = None if mark is None else datetime.fromisoformat(mark.time)
        return cls.model_validate(
            {**values, "letter": letter.key, "message": letter.id, "replayed": replayed}
        )


LetterKey = Annotated[Name, Path(description="The key of the letter, or the id of its message or delivery.")]


class LetterWithContent(LetterResponse):
    """A dead letter with its content."""

    model_config = example(**_LETTER, base64="PGE+PGI+PC9hPg==")

    base64: str = ""
    """The bytes of the message or delivery in base64, as far as they were kept."""


class LetterList(ResponseModel):
    """Dead letters, the newest first."""

    model_config = example(letters=[_LETTER], more=False)

    letters: list[LetterResponse]
    """The newest ones, up to `limit`."""
    more: bool
    """Whether there are older ones."""


class ReplayRequest(RequestModel):
    """Which letters to replay: those that satisfy all given fields."""

    model_config = example(code="syntax", since="2026-03-01T00:00:00Z")

    letters: list[Name] = Field(default_factory=list, max_length=10_000)
    """Keys of letters, or ids of messages or deliveries."""
    source: Name | None = None
    """Only letters of this source."""
    code: Name | None = None
    """Only letters with this error code."""
    since: datetime | None = None
    """Only messages received since this time; UTC unless it has a zone."""
    again: bool = False
    """Also replay letters that were replayed before."""


class ReplayResponse(ResponseModel):
    """The result of a replay."""

    model_config = example(replayed=1, refused=[])

    replayed: int
    """Letters that were replayed."""
    refused: list[str]
    """Why others were not."""


@router.get("/dead-letters")
def list_(
    service: CurrentService,
    caller: Admin,
    source: Annotated[Name | None, Query(description="Only letters of this source.")] = None,
    code: Annotated[Name | None, Query(description="Only letters with this error code.")] = None,
    since: Annotated[datetime | None, Query(description="Only messages received since.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="At most this many.")] = 100,
) -> LetterList:
    """List the dead letters of the tenant."""
    letters = DeadLetters(service.settings.dead_letters)
    wanted = LetterFilter(tenant=caller.tenant, source=source, code=code, since=_zoned(since))
    found = list(islice(letters.letters(wanted), limit + 1))
    marks = Replays(letters).marks()
    shown = [LetterResponse.of(letter, marks.get(letter.key)) for letter in found[:limit]]
    return LetterList(letters=shown, more=len(found) > limit)


# Before the route of letters by key: no letter has the key "replay".
@router.post("/dead-letters/replay")
def replay(asked: ReplayRequest, service: CurrentService, caller: Admin) -> ReplayResponse:
    """Put messages back into the inbox of their source, under the same ids; deliveries get the same ids too.

    A failed delivery to a webhook is sent again instead.
    """
    keys = frozenset(asked.letters)
    wanted = LetterFilter(keys, caller.tenant, asked.source, asked.code, _zoned(asked.since))
    if wanted == LetterFilter(tenant=caller.tenant):
        raise ServiceError("bad-request", "give letters, a source, a code or a time")
    letters = DeadLetters(service.settings.dead_letters)
    replays = Replays(letters)
    inboxes = {
        source.name: source.path
        for source in service.settings.sources
        if isinstance(source, DirectorySource) and source.tenant == caller.tenant
    }
    with replays.locked():
        replays.finish()
        chosen = choose(
            letters.letters(wanted),
            replays.marks(),
            lambda letter: inboxes.get(letter.source),
            again=asked.again,
        )
        count, refused = replays.replay_all(chosen, service.catalog.dead_deliveries.resend)
    if keys and not count and not refused:
        raise SinkError("no-letter", "no dead letter has these keys or ids")
    return ReplayResponse(replayed=count, refused=refused)


@router.get("/dead-letters/{letter:path}")
def show(letter: LetterKey, service: CurrentService, caller: Admin) -> LetterWithContent:
    """One dead letter, by its key or by the id of its message or delivery."""
    letters = DeadLetters(service.settings.dead_letters)
    found = _find_letter(letters, letter, caller.tenant)
    shown = LetterResponse.of(found, Replays(letters).marks().get(found.key))
    raw = base64.b64encode(letters.raw(found)).decode()
    return LetterWithContent(**shown.model_dump(), base64=raw)


def _find_letter(letters: DeadLetters, key: str, tenant: str) -> Letter:
    for found in letters.letters(LetterFilter(frozenset([key]), tenant)):
        return found
    raise SinkError("no-letter", f"there is no dead letter {key}")


def _zoned(time: datetime | None) -> datetime | None:
    """A time without a zone is in UTC."""
    return time if time is None or time.tzinfo else time.replace(tzinfo=UTC)
