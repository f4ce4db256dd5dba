"""Limits of messages in a network: what one broker accepts, no other broker may refuse.

limits of every source ≤ [limits] of network.toml ≤ limits of [broker], at every broker
"""

from collections.abc import Iterable

from tamis.model.matching import Limits
from tamis.network.parcel import LinkError

READING = (
    *("document", "depth", "attributes", "namespaces", "name", "text"),
    *("internal_subset", "skip_unread_entities", "expansion"),
)
"""The limits that decide whether a message is refused; the others concern one subscription."""


def check_limits(network: Limits, arriving: Limits, sources: Iterable[tuple[str, Limits]], file: str) -> None:
    """Raise `LinkError` if a source accepts more than the network, or this broker accepts less over links.

    `sources`: their names and limits; `file`: the network file.
    """
    for name, limits in sources:
        if above := _above(limits, network):
            reason = f"source {name} accepts more than [limits] of {file} ({above})"
            advice = "lower them, or raise those of the network and of [broker] at every broker"
            raise LinkError("limits-above-network", f"{reason}: {advice}")
    if above := _above(network, arriving):
        reason = f"the limits of [broker] are below [limits] of {file} ({above})"
        raise LinkError("limits-below-network", f"{reason}: what others accept would be refused; raise them")


def _above(limits: Limits, other: Limits) -> str:
    """The limits that allow more than others do, as text."""
    pairs = [(name, _value(limits, name), _value(other, name)) for name in READING]
    return ", ".join(f"{name}: {one} and not {two}" for name, one, two in pairs if one > two)


def _value(limits: Limits, name: str) -> int:
    value: int | None = getattr(limits, name)
    return limits.document if value is None else int(value)
