"""The catalog of subscriptions: the one place with SQL."""

from tamis.catalog.catalog import Catalog
from tamis.catalog.changes import Changes
from tamis.catalog.mailbox import Delivery

__all__ = ["Catalog", "Changes", "Delivery"]
