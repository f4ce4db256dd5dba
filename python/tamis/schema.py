"""The element graph of a DTD, as the kernel takes it."""

from functools import lru_cache
from typing import TypeAlias

from tamis import _kernel
from tamis.model.dtd import Dtd

_Elements: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
_Graph: TypeAlias = tuple[_Elements, tuple[str, ...]]
"""Elements with their possible children, and the possible root elements."""


class Schema:
    """The element graph of a DTD, for transformations. Create one per DTD: plans are cached by schema.

    Messages whose root or child elements do not conform are transformed by the general plan.
    """

    def __init__(self, dtd: Dtd) -> None:
        """Take the element graph of a DTD."""
        self._elements = tuple((name, tuple(element.children)) for name, element in dtd.elements.items())
        self._roots = dtd.roots
        self._kernel = _graph(self._elements, self._roots)

    def __getstate__(self) -> _Graph:
        """Pickle the graph. Equal graphs share their plans in a process."""
        return self._elements, self._roots

    def __setstate__(self, graph: _Graph) -> None:
        """Unpickle."""
        self._elements, self._roots = graph
        self._kernel = _graph(*graph)


@lru_cache(maxsize=16)
def _graph(elements: _Elements, roots: tuple[str, ...]) -> _kernel.Schema:
    return _kernel.Schema([(name, list(children)) for name, children in elements], list(roots))
