"""Why a message crosses the links of a broker, or not: what its newest generation and its job know."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tamis
from tamis.catalog import Catalog
from tamis.errors import ReadError
from tamis.generations.opener import open_generation
from tamis.generations.store import Store
from tamis.model.matching import Generation
from tamis.model.route import ROUTE_REVISION
from tamis.network.topology import read_topology
from tamis.settings import BrokerSettings, Settings
from tamis.status import LinkReport, StatusError, read_status

ERRORS = ["code", "reason", "offset", "line", "column"]


@dataclass(frozen=True, slots=True)
class Crossing:
    """A link, and whether a message that enters the network at this broker crosses it."""

    link: str
    neighbour: str
    crosses: bool
    why: str


def crossings(
    settings: Settings,
    broker: BrokerSettings,
    message: bytes,
    envelope: tamis.Envelope | None = None,
    tenant: str = "",
) -> list[Crossing]:
    """For each link of the broker; `ReadError` if the message would be refused."""
    rows = _matching_rows(settings, message, envelope, tenant)
    reports = _reports(settings)
    topology = read_topology(broker.network)
    found = []
    for link in topology.links_of(broker.name):
        report = reports.get(link.name)
        if not link.carries(tenant):
            crosses, why = False, f"the link is not for tenant {tenant!r}"
        elif link.name in rows:
            crosses, why = True, f"it satisfies {rows[link.name]}"
        elif report is None or not report.routed:
            crosses, why = True, "the neighbour is sent everything, until its table is confirmed"
        else:
            crosses, why = False, f"it satisfies none of {report.routes} rows that the neighbour wants"
        found.append(Crossing(link.name, link.other(broker.name), crosses, why))
    return found


def _matching_rows(
    settings: Settings, message: bytes, envelope: tamis.Envelope | None, tenant: str
) -> Mapping[str, str]:
    """By link, the first row that the message satisfies."""
    number = Store(settings.generations).newest()
    if number is None:
        return {}
    opened = open_generation(Generation(settings.generations, number, stored=True, cache=settings.cache))
    matches = opened.index.match_batch(
        tamis.with_envelopes([message], [envelope]), tenant=tenant, limits=_limits(settings)
    )
    (error,) = matches.select(ERRORS).to_pylist()
    if error["code"] is not None:
        raise ReadError(**error)
    targets: Any = opened.index.targets(matches)
    recipients = opened.subscriptions.look_up(targets.flatten()).to_pylist()
    numbers = [one["number"] for one in recipients if one["revision"] == ROUTE_REVISION]
    with Catalog(settings.catalog) as catalog:
        # The first one of each link stays.
        return dict(reversed(catalog.routes.of_numbers(numbers)))


def _limits(settings: Settings) -> tamis.Limits:
    return tamis.Limits() if settings.broker is None else settings.broker.limits


def _reports(settings: Settings) -> Mapping[str, LinkReport]:
    try:
        return {one.link: one for one in read_status(settings.state).links}
    except StatusError:
        return {}
