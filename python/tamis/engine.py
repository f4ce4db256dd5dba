"""The one importer of the kernel."""

from tamis import _kernel

__version__: str = _kernel.__version__
