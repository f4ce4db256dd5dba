"""What the kernel (src/python) shows to `tamis.engine`, and to nothing else."""

__version__: str
