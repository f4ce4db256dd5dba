"""Sources and sinks as DataFrames.

Sources:
    inbox.py          an inbox directory → envelopes
    kafka.py          Kafka → envelopes, and deliveries → Kafka
    arrivals.py       arrivals over links → envelopes
Sinks:
    sinks.py          the sinks of the settings, in the order in which they are written
    publishing.py     rows → files, published by one manifest
    outbox.py         … of deliveries
    dead_letters.py   … of dead letters
    console.py        deliveries → the terminal
    links.py          messages → parcels
"""
