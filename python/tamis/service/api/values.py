"""What requests and answers are made of."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

from tamis.catalog.schema import LONGEST_NAME

PRINTABLE = r"^[^\x00]*$"
"""No database stores U+0000."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME, pattern=PRINTABLE)]
"""An id, a subscriber, a source."""

Text = Annotated[str, StringConstraints(max_length=1 << 20, pattern=PRINTABLE)]

MAX_INTEGER = (1 << 63) - 1
"""The largest number that a database stores."""


class RequestModel(BaseModel):
    """What a request may hold: nothing that has no meaning, so that no misspelling goes unnoticed."""

    model_config = ConfigDict(extra="forbid")
