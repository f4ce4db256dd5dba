"""`/v1/match` and `/v1/check`: try a message or a query, without publishing or subscribing."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from pydantic import Field, model_validator

import tamis
from tamis.catalog.rows import unknown_map
from tamis.engine import ERROR_COLUMNS, Index
from tamis.errors import CatalogError, QueryError, ReadError
from tamis.generations.opener import OpenGeneration
from tamis.model.explanation import Explanation
from tamis.model.matching import Limits
from tamis.model.message_batch import text_message
from tamis.model.route import ROUTE_REVISION
from tamis.model.token import Role
from tamis.service.api.security import Caller, Subscriber
from tamis.service.api.values import Name, RequestModel, ResponseModel, Text, example
from tamis.service.errors import ErrorDetail, ServiceError, WarningDetail, detail_of
from tamis.service.service import CurrentService, Service

router = APIRouter(prefix="/v1", tags=["match"])

LIMITS = Limits(bindings=1 << 16, output=1 << 20, outputs=16 << 20, work=1 << 25)
"""The limits of one request."""


class MatchRequest(RequestModel):
    """A message, `xml` or `base64`, and optionally a query."""

    model_config = example(xml="<a><b>1</b></a>", query="//b", explain=True)

    xml: str | None = None
    """The message as text."""
    base64: str | None = None
    """The bytes of the message in base64."""
    headers: dict[str, str] | None = None
    """The headers of the message, for queries with `$envelope`."""
    query: Text | None = None
    """A query to try on the message."""
    namespaces: dict[Text, Text] | Name = Field(default_factory=dict)
    """Namespace URIs by prefix, or the name of a shared prefix map of the tenant."""
    explain: bool = False
    """Whether to explain the result, for the query and for each subscription."""
    limit: int = Field(100, ge=1, le=1000)
    """How many matching subscriptions to list."""

    @model_validator(mode="after")
    def _one_form(self) -> "MatchRequest":
        if (self.xml is None) == (self.base64 is None):
            raise ValueError("a message has either `xml` or `base64`")
        return self

    def message(self) -> bytes:
        try:
            if self.base64 is not None:
                return base64.b64decode(self.base64, validate=True)
            return text_message(self.xml or "")
        except (binascii.Error, ValueError) as error:
            raise ServiceError("bad-request", f"the message: {error}") from error

    def envelope(self) -> tamis.Envelope | None:
        return None if self.headers is None else tamis.Envelope(headers=self.headers)


class SelectedNode(ResponseModel):
    """A selected node."""

    node: int
    """Its number in document order."""
    start: int
    """Its first byte in the UTF-8 form of the message."""
    end: int
    """The byte after its last one."""


class ExplanationResponse(ResponseModel):
    """Why a query matches a message, or why not."""

    canonical: str
    """The canonical form of the query."""
    matches: bool
    """Whether it matches."""
    reason: str
    """The explanation in one sentence."""
    nodes: list[SelectedNode]
    """The selected nodes."""
    lines: list[dict[str, Any]]
    """The linear paths of the query, and what each of them found."""
    alternatives: list[dict[str, Any]]
    """The alternatives of the query: the conditions that are necessary for it."""
    operators: list[dict[str, Any]]
    """The operators that a transformation runs."""
    instead: str | None = None
    """The query that matches, if only the namespaces of names keep this one from matching."""

    @classmethod
    def of(cls, explanation: Explanation) -> "ExplanationResponse":
        return cls.model_validate(asdict(explanation))


class MatchingSubscription(ResponseModel):
    """A subscription that the message would be delivered to."""

    id: str
    """Its id."""
    revision: int
    """Its revision."""
    subscriber: str
    """Whose subscription it is."""
    delivery_target: str
    """Where its deliveries go."""
    explanation: ExplanationResponse | None = None
    """With `explain`: why it matches; null if it was changed since the generation."""


class QueryResult(ResponseModel):
    """The result of the given query."""

    canonical: str
    """The canonical form of the query."""
    matches: bool
    """Whether it matches."""
    reason: str
    """Why, or why not."""
    instead: str | None = None
    """The query that matches, if only the namespaces of names keep this one from matching."""
    nodes: list[SelectedNode]
    """The selected nodes."""
    output: str | None
    """The output of a transformation; null for a filter, and if it fails or does not match."""
    failure: str | None
    """Why a transformation failed."""
    explanation: ExplanationResponse | None = None
    """With `explain`: the details."""


class MatchingRoute(ResponseModel):
    """A reason why the message would cross a link."""

    link: str
    """The name of the link."""
    query: str
    """What somebody behind it wants: linear paths that a query there needs."""


class MatchResponse(ResponseModel):
    """Which subscriptions match, and the result of the query."""

    model_config = example(
        generation=3,
        subscriptions=[{"id": "qlt", "revision": 1, "subscriber": "ann", "delivery_target": "outbox"}],
        more=False,
        failed=[],
        query={
            "canonical": "//b",
            "matches": True,
            "reason": "it selects 1 node",
            "nodes": [{"node": 2, "start": 3, "end": 11}],
            "output": None,
            "failure": None,
        },
    )

    generation: int | None
    """The generation that the message was matched against; null before the first batch of the job."""
    subscriptions: list[MatchingSubscription]
    """Subscriptions of the caller that match, up to `limit`."""
    more: bool
    """Whether more subscriptions match."""
    failed: list[str]
    """Ids of subscriptions whose queries take more steps than allowed (`work-limit`), up to `limit`."""
    query: QueryResult | None = None
    """The result of the given query."""
    routes: list[MatchingRoute] = Field(default_factory=list)
    """In a network of brokers, for an admin: which links the message would cross, and why, up to `limit`."""


class CheckRequest(RequestModel):
    """A query to check."""

    model_config = example(query="//p:b[@n = 2]", namespaces={"p": "urn:example"})

    query: Text
    """An XPath filter, or a transformation."""
    namespaces: dict[Text, Text] | Name = Field(default_factory=dict)
    """Namespace URIs by prefix, or the name of a shared prefix map of the tenant."""


class CheckResponse(ResponseModel):
    """The query, or the error in it."""

    model_config = example(
        id="5f0c6a3d9b1e47c2a8d4e6f7091b2c3d",
        canonical="//Q{urn:example}b[@n=2]",
        error=None,
        warnings=[],
    )

    id: str | None = None
    """The id of the query: equal queries have equal ids."""
    canonical: str | None = None
    """The canonical form of the query, with namespace URIs."""
    error: ErrorDetail | None = None
    """Why the query is refused, and where."""
    warnings: list[WarningDetail] = Field(default_factory=list)
    """Warnings about what is probably not intended, such as a query that can never match."""


@router.post("/check")
def check(asked: CheckRequest, service: CurrentService, caller: Subscriber) -> CheckResponse:
    """Check a query. A refused query is no error: the response has the position and the reason."""
    prefixes = _prefixes(service, caller, asked.namespaces)
    try:
        found = tamis.check(asked.query, prefixes)
        service.catalog.data.check(asked.query, found.data, prefixes, tenant=caller.tenant)
    except QueryError as error:
        return CheckResponse(error=detail_of(error))
    warnings = [WarningDetail.model_validate(asdict(warning)) for warning in found.warnings]
    return CheckResponse(id=found.id, canonical=found.canonical, warnings=warnings)


@router.post("/match")
async def match(asked: MatchRequest, service: CurrentService, caller: Subscriber) -> MatchResponse:
    """Try a message: which subscriptions of the caller match, and does the given query?

    A token may try one message at a time; a few more requests wait, others are refused with 429.
    """
    async with service.match_limit.turn(caller.token.id):
        return await service.matching.run(_match, asked, service, caller)


def _match(asked: MatchRequest, service: Service, caller: Caller) -> MatchResponse:
    message, envelope = asked.message(), asked.envelope()
    result = None
    if asked.query is not None:
        prefixes = _prefixes(service, caller, asked.namespaces)
        result = _try_query(service, caller, asked.query, prefixes, message, envelope, asked.explain)
    with service.newest.opened() as opened:
        if opened is None:
            return MatchResponse(generation=None, subscriptions=[], more=False, failed=[], query=result)
        rows, failed, numbers = _matching(opened, message, envelope, caller)
        found = [MatchingSubscription.model_validate(row) for row in rows[: asked.limit]]
        if asked.explain:
            for one in found:
                one.explanation = _explanation(service, opened, one, message, envelope, caller)
        number = opened.generation.number
    is_admin = caller.token.role is Role.ADMIN
    routes = service.catalog.routes.of_numbers(numbers) if is_admin and numbers else []
    return MatchResponse(
        generation=number,
        subscriptions=found,
        more=len(rows) > asked.limit,
        failed=[row["id"] for row in failed[: asked.limit]],
        query=result,
        routes=[MatchingRoute(link=link, query=query) for link, query in routes[: asked.limit]],
    )


def _matching(
    opened: OpenGeneration, message: bytes, envelope: tamis.Envelope | None, caller: Caller
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[int]]:
    """The subscriptions that match, those that exceed the work limit, and the numbers of matching routes."""
    messages = tamis.with_envelopes([message], [envelope])
    matches = opened.index.match_batch(messages, tenant=caller.tenant, limits=LIMITS)
    (error,) = matches.select(ERROR_COLUMNS).to_pylist()
    if error["code"] is not None:
        raise ReadError(**error)

    def split(numbers: Any) -> tuple[list[dict[str, Any]], list[int]]:
        rows = opened.subscriptions.look_up(numbers.flatten()).to_pylist()
        own = [row for row in rows if row["revision"] != ROUTE_REVISION]
        routes = [row["number"] for row in rows if row["revision"] == ROUTE_REVISION]
        return [row for row in own if caller.subscriber in (None, row["subscriber"])], routes

    matching, routes = split(opened.index.targets(matches))
    return matching, split(opened.index.failed_targets(matches))[0], routes


def _explanation(
    service: Service,
    opened: OpenGeneration,
    one: MatchingSubscription,
    message: bytes,
    envelope: tamis.Envelope | None,
    caller: Caller,
) -> ExplanationResponse | None:
    """Why a subscription matches; None if it was changed or removed since the generation."""
    try:
        query, prefixes = service.catalog.query(one.id, one.revision, tenant=caller.tenant)
    except CatalogError as error:
        if error.code != "unknown-subscription":
            raise
        return None
    explanation = opened.index.explain(
        message, query, envelope=envelope, tenant=caller.tenant, namespaces=prefixes, limits=LIMITS
    )
    return ExplanationResponse.of(explanation)


def _prefixes(service: Service, caller: Caller, given: Mapping[str, str] | str) -> Mapping[str, str]:
    """Prefixes as given, or those of a shared prefix map."""
    if not isinstance(given, str):
        return given
    for shared in service.catalog.prefixes(tenant=caller.tenant):
        if shared.name == given:
            return shared.prefixes
    raise unknown_map(caller.tenant, given)


def _try_query(
    service: Service,
    caller: Caller,
    query: str,
    prefixes: Mapping[str, str],
    message: bytes,
    envelope: tamis.Envelope | None,
    explain: bool,
) -> QueryResult:
    index = Index(cache_bytes=0)
    data = service.data.attached(caller.tenant, tamis.check(query, prefixes).data)
    index.replace_data({("", name): stored for (_, name), stored in data.items()})
    index.insert(1, query, namespaces=prefixes)
    explanation = index.explain(message, query, envelope=envelope, namespaces=prefixes, limits=LIMITS)
    shown = ExplanationResponse.of(explanation)
    output = failure = None
    for result in index.transform(message, envelope=envelope, limits=LIMITS):
        if result.payload is None:
            failure = f"{result.code}: {result.reason}"
        elif result.payload is not message:
            output = result.payload.decode(errors="replace")
    return QueryResult(
        canonical=shown.canonical,
        matches=shown.matches,
        reason=shown.reason,
        instead=shown.instead,
        nodes=shown.nodes,
        output=output,
        failure=failure,
        explanation=shown if explain else None,
    )
