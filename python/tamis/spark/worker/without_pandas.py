"""Keeps pyarrow from importing pandas, which takes half a second in each process of the job."""

import sys
import warnings
from types import ModuleType

import pyarrow as pa


def without_pandas() -> None:
    """For processes of our own that use no pandas. Pyarrow looks for it once, at its first conversion."""
    if "pandas" in sys.modules:
        return
    stand_in = ModuleType("pandas")
    # So old that pyarrow does without.
    stand_in.__version__ = "0"  # type: ignore[attr-defined]
    sys.modules["pandas"] = stand_in
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pa.array([])
    finally:
        del sys.modules["pandas"]
