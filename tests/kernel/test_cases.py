"""Behaviour as data: `cases/*.toml`, replayed through every engine and the oracle."""

import tomllib
from typing import Any

import pytest

from tests.helpers import CASES
from tests.helpers.engines import ENGINES


def behaviour() -> list[Any]:
    """All cases of all behaviour files, named after file and case."""
    found = []
    for path in sorted(CASES.glob("*.toml")):
        content = tomllib.loads(path.read_text("utf-8"))
        for case in content.get("case", []):
            if "xml" in case:
                found.append(pytest.param(case, id=f"{path.stem}: {case['name']}"))
    return found


@pytest.mark.parametrize("case", behaviour())
def test_every_engine_gives_the_expected_answer(case: dict[str, Any]) -> None:
    holding, failing = case.get("true", []), case.get("false", [])
    queries = [*holding, *failing]
    for name, engine in ENGINES.items():
        (matched,) = engine(queries, [case["xml"].encode()], case.get("namespaces", {}))
        wrong = [queries[place] for place in sorted(matched ^ set(range(len(holding))))]
        assert not wrong, f"{name} answers otherwise"
