"""The catalog of subscriptions: the one place with SQL."""

from tamis.catalog.catalog import Catalog
from tamis.catalog.changes import Changes

__all__ = ["Catalog", "Changes"]
