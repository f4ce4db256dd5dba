"""Code that tests share."""

from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
CASES = ROOT / "tests" / "cases"
