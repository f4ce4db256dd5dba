"""Messages that arrived in vain: neither a subscription here nor another neighbour wanted them.

They show how much wider than the subscriptions the rows are that this broker advertises.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tamis.network.link_end import LinkEnd
from tamis.network.messages import came_over, crosses


def count_in_vain(
    ends: Sequence[LinkEnd],
    key: str,
    messages: pa.Table,
    here: Any,
    wanted: Mapping[str, Any],
) -> None:
    """Count, for each link, the messages of a batch that arrived over it in vain.

    `here`: a boolean array, whether a subscription of this broker matches. `wanted`: likewise by link,
    whether the neighbour wants the message; a link that is left out is sent everything.
    """
    for end in ends:
        useless: Any = pc.and_(came_over(messages, end.topology, end.broker, end.link), pc.invert(here))
        for other in ends:
            if other is not end:
                sent: Any = crosses(messages, other.topology, other.broker, other.link)
                if other.link.name in wanted:
                    sent = pc.and_(sent, wanted[other.link.name])
                useless = pc.and_(useless, pc.invert(sent))
        end.count_in_vain(key, pc.sum(useless).as_py() or 0)
