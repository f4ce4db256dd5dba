"""From the catalog to generations, and from there to every worker.

publisher.py  catalog → generations
compiled.py   changes → the next generation, of one shard
sharded.py    … of several shards
numbered.py   subscriptions by number
manifest.py   the files of a generation
store.py      where generations are published and fetched from
opener.py     files → an open generation
damage.py     which errors mean damage
"""
