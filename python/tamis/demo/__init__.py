"""`make demo`: the service with shipped messages and subscriptions, and a feed.

__main__.py       the demo, step by step
broker.py         `tamis serve` in a temporary folder
participants.py   the clients: subscribers that listen, a feed that publishes
network.py        with `NETWORK=1`: six linked brokers
kafka_broker.py   a Kafka broker to try and to test with
"""
