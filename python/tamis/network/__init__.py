"""The network of brokers: who is linked to whom, and the logs of parcels between them. No Spark, no SQL.

topology.py     brokers and links of `network.toml`: a tree
limits.py       what one broker accepts, no other refuses
parcel.py       what crosses a link at once, as a value and as bytes
log.py          the log of parcels that one end of a link sends, in a directory
messages.py     the messages of a parcel: which cross a link, and which are refused when they arrive
arrivals.py     what arrived over all links of a broker, numbered anew
carrier.py      what carries the parcels of a link
kafka_link.py   … a topic of Kafka for each direction
link_end.py     one end of a link: publish, store, acknowledge, delete
in_vain.py      what arrived although nobody wanted it
exchange.py     all links of a broker, a thread each
interest.py     rows of what is wanted: map, collect, aggregate
tables.py       the version of a table of routes, and its hash
notices.py      what neighbours tell each other about their tables, as values and as bytes
generalise.py   wider rows in place of too many
advert.py       the table that is advertised to one neighbour
routing.py      tables of neighbours, tables advertised to them, and since when they are in force
routing_ports.py    what routing needs from outside: the catalog, generations, links
routing_thread.py   the thread that routing runs in
"""
