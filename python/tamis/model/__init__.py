"""Light values that every layer above uses. Importing them imports no database, web framework or Spark.

matching.py       limits, query, generation, statistics, results of matching
explanation.py    why a query matches a message
dtd.py            the elements of a DTD
subscription.py   subscriptions and prefix maps; subscription_lines.py has their JSON lines
envelope.py       the columns of a message
batch.py          a micro-batch     version.py   a version of the catalog
token.py  webhook.py  signatures.py     access, webhooks, and how webhooks are signed
message_id.py     the rule for message ids
query_file.py     files of queries
sizes.py          sizes such as `64MiB`
backoff.py        exponential backoff
printable.py  progress.py               text for a terminal, progress callbacks
"""
