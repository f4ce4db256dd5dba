"""The code that runs in the Python workers of Spark: Arrow batches of messages in, batches of matches out.

    task.py          one task: match or transform each batch, split the result into batches of bounded size
    values.py        one task: value tables
    generations.py   the generations that a worker keeps open from task to task
    tenants.py       messages grouped by tenant, each group matched by itself
    offsets.py       list columns by their offsets, as Arrow stores them; sizes of results before they exist
    positions.py     where a (message, target) pair is in a list column
    elements.py      selected nodes, as a list for each target
    outputs.py       outputs of transformations, as a reference for each target
    errors.py        refusals as a column of structs
    fork_server.py   the process that the Python processes of an embedded Spark are forked from
    without_pandas.py  keeps pyarrow from importing pandas

Nothing here loops over messages or matches: the kernel does that, and the rest works on whole columns.
"""
