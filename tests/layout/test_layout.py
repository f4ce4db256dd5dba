"""The rules of the layout, as tests."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import ROOT

MOST_LINES = 510
"""A few more than the 500 from which CONTRIBUTING asks whether a file has one concept."""

WRITTEN = [
    ("src", ".rs"),
    ("python", ".py"),
    ("python", ".js"),
    ("python", ".css"),
    ("tests", ".py"),
    ("benches", ".py"),
]


def sources(folder: str, suffix: str) -> Iterator[tuple[str, str]]:
    """The files below a folder: path from the root, and text."""
    for path in sorted((ROOT / folder).rglob(f"*{suffix}")):
        if "target" not in path.parts:
            yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")


def naming(folder: str, suffix: str, pattern: str) -> set[str]:
    """The files that a pattern occurs in."""
    return {path for path, text in sources(folder, suffix) if re.search(pattern, text)}


def test_few_files_import_the_kernel() -> None:
    importers = naming("python", ".py", r"import.*\b_kernel\b|from tamis\._kernel")
    named = ("engine", "naive", "schema", "shard_files", "stored_data")
    assert importers == {f"python/tamis/{name}.py" for name in named}


def test_only_the_catalog_has_sql_and_data_that_is_read_by_a_query() -> None:
    named = naming("python", ".py", r"import sqlalchemy|from (sqlalchemy|alembic|psycopg)\b|sqlite3")
    others = {path for path in named if not path.startswith("python/tamis/catalog/")}
    assert others == {"python/tamis/data/sql_query.py"}


def test_only_the_spark_folder_imports_pyspark() -> None:
    named = naming("python", ".py", r"(?m)^\s*(import|from) (pyspark|py4j)\b")
    assert {path for path in named if not path.startswith("python/tamis/spark/")} == set()


def test_only_the_service_imports_its_web_framework() -> None:
    named = naming("python", ".py", r"(?m)^\s*(import|from) (fastapi|starlette|uvicorn|pydantic)\b")
    assert {path for path in named if not path.startswith("python/tamis/service/")} == set()


def test_only_the_python_face_names_pyo3() -> None:
    named = naming("src", ".rs", r"\bpyo3\b|\barrow_(array|buffer|data|schema)\b")
    assert {path for path in named if not path.startswith("src/python/")} == set()


def test_the_kernel_has_no_clock_no_globals_no_network() -> None:
    forbidden = r"std::(time|net|process)\b|thread_local!|static mut|LazyLock|OnceLock|lazy_static"
    assert naming("src", ".rs", forbidden) == set()


def test_the_kernel_starts_a_thread_only_to_parse_ahead_while_a_load_lasts() -> None:
    assert naming("src", ".rs", r"std::thread\b|thread::spawn") == {"src/engine/parse_ahead.rs"}


def test_only_segments_and_snapshots_touch_files() -> None:
    named = naming("src", ".rs", r"std::fs\b|\bFile::|memmap2")
    allowed = {"src/util/storage.rs", "src/engine/data_files.rs", "src/engine/snapshot.rs"}
    assert {path for path in named if "tests" not in path} == allowed


# Each imports only from those before it; `naive.rs` and `python/` stand on top.
LAYERS = ["util", "document", "query", "data", "segment", "matching", "transform", "engine"]


def test_the_layers_of_the_kernel_point_one_way() -> None:
    upwards = set()
    for path, text in sources("src", ".rs"):
        layer = Path(path).parts[1]
        if layer in LAYERS:
            above = "|".join([*LAYERS[LAYERS.index(layer) + 1 :], "naive", "python"])
            code = text.split("#[cfg(test)]")[0]
            upwards |= {(path, name) for name in re.findall(rf"\bcrate::({above})\b", code)}
    assert upwards == set()


@pytest.mark.parametrize(("folder", "suffix"), WRITTEN)
def test_files_are_short(folder: str, suffix: str) -> None:
    long = {path: text.count("\n") for path, text in sources(folder, suffix) if text.count("\n") > MOST_LINES}
    assert long == {}


@pytest.mark.parametrize(("folder", "suffix"), WRITTEN)
def test_nothing_is_left_to_do(folder: str, suffix: str) -> None:
    unfinished = "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", r"todo!\(", r"unimplemented!\("))
    assert naming(folder, suffix, unfinished) == set()


def test_every_unsafe_states_its_invariant() -> None:
    for path, text in sources("src", ".rs"):
        for match in re.finditer(r"^.*\bunsafe\b\s*(\{|impl|fn).*$", text, re.MULTILINE):
            before = text[: match.start()].splitlines()[-6:]
            assert any("SAFETY" in line for line in before), f"{path}: {match[0].strip()}"
