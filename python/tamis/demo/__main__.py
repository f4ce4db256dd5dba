"""`make demo`: filter the shipped messages by the shipped subscriptions, and show what happened."""

import tomllib
from importlib.resources import files

import pyarrow as pa
from rich.console import Console
from rich.table import Table
from rich.text import Text

import tamis
from tamis.errors import marked


def main() -> None:
    """Load the subscriptions, match the messages, print two tables."""
    console = Console()
    folder = files("tamis.demo")
    given = tomllib.loads((folder / "subscriptions.toml").read_text("utf-8"))
    subscriptions, namespaces = given["subscription"], given["namespaces"]

    index = tamis.Index()
    table = pa.table(
        {
            "target": pa.array(range(len(subscriptions)), pa.uint64()),
            "query": pa.array([subscription["query"] for subscription in subscriptions]),
        }
    )
    refused = {row["row"]: row for row in index.load(table, namespaces=namespaces).to_pylist()}

    shown = Table("subscriber", "query", title="Subscriptions", title_justify="left", show_lines=True)
    for number, subscription in enumerate(subscriptions):
        query = Text(subscription["query"])
        if row := refused.get(number):
            spot = marked(subscription["query"], row["line"], row["column"], width=50)
            query = Text(f"{spot}\nrefused at column {row['column']}: {row['reason']}", style="red")
        shown.add_row(subscription["subscriber"], query)
    console.print(shown)

    paths = sorted((folder / "messages").iterdir(), key=lambda path: path.name)
    messages = [path.read_bytes() for path in paths]
    shown = Table("message", "reaches", "candidates", title="Messages", title_justify="left", show_lines=True)
    matches = index.match_batch(messages)
    targets = index.targets(matches).to_pylist()
    for path, message, row, reached in zip(paths, messages, matches.to_pylist(), targets, strict=True):
        if row["code"] is not None:
            spot = marked(message.decode(), row["line"], row["column"], width=44)
            place = f"line {row['line']}, column {row['column']}"
            shown.add_row(path.name, Text(f"{spot}\nrefused at {place}: {row['reason']}", style="red"), "")
        else:
            whom = "\n".join(subscriptions[target]["subscriber"] for target in reached or ())
            shown.add_row(path.name, whom or Text("nobody", style="dim"), str(row["candidates"]))
    console.print(shown)
    console.print("Why? For example:  [bold].venv/bin/tamis explain QUERY DOC[/]")


if __name__ == "__main__":
    main()
