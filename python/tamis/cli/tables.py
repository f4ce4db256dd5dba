"""Tables on standard output: for people in a terminal, tab-separated for programs."""

import sys
from collections.abc import Sequence

from tamis.model.printable import printable


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]], whole: Sequence[str] = ()) -> None:
    """Print rows. The columns `whole` are not wrapped in a terminal, and empty columns are left out there.

    If standard output is not a terminal: one row per line, all columns, separated by tabs, no titles.
    """
    # Untrusted text may contain line breaks and tabs: `printable` replaces them.
    cells = [[printable(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        sys.stdout.writelines("\t".join(row) + "\n" for row in cells)
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    shown = [at for at, _ in enumerate(titles) if not rows or any(row[at] for row in rows)]
    for title in (titles[at] for at in shown):
        width = max(map(len, title.split()))
        table.add_column(title, overflow="fold", no_wrap=title in whole, min_width=width)
    for row in cells:
        # `Text`: square brackets are not markup.
        table.add_row(*(Text(row[at]) for at in shown))
    Console().print(table)
