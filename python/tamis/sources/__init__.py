"""Where messages come from: inbox directories with the files in them, and Kafka.

    directory.py         an inbox: list files, plan batches, read slices, remove finished files
    ledger.py            the numbers of an inbox's files, in a log that survives restarts
    envelopes.py         messages of files → envelopes, as Arrow batches
    raw_message.py       what reading a file gives: a message, or a region that is no message
    file_formats.py      the reader for a file, by its name
    json_lines.py        … of JSON lines
    parquet.py           … of Parquet
    record_splitter.py   … of large XML files, split at a record element
    markup.py            regular expressions for XML markup
    bytestream.py        the bytes of a file from an offset, gzip included
    sliding_buffer.py    the bytes that a reader has not consumed yet, as UTF-8
    transcode.py         other encodings → UTF-8
    kafka.py             the settings of Kafka as source and sink
    kafka_jars.py        Spark's Kafka connector, downloaded once
    arrivals.py          arrivals over links, as a source
    dtd_file.py          DTDs of sources

Nothing here matches messages or imports Spark; `spark/connectors` does the latter.
"""
