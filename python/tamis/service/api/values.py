"""Types that several requests share."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints

from tamis.catalog.schema import LONGEST_NAME

ONE_LINE = r"^[^\x00-\x1f\x7f]*$"
"""No control characters, which `tamis.model.message_id` refuses too."""

STORABLE = r"^[^\x00]*$"
"""PostgreSQL does not store U+0000."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME, pattern=ONE_LINE)]
"""An id, a subscriber, a source."""

Target = Annotated[str, StringConstraints(max_length=1 << 20, pattern=ONE_LINE)]
"""A delivery target."""

Text = Annotated[str, StringConstraints(max_length=1 << 20, pattern=STORABLE)]

MAX_INTEGER = (1 << 63) - 1
"""The largest integer of the databases."""


class RequestModel(BaseModel):
    """The body of a request. Unknown fields are refused, so that misspellings are noticed."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class ResponseModel(BaseModel):
    """The body of a response. Docstrings of fields are their descriptions in OpenAPI."""

    model_config = ConfigDict(use_attribute_docstrings=True)


def example(**fields: Any) -> ConfigDict:
    """The configuration of a model with an example for OpenAPI."""
    return ConfigDict(json_schema_extra={"examples": [fields]})
