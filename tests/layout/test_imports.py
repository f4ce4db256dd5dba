"""Packages of Python import one way, and light ones stay light."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.helpers import ROOT

LAYERS = [
    *(
        "errors",
        "extras",
        "model",
        "schema",
        "stored_data",
        "shard_methods",
        "engine",
        "naive",
        "shard_files",
        "shards",
        "storage",
        "workload",
        "bench",
        "sources",
        "data",
        "relational",
        "sinks",
        "network",
    ),
    *("settings", "jvm", "catalog", "generations", "pipeline", "status", "spark", "client", "service"),
    *("cli", "demo"),
]
"""Each imports only from those before it. All may import the public names, `tamis` itself."""

HEAVY = {"sqlalchemy", "alembic", "pyspark", "fastapi", "starlette", "uvicorn", "pydantic"}


def modules() -> dict[str, Path]:
    """The modules of the package, by name."""
    found = {}
    for path in (ROOT / "python").rglob("*.py"):
        parts = path.relative_to(ROOT / "python").with_suffix("").parts
        if "migrations" not in parts:
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports(module: str) -> Iterator[str]:
    """The modules that a module imports, wherever in its file."""
    for node in ast.walk(ast.parse(MODULES[module].read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in MODULES else str(node.module)


def layer(module: str) -> str | None:
    """The file or folder directly below `tamis` that a module belongs to."""
    _, *below = module.split(".")
    return below[0] if below else None


def test_the_layers_are_the_packages_that_there_are() -> None:
    assert {layer(module) for module in MODULES} == {None, *LAYERS}


def test_packages_import_only_from_lower_layers() -> None:
    upwards = {
        (module, name)
        for module in MODULES
        for name in imports(module)
        if (own := layer(module)) and layer(name) not in {None, *LAYERS[: LAYERS.index(own) + 1]}
    }
    assert upwards == set()


def test_no_module_imports_itself_through_others() -> None:
    graph = {module: {name for name in imports(module) if name != "tamis"} for module in MODULES}
    assert len(list(TopologicalSorter(graph).static_order())) == len(MODULES)


LIGHT = [name for name in sorted(MODULES) if layer(name) in (None, "errors", "model", "client", "settings")]
NETWORK = [name for name in sorted(MODULES) if layer(name) == "network"]


@pytest.mark.parametrize(
    ("names", "heavy"),
    [
        (LIGHT, HEAVY),
        (NETWORK, HEAVY),
        (["tamis.spark"], HEAVY - {"pyspark"}),
        (["tamis.cli"], HEAVY - {"sqlalchemy", "alembic"}),
    ],
    ids=["values", "network", "spark", "cli"],
)
def test_light_packages_import_nothing_heavy(names: list[str], heavy: set[str]) -> None:
    program = f"import sys, {', '.join(names)}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert heavy.intersection(loaded.stdout.split()) == set()
