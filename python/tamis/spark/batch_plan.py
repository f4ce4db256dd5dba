"""A hash of what Spark planned for a batch: distinguishes batches that have the same number."""

from hashlib import blake2b
from pathlib import Path

from tamis.storage.failures import STORE_ERRORS
from tamis.storage.files import fsync


def plan_hash(checkpoint: Path, number: int) -> str:
    """A hash of a batch's entry in the checkpoint's offset log: the same each time the batch is run.

    Spark does not flush its offset log. We do, before any work: otherwise, after a power cut, sinks could
    have results of a batch that Spark then plans differently under the same number.
    """
    offsets = checkpoint / "offsets"
    with STORE_ERRORS.at(offsets):
        fsync(offsets / str(number))
        fsync(offsets)
        return blake2b((offsets / str(number)).read_bytes(), digest_size=8).hexdigest()
