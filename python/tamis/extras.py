"""The extras of the package, and errors that name the extra whose packages are not installed."""

from importlib.util import find_spec
from typing import Literal

from tamis.errors import TamisError


class MissingExtraError(TamisError):
    """Something is used that needs an extra: `pip install 'tamis[…]'`."""


_PACKAGES = {
    "catalog": ("tamis.catalog", ("sqlalchemy", "alembic")),
    "spark": ("tamis.spark", ("pyspark", "pandas")),
    "client": ("tamis.client", ("httpx",)),
    "serve": ("the service", ("fastapi", "uvicorn", "pydantic", "httpx", "sqlalchemy", "pyspark")),
    "bench": ("tamis bench", ("lxml",)),
    "kafka": ("a link by Kafka", ("confluent_kafka",)),
}
"""For each extra: the features that need it, and packages that it installs."""


def require(extra: Literal["catalog", "spark", "client", "serve", "bench", "kafka"]) -> None:
    """Raise `MissingExtraError` if packages of an extra are not installed. Imports none of them."""
    user, packages = _PACKAGES[extra]
    for package in packages:
        if find_spec(package) is None:
            reason = f"{user} needs {package}: install tamis with its extra, pip install 'tamis[{extra}]'"
            raise MissingExtraError("missing-extra", reason)
