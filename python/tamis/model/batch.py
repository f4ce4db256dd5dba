"""A micro-batch, by what stays the same when it is run again."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, order=True)
class Batch:
    """A checkpoint's id, the number of a batch in it, and what was planned under that number.

    A reset checkpoint has another id. One that is restored from a copy has the same, and gives numbers out
    again that are taken: then the plans differ. What follows batches finds them by checkpoint and number.
    """

    checkpoint: str
    number: int
    plan: str = ""

    def __str__(self) -> str:
        return f"{self.checkpoint}-{self.number}"

    def differs_from(self, other: "Batch") -> bool:
        """Whether the number was given to another batch too."""
        return "" not in (self.plan, other.plan) and self.plan != other.plan

    def apart(self) -> "Batch":
        """The batch by a name that no other one has."""
        return replace(self, checkpoint=f"{self.checkpoint}~{self.plan}")
