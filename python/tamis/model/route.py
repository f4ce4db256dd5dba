"""A route: a row of what a neighbour wants, which messages are matched against as subscriptions are."""

ROUTE_REVISION = 0
"""The revision of a route among subscriptions, whose revisions start from 1. Its id is the name of a link."""
