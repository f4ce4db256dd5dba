"""Deliveries → the terminal: the first ones of each batch."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's custom
from rich.console import Console
from rich.text import Text

from tamis.model.printable import printable

SHOWN_BYTES = 400
"""The most bytes of a payload that are shown; a line is truncated at the width of the terminal."""


def write_console(deliveries: DataFrame, limit: int = 10) -> None:
    """Print a line for each of the first `limit` deliveries of a batch, and `…` if there are more."""
    payload = F.substring("payload", 1, SHOWN_BYTES).alias("payload")
    columns = ("tenant", "subscriber", "subscription", "source", "message")
    rows = deliveries.select(*columns, payload).limit(limit + 1).collect()
    console = Console()
    for row in rows[:limit]:
        recipient = f"{row['tenant']}/{row['subscriber']}" if row["tenant"] else row["subscriber"]
        line = Text.assemble(
            (printable(recipient), "bold"),
            (f" {printable(row['subscription'])} ← {printable(row['source'])}", "dim"),
            f" {printable(row['message'])} ",
            (printable(" ".join(bytes(row["payload"]).decode(errors="replace").split())), "cyan"),
        )
        console.print(line, no_wrap=True, overflow="ellipsis", highlight=False)
    if len(rows) > limit:
        console.print("…", style="dim")
