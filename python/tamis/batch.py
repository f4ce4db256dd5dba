"""A micro-batch, by what stays the same when it is run again."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Batch:
    """A checkpoint's id, the number of a batch in it, and what was planned under that number.

    A reset checkpoint has another id. One that is restored from a copy has the same, and gives numbers out
    again that are taken: then the plans differ.
    """

    checkpoint: str
    number: int
    plan: str = ""

    def __str__(self) -> str:
        return "-".join(part for part in (self.checkpoint, str(self.number), self.plan) if part)
