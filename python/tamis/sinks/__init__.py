"""Where deliveries and dead letters go: directories of files, and webhooks.

published.py      a directory that batches are published to exactly once
outbox.py         … with deliveries
dead_letters.py   … with dead letters
replay.py         replays dead letters: to an inbox, or to a webhook
formats.py        rows → Parquet, JSON lines, XML
payloads.py       payloads as text, for JSON
xml_content.py    messages as the content of another XML document
webhook.py        HTTP requests to webhooks
addresses.py      which network addresses may be connected to

Kafka's sink is in `sources/kafka.py`, next to its source; `spark/connectors` writes all of them from Spark.
"""
