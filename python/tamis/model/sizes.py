"""Sizes as people write them: `67108864`, `64MiB`, `1_000_000`, `20MB`."""

import re

_UNITS = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}

_SIZE = re.compile(r"(\d[\d_]*)\s*([a-z]*)", re.IGNORECASE)


def size_of(text: str) -> int:
    """The number that a text stands for; `ValueError` if it is not a number with or without a unit."""
    found = _SIZE.fullmatch(text.strip())
    unit = None if found is None else _UNITS.get(found[2].lower())
    if found is None or unit is None:
        raise ValueError(f"{text!r} is not a size: write 1048576, 64KiB, 20MB, 1GiB …")
    return int(found[1].replace("_", "")) * unit
