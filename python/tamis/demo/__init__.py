"""A small set of messages and subscriptions, and a look at which message reaches whom."""
