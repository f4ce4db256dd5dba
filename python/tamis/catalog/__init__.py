"""The catalog of subscriptions, in SQLite or PostgreSQL: the one place with SQL.

catalog.py           the public calls, each one transaction
database.py          connections, transactions, retries, migrations
schema.py            the tables; migrations/ has their history
rows.py              subscriptions and prefix maps as rows, with their validation
mutations.py         inserts, updates and removals, with revisions and the change log
importing.py         bulk import in batches
changes.py           what changed since a version: the input of the next generation
tokens.py  webhooks.py                  who may use the service; where deliveries are posted
accepted.py                             ids of accepted messages, to de-duplicate
mailbox.py  outgoing.py  dead_deliveries.py   deliveries of the service, by state
stored_delivery.py                      the columns that those three share
"""

from tamis.extras import require

require("catalog")

from tamis.catalog.catalog import Catalog  # noqa: E402
from tamis.catalog.changes import Changes  # noqa: E402
from tamis.catalog.mailbox import Delivery  # noqa: E402

__all__ = ["Catalog", "Changes", "Delivery"]
