"""Local data: records that stay, and that queries join with messages."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tamis.model.messages import Messages


@dataclass(frozen=True, slots=True)
class Data:
    """Records, each a well-formed XML document, in their order.

    `collection('name')` in a query is all of them, `doc('name')` the only one.
    """

    records: "Messages"
