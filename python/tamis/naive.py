"""The naive evaluator: slow and simple, which tests compare every engine with."""

from collections.abc import Mapping, Sequence

from tamis import _kernel
from tamis.engine import Namespaces
from tamis.model.data import Data
from tamis.model.matching import Limits
from tamis.model.messages import Messages, as_arrow

_DEFAULT_LIMITS = Limits()


def naive_batch(
    queries: Sequence[str],
    messages: Messages,
    namespaces: Namespaces | None = None,
    limits: Limits = _DEFAULT_LIMITS,
    data: Mapping[str, Data] | None = None,
) -> list[list[int]]:
    """For each message, the indexes of matching queries."""
    given = (list(queries), as_arrow(messages), dict(namespaces or {}), limits, _read_all(data, limits))
    return _kernel.naive_batch(*given)


def naive_transform(
    queries: Sequence[str],
    messages: Messages,
    namespaces: Namespaces | None = None,
    limits: Limits = _DEFAULT_LIMITS,
    *,
    data: Mapping[str, Data] | None = None,
    output_limit: int = 64 << 20,
) -> list[list[tuple[bytes | None, str | None]]]:
    """For each message and each transformation, its output, or the code of why there is none."""
    given = (list(queries), as_arrow(messages), dict(namespaces or {}), limits, _read_all(data, limits))
    return _kernel.naive_transform(*given, output_limit)


def _read_all(data: Mapping[str, Data] | None, limits: Limits) -> list[tuple[str, _kernel.Data]]:
    return [(name, _kernel.Data(as_arrow(one.records), limits)) for name, one in (data or {}).items()]
