"""The identity of a micro-batch: the same when the batch is replayed."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, order=True)
class Batch:
    """The id of a checkpoint, the number of the batch, and a hash of its plan (the offsets it reads).

    A reset checkpoint has a new id. A checkpoint restored from a copy has the same id and repeats numbers:
    then the plans differ.
    """

    checkpoint: str
    number: int
    plan: str = ""

    def __str__(self) -> str:
        return f"{self.checkpoint}-{self.number}"

    def differs_from(self, other: "Batch") -> bool:
        """Whether both have the same number by mistake: their plans differ."""
        return "" not in (self.plan, other.plan) and self.plan != other.plan

    def renamed(self) -> "Batch":
        """The batch under a unique name, with its plan in it."""
        return replace(self, checkpoint=f"{self.checkpoint}~{self.plan}")
