"""The operations of the HTTP API, a file per resource.

subscriptions.py  messages.py  deliveries.py  dead_letters.py  webhooks.py
matching.py  try a message or a query: /v1/match, /v1/check
state.py     status, sources, sinks, metrics
token.py     the token of the request      health.py   /health and /ready, without a token
security.py  access control for all of them: tokens, roles, rate limits, body limits
charset.py   the charset of a Content-Type
values.py    types that requests share     docs.py     /docs, from the OpenAPI description
"""
