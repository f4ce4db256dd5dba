r"""Files of queries: one query per line.

A line that begins with `#` is a comment, and a line that ends with `\` continues on the next one. No query
begins or ends like this, so every query keeps its meaning:

    # orders of a value
    //item[price > 50]
    for $i in //item \
      return $i/price

The queries of this file are numbered 2 and 3, by their first lines.
"""

from collections.abc import Iterator

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def queries_of_file(content: bytes) -> Iterator[tuple[int, bytes]]:
    """The queries of a file, each with the number of its first line, from 1."""
    lines = enumerate(content.removeprefix(BYTE_ORDER_MARK).split(b"\n"), start=1)
    for number, first in lines:
        if not first.strip() or first.lstrip().startswith(b"#"):
            continue
        parts = [first.rstrip(b"\r")]
        # A line break stays a line break: positions in errors are those of the file.
        while parts[-1].endswith(b"\\"):
            parts[-1] = parts[-1][:-1]
            _, following = next(lines, (0, b""))
            parts.append(following.rstrip(b"\r"))
        yield number, b"\n".join(parts)
