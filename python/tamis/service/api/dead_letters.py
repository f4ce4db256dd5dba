"""`/v1/dead-letters`: what was refused and why, and once more."""

import base64
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from tamis.errors import SinkError
from tamis.service.api.security import Admin
from tamis.service.api.values import Name, RequestModel
from tamis.service.errors import ServiceError
from tamis.service.service import CurrentService
from tamis.sinks.dead_letters import DeadLetters, Letter, LetterFilter
from tamis.sinks.replay import ReplayMark, Replays, choose
from tamis.sources.directory import DirectorySource

router = APIRouter(prefix="/v1", tags=["dead letters"])


class LetterResponse(BaseModel):
    """A message that was refused or that a transformation failed on, or a delivery that could not be made."""

    letter: str
    message: str
    source: str
    offset: str
    received: datetime
    code: str
    reason: str
    subscription: str | None
    """Whose transformation failed, or whose delivery; None where the message itself was refused."""
    delivery: str | None
    """The delivery that could not be made."""
    position: int | None
    """The byte that the reason is about, from 0, in the message's UTF-8 form."""
    line: int | None
    column: int | None
    replayed: datetime | None

    @classmethod
    def of(cls, letter: Letter, mark: ReplayMark | None) -> "LetterResponse":
        names = cls.model_fields.keys() & Letter.__dataclass_fields__.keys()
        values = {name: getattr(letter, name) for name in names}
        replayed = None if mark is None else datetime.fromisoformat(mark.time)
        return cls.model_validate(
            {**values, "letter": letter.key, "message": letter.id, "replayed": replayed}
        )


class LetterWithContent(LetterResponse):
    """With the bytes of its message or delivery, as far as they were kept."""

    base64: str = ""


class LetterList(BaseModel):
    """The newest ones, the newest first."""

    letters: list[LetterResponse]
    more: bool
    """Whether there are older ones."""


class ReplayRequest(RequestModel):
    """Which letters: by their keys, message or delivery ids, or by what narrows them down."""

    letters: list[Name] = Field(default_factory=list, max_length=10_000)
    source: Name | None = None
    code: Name | None = None
    since: datetime | None = None
    again: bool = False
    """Also what was replayed before."""


class ReplayResponse(BaseModel):
    """What came of it."""

    replayed: int
    refused: list[str]
    """Why others were not."""


@router.get("/dead-letters")
def list_(
    service: CurrentService,
    caller: Admin,
    source: Name | None = None,
    code: Name | None = None,
    since: Annotated[datetime | None, Query(description="Received since.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> LetterList:
    """Dead letters of the tenant."""
    letters = DeadLetters(service.settings.dead_letters)
    wanted = LetterFilter(tenant=caller.tenant, source=source, code=code, since=_zoned(since))
    found = list(islice(letters.letters(wanted), limit + 1))
    marks = Replays(letters).marks()
    shown = [LetterResponse.of(letter, marks.get(letter.key)) for letter in found[:limit]]
    return LetterList(letters=shown, more=len(found) > limit)


# Before the letters by key: one with this name there is not.
@router.post("/dead-letters/replay")
def replay(asked: ReplayRequest, service: CurrentService, caller: Admin) -> ReplayResponse:
    """Put messages back into the inbox of their source, under their ids: deliveries have the same too.

    A delivery that could not be made to a webhook is sent again instead.
    """
    keys = frozenset(asked.letters)
    wanted = LetterFilter(keys, caller.tenant, asked.source, asked.code, _zoned(asked.since))
    if wanted == LetterFilter(tenant=caller.tenant):
        raise ServiceError("bad-request", "name letters, or narrow them down by source, code or time")
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
        raise SinkError("no-letter", "there are no such letters")
    return ReplayResponse(replayed=count, refused=refused)


@router.get("/dead-letters/{letter:path}")
def show(letter: Name, service: CurrentService, caller: Admin) -> LetterWithContent:
    """One letter, by its key or by the id of its message or delivery."""
    letters = DeadLetters(service.settings.dead_letters)
    found = _one(letters, letter, caller.tenant)
    shown = LetterResponse.of(found, Replays(letters).marks().get(found.key))
    raw = base64.b64encode(letters.raw(found)).decode()
    return LetterWithContent(**shown.model_dump(), base64=raw)


def _one(letters: DeadLetters, key: str, tenant: str) -> Letter:
    for found in letters.letters(LetterFilter(frozenset([key]), tenant)):
        return found
    raise SinkError("no-letter", f"there is no letter {key}")


def _zoned(time: datetime | None) -> datetime | None:
    """A time without a zone is UTC's."""
    return time if time is None or time.tzinfo else time.replace(tzinfo=UTC)
