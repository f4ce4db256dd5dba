"""Commands for one file start fast: they import nothing that they do not need."""

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {
    "pyarrow",
    "numpy",
    "rich",
    "sqlalchemy",
    "alembic",
    "pyspark",
    "fastapi",
    "pydantic",
    "httpx",
    "lxml",
}


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["check", "//a"], ["match", "-q", "//a", "a.xml"], ["explain", "//a", "a.xml"]],
    ids=lambda arguments: arguments[0],
)
def test_a_small_command_imports_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<a/>")
    program = (
        "import sys\nfrom tamis.cli import main\n"
        "try: main(sys.argv[1:])\nexcept SystemExit: pass\nprint(*sys.modules, file=sys.stderr)"
    )
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert HEAVY.intersection(done.stderr.split()) == set()
