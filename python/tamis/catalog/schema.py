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

NEWEST = "0004"
"""The migration that makes this schema; a test compares both."""

LONGEST_NAME = 255
"""Characters of an id, a tenant, a subscriber, a map's name: together they must fit an index entry."""

# Names sort by code point in every database, so that pages and exports come in the same order.
Name = String(LONGEST_NAME).with_variant(String(LONGEST_NAME, collation="C"), "postgresql")

metadata = MetaData()

catalog = Table(
    "catalog",
    metadata,
    # The one row. Every writer updates it first: that puts writers in a row, so that who reads a
    # version has seen everything up to it, and nothing commits late below it.
    Column("row", Integer, primary_key=True, autoincrement=False),
    Column("identity", String(32), nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("number", BigInteger, nullable=False),  # the last one given to a subscription
)

# The versions that changes can be asked for since: the newest, and those before that are not forgotten.
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
    Column("version", BigInteger, nullable=False),  # when this number became active or paused
    UniqueConstraint("tenant", "id", name="subscriptions_by_id"),
    ForeignKeyConstraint(
        ["tenant", "prefix_map"], ["prefix_maps.tenant", "prefix_maps.name"], name="subscriptions_prefix_map"
    ),
    Index("subscriptions_by_version", "version"),
    Index("subscriptions_by_subscriber", "tenant", "subscriber", "id"),
)

# The change log. Additions need none: an active subscription has the version it came with.
removals = Table(
    "removals",
    metadata,
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
)

# The last revision of ids that were removed. Delivery ids are made of id and revision: a
# subscription that comes again under its old id must not repeat them.
retired = Table(
    "retired",
    metadata,
    Column("tenant", Name, primary_key=True),
    Column("id", Name, primary_key=True),
    Column("revision", BigInteger, nullable=False),
)

# Who may ask the service. A secret has 256 random bits, so that its plain hash tells nothing.
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

# Messages that the service has accepted: who sends one again is told so, and it is not stored twice.
accepted = Table(
    "accepted",
    metadata,
    Column("source", Name, primary_key=True),
    Column("id", Name, primary_key=True),
    Column("received", BigInteger, nullable=False),
)

# Files whose messages count as accepted and that may not have entered their inbox yet.
entering = Table("entering", metadata, Column("file", Name, primary_key=True))

# Who fills the mailbox updates this one row first: numbers become visible in their order.
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
)

# Only what is still to be fetched: what a subscriber has acknowledged costs nothing when it asks for more.
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

# The publications of an outbox whose deliveries are in the mailbox, by the names of their manifests.
tailed = Table("tailed", metadata, Column("manifest", Name, primary_key=True))

# Where deliveries with the target `webhook:NAME` are sent to.
webhooks = Table(
    "webhooks",
    metadata,
    Column("tenant", Name, primary_key=True),
    Column("name", Name, primary_key=True),
    Column("subscriber", Name, nullable=True),
    Column("url", Text, nullable=False),
    # As they are: what is sent is signed with them, so that a hash would not do.
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

# Deliveries that are sent, and what became of them: waiting, sent, dying (no letter tells of it yet), dead.
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
    Column("due", BigInteger, nullable=True),  # when to try next, while it waits
    Column("code", String(32), nullable=True),  # why it is dead
    Column("reason", Text, nullable=True),
    Column("burial", String(32), nullable=True),  # the letters that it is among
    Column("ended", BigInteger, nullable=True),
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
    outgoing.c.burial,
    sqlite_where=outgoing.c.state == "dying",
    postgresql_where=outgoing.c.state == "dying",
)
Index(
    "outgoing_sent",
    outgoing.c.ended,
    sqlite_where=outgoing.c.state == "sent",
    postgresql_where=outgoing.c.state == "sent",
)
