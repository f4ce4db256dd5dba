"""The side-car of a file in an inbox: `order.xml.headers` has the headers of the messages in `order.xml`.

It is a JSON object of strings, and is there before its file. It goes where its file goes.
"""

import json
from pathlib import Path

from tamis.model.headers import MAX_BYTES, HeaderError, pack_headers, unpack_headers

SUFFIX = ".headers"

_LONGEST = 6 * MAX_BYTES + (4 << 10)
"""JSON may escape a character as six; the rest is room for quotes and white space."""


def is_side_car(name: str) -> bool:
    """Whether a name is that of a side-car, and not of a file with messages."""
    return name.endswith(SUFFIX)


def side_car_of(path: Path) -> Path:
    """Where the side-car of a file is, if it has one."""
    return path.with_name(path.name + SUFFIX)


def read_side_car(path: Path) -> dict[str, str]:
    """The headers in a side-car; none if it does not exist. `HeaderError` if it has something else."""
    try:
        with path.open("rb") as file:
            text = file.read(_LONGEST + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise HeaderError("bad-header", f"{path.name} cannot be read: {error.strerror}") from error
    if len(text) > _LONGEST:
        raise HeaderError("header-limit", f"{path.name} has more than {_LONGEST} bytes")
    try:
        return unpack_headers(pack_headers(json.loads(text)))
    except (ValueError, RecursionError) as error:
        raise HeaderError("bad-header", f"{path.name} is not JSON: {error}") from error
    except HeaderError as error:
        raise HeaderError(error.code, f"{path.name}: {error.reason}") from error
