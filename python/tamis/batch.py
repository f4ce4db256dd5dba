"""A micro-batch, by what stays the same when it is run again."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Batch:
    """A checkpoint's id and the number of a batch in it. A reset checkpoint has another id."""

    checkpoint: str
    number: int

    def __str__(self) -> str:
        return f"{self.checkpoint}-{self.number}"
