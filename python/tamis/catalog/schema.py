"""The tables of a catalog, as the newest migration leaves them."""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

NEWEST = "0007"
"""The newest migration; a test compares its tables with these."""

LONGEST_NAME = 255
"""Characters of an id, tenant, subscriber or name: together they must fit an index entry."""

# Names sort by code point in every database, so that pages and exports have the same order.
Name = String(LONGEST_NAME).with_variant(String(LONGEST_NAME, collation="C"), "postgresql")

metadata = MetaData()

catalog = Table(
    "catalog",
    metadata,
    # The only row. Every writer updates it first, which serialises writers: a reader of a version
    # sees all versions before it.
    Column("row", Integer, primary_key=True, autoincrement=False),
    Column("identity", String(32), nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("number", BigInteger, nullable=False),  # the last one given to a subscription
)

# The versions that `changes_since` can start from.
versions = Table(
    "versions",
    metadata,
    Column("version", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("mark", String(16), nullable=False),
)

prefix_maps = Table(
    "prefix_maps",
    metadata,
    Column("tenant", Name, primary_key=True),
    Column("name", Name, primary_key=True),
    Column("prefixes", Text, nullable=False),  # a JSON object, keys sorted
)

subscriptions = Table(
    "subscriptions",
    metadata,
    # Of the current revision.
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("tenant", Name, nullable=False),
    Column("id", Name, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("subscriber", Name, nullable=False),
    Column("query", Text, nullable=False),
    Column("prefixes", Text, nullable=False),  # a JSON object, keys sorted; {} if the map is shared
    Column("prefix_map", Name, nullable=True),
    Column("delivery_target", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("created", BigInteger, nullable=False),  # microseconds since 1970
    Column("changed", BigInteger, nullable=False),
    Column("version", BigInteger, nullable=False),  # of the last change of number or state
    UniqueConstraint("tenant", "id", name="subscriptions_by_id"),
    ForeignKeyConstraint(
        ["tenant", "prefix_map"], ["prefix_maps.tenant", "prefix_maps.name"], name="subscriptions_prefix_map"
    ),
    Index("subscriptions_by_version", "version"),
    Index("subscriptions_by_subscriber", "tenant", "subscriber", "id"),
)

# The log of removals. Additions need none: an active subscription has its version.
removals = Table(
    "removals",
    metadata,
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
)

# The last revision of removed ids. Delivery ids are hashes of id and revision: a subscription that is
# added again under its old id must not repeat them.
retired = Table(
    "retired",
    metadata,
    Column("tenant", Name, primary_key=True),
    Column("id", Name, primary_key=True),
    Column("revision", BigInteger, nullable=False),
)

# What the neighbours of a broker want: rows to match messages against, as subscriptions are.
routes = Table(
    "routes",
    metadata,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("link", Name, nullable=False),
    Column("key", String(32), nullable=False),  # a hash of tenant and query, which are too long to index
    Column("tenant", Name, nullable=False),
    Column("query", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    UniqueConstraint("link", "key", name="routes_by_key"),
    Index("routes_by_version", "version"),
)

# The version of each neighbour's table of routes. A link without one: its neighbour is sent everything.
route_tables = Table(
    "route_tables",
    metadata,
    Column("link", Name, primary_key=True),
    Column("count", BigInteger, nullable=False),
    Column("mark", String(32), nullable=False),
    Column("hash", String(32), nullable=False),
    Column("rows", BigInteger, nullable=False),
)

# By broker: subscriptions up to this version get what enters the network there.
established = Table(
    "established",
    metadata,
    Column("broker", Name, primary_key=True),
    Column("version", BigInteger, nullable=False),
)

# Local data. A set belongs to a tenant, or is shared with all; its tenant is then "".
data_sets = Table(
    "data_sets",
    metadata,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("shared", Integer, nullable=False),  # 0 or 1
    Column("tenant", Name, nullable=False),
    Column("name", Name, nullable=False),
    Column("key", Text, nullable=True),  # the path of the value that identifies a record
    Column("indexed", Text, nullable=True),  # a JSON array of paths; null: all
    Column("source", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("current", BigInteger, nullable=True),  # a version
    Column("last", BigInteger, nullable=False),  # version that was given out
    UniqueConstraint("name", "shared", "tenant", name="data_sets_by_name"),
)

# Sweeps of the store keep the files of these.
data_versions = Table(
    "data_versions",
    metadata,
    Column("data_set", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("manifest", Text, nullable=False),
    Column("files", Text, nullable=False),  # a JSON object: name → [size, hash]
    Column("records", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("source", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("uploading", BigInteger, nullable=True),  # last sign of life; null once it is complete
    ForeignKeyConstraint(["data_set"], ["data_sets.number"], name="data_versions_of_set"),
)

# The names of data in the queries of subscriptions.
data_uses = Table(
    "data_uses",
    metadata,
    Column("name", Name, primary_key=True),
    Column("tenant", Name, primary_key=True),
    Column("subscription", Name, primary_key=True),
    Index("data_uses_by_subscription", "tenant", "subscription"),
)

# A secret has 256 random bits, so an unsalted hash is safe.
tokens = Table(
    "tokens",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("hash", String(64), nullable=False, unique=True),
    Column("name", Name, nullable=False),
    Column("role", String(16), nullable=False),
    Column("tenant", Name, nullable=False),
    Column("subscriber", Name, nullable=True),
    Column("rate", Integer, nullable=True),
    Column("body", BigInteger, nullable=True),
    Column("created", BigInteger, nullable=False),
    Column("revoked", BigInteger, nullable=True),
)

# Ids of messages that the service has accepted, to de-duplicate by.
accepted = Table(
    "accepted",
    metadata,
    Column("source", Name, primary_key=True),
    Column("id", Name, primary_key=True),
    Column("received", BigInteger, nullable=False),
)

# Files of accepted messages that may not be in their inbox yet.
entering = Table("entering", metadata, Column("file", Name, primary_key=True))

# The only row. Writers of mailboxes update it first, so that numbers become visible in order.
mailbox_head = Table(
    "mailbox_head",
    metadata,
    Column("row", Integer, primary_key=True, autoincrement=False),
    Column("number", BigInteger, nullable=False),
)

mailbox = Table(
    "mailbox",
    metadata,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("tenant", Name, nullable=False),
    Column("subscriber", Name, nullable=False),
    Column("id", Name, nullable=False, unique=True),  # of the delivery
    Column("message", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("subscription", Name, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("received", BigInteger, nullable=False),
    Column("matched", BigInteger, nullable=False),
    Column("encoding", Text, nullable=True),
    Column("payload", LargeBinary, nullable=False),
    Column("acknowledged", BigInteger, nullable=True),
    Column("headers", Text, nullable=True),  # of the message, a JSON object
)

# Partial: acknowledged deliveries cost nothing when a subscriber fetches.
Index(
    "mailbox_waiting",
    mailbox.c.tenant,
    mailbox.c.subscriber,
    mailbox.c.number,
    sqlite_where=mailbox.c.acknowledged.is_(None),
    postgresql_where=mailbox.c.acknowledged.is_(None),
)
Index(
    "mailbox_acknowledged",
    mailbox.c.acknowledged,
    sqlite_where=mailbox.c.acknowledged.is_not(None),
    postgresql_where=mailbox.c.acknowledged.is_not(None),
)

# The manifests of the outbox whose deliveries are stored.
tailed = Table("tailed", metadata, Column("manifest", Name, primary_key=True))

# Receivers of deliveries with the target `webhook:NAME`.
webhooks = Table(
    "webhooks",
    metadata,
    Column("tenant", Name, primary_key=True),
    Column("name", Name, primary_key=True),
    Column("subscriber", Name, nullable=True),
    Column("url", Text, nullable=False),
    # In clear: deliveries are signed with them.
    Column("secret", Text, nullable=False),
    Column("previous", Text, nullable=True),
    Column("previous_until", BigInteger, nullable=True),
    Column("state", String(16), nullable=False),
    Column("reason", Text, nullable=True),
    Column("created", BigInteger, nullable=False),
    Column("changed", BigInteger, nullable=False),
    Column("held_until", BigInteger, nullable=True),
    Column("succeeded", BigInteger, nullable=True),
    Column("failed", BigInteger, nullable=True),
    Column("failure", Text, nullable=True),
)

# Webhook deliveries by state: waiting, sent, dying (failed, not yet a dead letter), dead (a dead letter).
outgoing = Table(
    "outgoing",
    metadata,
    Column("id", Name, primary_key=True),  # of the delivery
    Column("tenant", Name, nullable=False),
    Column("webhook", Name, nullable=False),
    Column("subscriber", Name, nullable=False),
    Column("message", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("subscription", Name, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("received", BigInteger, nullable=False),
    Column("matched", BigInteger, nullable=False),
    Column("encoding", Text, nullable=True),
    Column("payload", LargeBinary, nullable=False),  # empty once it is sent or dead
    Column("state", String(16), nullable=False),
    Column("tries", Integer, nullable=False),
    Column("due", BigInteger, nullable=True),  # time of the next attempt, while waiting
    Column("code", String(32), nullable=True),  # of its dead letter
    Column("reason", Text, nullable=True),
    Column("burial", String(32), nullable=True, key="letter_batch"),
    Column("ended", BigInteger, nullable=True),
    Column("headers", Text, nullable=True),  # of the message, a JSON object
)

Index(
    "outgoing_due",
    outgoing.c.tenant,
    outgoing.c.webhook,
    outgoing.c.due,
    sqlite_where=outgoing.c.due.is_not(None),
    postgresql_where=outgoing.c.due.is_not(None),
)
Index(
    "outgoing_dying",
    outgoing.c.letter_batch,
    sqlite_where=outgoing.c.state == "dying",
    postgresql_where=outgoing.c.state == "dying",
)
Index(
    "outgoing_sent",
    outgoing.c.ended,
    sqlite_where=outgoing.c.state == "sent",
    postgresql_where=outgoing.c.state == "sent",
)
