"""`/v1/match` and `/v1/check`: trying a message or a query, without publishing or subscribing."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa
from fastapi import APIRouter
from pydantic import BaseModel, Field, model_validator

import tamis
from tamis.catalog.rows import unknown_map
from tamis.engine import Index
from tamis.errors import CatalogError, QueryError
from tamis.generations.opener import OpenGeneration
from tamis.model.explanation import Explanation
from tamis.model.matching import Limits
from tamis.service.api.security import Caller, Subscriber
from tamis.service.api.values import Name, RequestModel, Text
from tamis.service.errors import ErrorDetail, ServiceError, detail_of
from tamis.service.service import CurrentService, Service

router = APIRouter(prefix="/v1", tags=["match"])

LIMITS = Limits(bindings=1 << 16, output=1 << 20, outputs=16 << 20)
"""What one try may cost."""


class MatchRequest(RequestModel):
    """A message, as text or as the base64 of its bytes, and perhaps a query."""

    xml: str | None = None
    base64: str | None = None
    query: Text | None = None
    """Whether this matches too, where, and what it makes of the message."""
    namespaces: dict[Text, Text] | Name = Field(default_factory=dict)
    """Prefixes of the query, or the name of a map that the tenant shares."""
    explain: bool = False
    """Whether to tell why."""
    limit: int = Field(100, ge=1, le=1000)
    """So many subscriptions at most."""

    @model_validator(mode="after")
    def _one_form(self) -> "MatchRequest":
        if (self.xml is None) == (self.base64 is None):
            raise ValueError("a message has either `xml` or `base64`")
        return self

    def message(self) -> bytes:
        try:
            if self.base64 is not None:
                return base64.b64decode(self.base64, validate=True)
            return (self.xml or "").encode()
        except (binascii.Error, ValueError) as error:
            raise ServiceError("bad-request", f"the message: {error}") from error


class SelectedNode(BaseModel):
    """A node that is selected: its number in document order, and its bytes in the message's UTF-8 form."""

    node: int
    start: int
    end: int


class ExplanationResponse(BaseModel):
    """Why something matches, or why not."""

    canonical: str
    matches: bool
    reason: str
    nodes: list[SelectedNode]
    lines: list[dict[str, Any]]
    alternatives: list[dict[str, Any]]
    operators: list[dict[str, Any]]
    """What a transformation runs."""

    @classmethod
    def of(cls, explanation: Explanation) -> "ExplanationResponse":
        return cls.model_validate(asdict(explanation))


class MatchingSubscription(BaseModel):
    """A subscription that the message would be delivered to."""

    id: str
    revision: int
    subscriber: str
    delivery_target: str
    explanation: ExplanationResponse | None = None


class QueryResult(BaseModel):
    """What came of the query."""

    canonical: str
    matches: bool
    reason: str
    nodes: list[SelectedNode]
    output: str | None
    """What a transformation makes of the message; None for a filter, and where it fails or does not match."""
    failure: str | None
    """Why a transformation failed."""
    explanation: ExplanationResponse | None = None


class MatchResponse(BaseModel):
    """The answer."""

    generation: int | None
    """What the message was matched against; None while the job has made none yet."""
    subscriptions: list[MatchingSubscription]
    more: bool
    """Whether there are more subscriptions than the limit."""
    query: QueryResult | None = None


class CheckRequest(RequestModel):
    """A query as somebody types it."""

    query: Text
    namespaces: dict[Text, Text] | Name = Field(default_factory=dict)
    """Prefixes of the query, or the name of a map that the tenant shares."""


class CheckResponse(BaseModel):
    """The query that a text stands for, or why it is none."""

    id: str | None = None
    canonical: str | None = None
    error: ErrorDetail | None = None


@router.post("/check")
def check(asked: CheckRequest, service: CurrentService, caller: Subscriber) -> CheckResponse:
    """Is this a query? If not, that is the answer, with the position and the reason."""
    prefixes = _prefixes(service, caller, asked.namespaces)
    try:
        found = tamis.check(asked.query, prefixes)
    except QueryError as error:
        return CheckResponse(error=detail_of(error))
    return CheckResponse(id=found.id, canonical=found.canonical)


@router.post("/match")
def match(asked: MatchRequest, service: CurrentService, caller: Subscriber) -> MatchResponse:
    """Which subscriptions of the caller's does a message match, and does this query?"""
    message = asked.message()
    tried = None
    if asked.query is not None:
        prefixes = _prefixes(service, caller, asked.namespaces)
        tried = _tried(asked.query, prefixes, message, asked.explain)
    with service.newest.opened() as opened:
        if opened is None:
            return MatchResponse(generation=None, subscriptions=[], more=False, query=tried)
        rows = _matching(opened, message, caller)
        found = [MatchingSubscription.model_validate(row) for row in rows[: asked.limit]]
        if asked.explain:
            for one in found:
                one.explanation = _explanation(service, opened, one, message, caller)
        number = opened.generation.number
    return MatchResponse(generation=number, subscriptions=found, more=len(rows) > asked.limit, query=tried)


def _matching(opened: OpenGeneration, message: bytes, caller: Caller) -> list[dict[str, Any]]:
    numbers = opened.index.match(message, tenant=caller.tenant, limits=LIMITS)
    rows = opened.subscriptions.look_up(pa.array(numbers, pa.uint64())).to_pylist()
    return [row for row in rows if caller.subscriber in (None, row["subscriber"])]


def _explanation(
    service: Service, opened: OpenGeneration, one: MatchingSubscription, message: bytes, caller: Caller
) -> ExplanationResponse | None:
    """Why a subscription matches; none if it was changed or removed since its generation."""
    try:
        query, prefixes = service.catalog.query(one.id, one.revision, tenant=caller.tenant)
    except CatalogError as error:
        if error.code != "unknown-subscription":
            raise
        return None
    explanation = opened.index.explain(
        message, query, tenant=caller.tenant, namespaces=prefixes, limits=LIMITS
    )
    return ExplanationResponse.of(explanation)


def _prefixes(service: Service, caller: Caller, given: Mapping[str, str] | str) -> Mapping[str, str]:
    """Prefixes as they are given, or as the tenant shares them under a name."""
    if not isinstance(given, str):
        return given
    for shared in service.catalog.prefixes(tenant=caller.tenant):
        if shared.name == given:
            return shared.prefixes
    raise unknown_map(caller.tenant, given)


def _tried(query: str, prefixes: Mapping[str, str], message: bytes, explain: bool) -> QueryResult:
    index = Index(cache_bytes=0)
    index.insert(1, query, namespaces=prefixes)
    explanation = index.explain(message, query, namespaces=prefixes, limits=LIMITS)
    shown = ExplanationResponse.of(explanation)
    output = failure = None
    for made in index.transform(message, limits=LIMITS):
        if made.payload is None:
            failure = f"{made.code}: {made.reason}"
        elif made.payload is not message:
            output = made.payload.decode(errors="replace")
    return QueryResult(
        canonical=shown.canonical,
        matches=shown.matches,
        reason=shown.reason,
        nodes=shown.nodes,
        output=output,
        failure=failure,
        explanation=shown if explain else None,
    )
