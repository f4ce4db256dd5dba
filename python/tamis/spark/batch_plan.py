"""What Spark has planned for a batch, before it begins."""

from hashlib import blake2b
from pathlib import Path

from tamis.storage.failures import STORE_ERRORS
from tamis.storage.files import fsync


def plan_of(checkpoint: Path, number: int) -> str:
    """A batch's plan in a checkpoint as a hash: the same each time that it is run, and no other batch's.

    Spark leaves it to the system when what it writes reaches the disk. Whatever is done for a batch must not
    outlive its plan: after a power cut another one would be made under the same number.
    """
    offsets = checkpoint / "offsets"
    with STORE_ERRORS.at(offsets):
        fsync(offsets / str(number))
        fsync(offsets)
        return blake2b((offsets / str(number)).read_bytes(), digest_size=8).hexdigest()
