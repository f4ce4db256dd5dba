"""Local data: the flag `--data`."""

import argparse
from pathlib import Path

import tamis


def add_data(command: argparse._ActionsContainer) -> None:
    """The flags for local data."""
    command.add_argument(
        "--data",
        type=_named,
        action="append",
        metavar="NAME=FILE",
        help="local data for queries: an XML file, a folder of them, *.csv or *.parquet; may be repeated",
    )
    command.add_argument(
        "--data-record",
        type=_named,
        action="append",
        metavar="NAME=ELEMENT",
        help="the element of an XML file of --data that each record is",
    )


def attach_data(index: tamis.Index, options: argparse.Namespace) -> None:
    """Attach the data of the flags; `DataError` if a file cannot be read."""
    records = dict(options.data_record or ())
    names = {name for name, _ in options.data or ()}
    if unknown := sorted(records.keys() - names):
        raise tamis.DataError("unknown-data", f"--data-record names data that --data does not: {unknown[0]}")
    for name, path in options.data or ():
        # Not at the top: commands without data start faster.
        from tamis.data.reading import read_data

        data = read_data(Path(path), record=records.get(name))
        try:
            index.attach(name, data)
        except tamis.ReadError as error:
            raise tamis.DataError(error.code, f"{path}: {error.reason}") from None


def _named(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"`{text}` has not the form NAME=…")
    return name, value
