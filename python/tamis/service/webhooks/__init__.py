"""Deliveries to webhooks: sent, retried with backoff, or moved to the dead letters.

sender.py        the queue in the catalog → HTTP requests, with limits in total and per webhook
cloudevents.py   a delivery → the body of a request: a CloudEvent 1.0
retry.py         a response → done, retry later, or give up
dead_letters.py  deliveries that failed for good → dead letters, exactly once
"""
