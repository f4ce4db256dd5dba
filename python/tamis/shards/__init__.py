"""Shards: how a catalog's subscriptions are divided, and built shard by shard.

    subscription → its place, a number of 128 bits            placing
    places → ranges of about `rows` subscriptions each        spilling
    range → a shard, with the kernel                          building
    changes → the last shard; spread over the others later    changes

A shard holds the subscriptions between two places, so equal queries share one, and a shard that grew too
large is cut at a place. The last shard takes the changes, and all messages visit it.
"""
