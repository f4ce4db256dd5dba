"""The command line `tamis`: one module a command.

commands.py       the list of commands
inputs.py  documents.py  namespaces.py  data.py   shared by commands: queries, documents, prefix maps, data
tables.py  progress.py                   … tables, progress bars
limits.py  warnings.py                   … the flag --limit, warnings of queries
live.py           the live display of a job
remote.py  remote_letters.py             a service with the same methods as the local catalog
processes.py  child.py                   commands as child processes that end with their parent
"""

from tamis.cli.commands import main

__all__ = ["main"]
