"""Values as literals of the query language."""

from collections.abc import Mapping, Sequence

from tamis.workload.profile import NUMBER, Values


class Literals:
    """XPath literals of values: quoted if on one line, and bare if numbers."""

    def __init__(self, values: Sequence[str]) -> None:
        self.pairs: list[tuple[str | None, str | None]] = []
        for value in values:
            quoted = number = None
            if value.isprintable() and not ('"' in value and "'" in value):
                quoted = f"'{value}'" if '"' in value else f'"{value}"'
            if NUMBER.fullmatch(value.strip()):
                number = value.strip()
            if quoted is not None or number is not None:
                self.pairs.append((quoted, number))
        self.numbers = [number for _, number in self.pairs if number is not None]


def literals(values: Mapping[str, Values]) -> dict[str, Literals]:
    """Literals by name, without names that have none."""
    literals = {name: Literals(found.values) for name, found in values.items()}
    return {name: found for name, found in literals.items() if found.pairs}
