"""The API against its OpenAPI description: random requests cause no internal error, responses conform."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)

from tamis.model.token import Role
from tamis.service.app import application
from tamis.service.service import Service
from tests.helpers.delivery_rows import delivery
from tests.helpers.served import Served, serving, settings_in
from tests.service.test_service_deliveries import publish
from tests.service.test_service_letters import letter, write_letters
from tests.service.test_service_tenants import OPERATIONS

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@schemathesis.serializer("application/x-ndjson")
def lines(context: schemathesis.SerializationContext, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


STREAM = "/v1/deliveries/events"
"""It does not end; `test_service_deliveries.py` has it."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("contract")
    with serving(settings_in(folder)) as served:
        publish(folder, 0, [delivery(1), delivery(2)])
        write_letters(folder, 0, [letter("m1")])
        served.client().post("/v1/subscriptions", json={"id": "0", "query": "//a", "subscriber": "0"})
        served.client().post("/v1/webhooks", json={"name": "0", "url": "https://localhost:1/"})
        yield served


@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize(("method", "path"), sorted(OPERATIONS.keys() - {("GET", STREAM)}))
def test_random_requests_cause_no_internal_error(
    served: Served, method: str, path: str, mode: GenerationMode
) -> None:
    """Check that a response is as described."""
    described = schemathesis.openapi.from_url(f"{served.url}/openapi.json")
    headers = {"Authorization": f"Bearer {served.secret(Role.ADMIN)}"}

    @settings(max_examples=15, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(described[path][method].as_strategy(generation_mode=mode))
    def send(case: schemathesis.Case[Any]) -> None:
        answer = case.call(headers=headers, timeout=60)
        case.validate_response(answer, checks=CHECKS)

    with suppress(Unsatisfiable):
        # There may be nothing that could be wrong.
        send()


def test_all_operations_are_described(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path)) as served:
        described = application(Service(served.settings, served.catalog)).openapi()
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            assert operation["description"], (method, path)
            for status in ("4XX", "5XX"):
                schema = operation["responses"][status]["content"]["application/json"]["schema"]
                assert schema == {"$ref": "#/components/schemas/ErrorBody"}
    assert STREAM in described["paths"]


def test_everything_is_described_and_has_an_example(tmp_path: Path) -> None:
    """Each parameter, field and response; each body has an example that its schema allows."""
    with serving(settings_in(tmp_path)) as served:
        described = application(Service(served.settings, served.catalog)).openapi()
        page = served.client(Role.ADMIN).get("/docs").text
    models = described["components"]["schemas"]
    for name, model in models.items():
        assert model["description"], name
        assert f'id="{name}"' in page
        for field, schema in model.get("properties", {}).items():
            assert schema.get("description"), (name, field)
        for example in model.get("examples", ()):
            validate(example, model, described)
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            for parameter in operation.get("parameters", ()):
                assert parameter.get("description"), (method, path, parameter["name"])
            bodies = [operation["requestBody"]] if "requestBody" in operation else []
            for status, response in operation["responses"].items():
                assert response["description"] not in ("", "Successful Response"), (method, path, status)
                bodies.append(response)
            for body in bodies:
                for kind, content in body.get("content", {}).items():
                    examples = examples_of(content, models)
                    assert examples, (method, path, kind)
                    for example in examples:
                        validate(example, content["schema"], described)


def examples_of(content: dict[str, Any], models: dict[str, Any]) -> list[Any]:
    """The examples of a body: its own, or those of its model; a list may have one of its items."""
    own = [one["value"] for one in content.get("examples", {}).values()]
    own += [content["example"]] if "example" in content else []
    schema = content["schema"]
    for one in (schema, *schema.get("anyOf", ())):
        own += models[_name(one)].get("examples", []) if "$ref" in one else []
    if "$ref" in schema.get("items", {}):
        own += [[example] for example in models[_name(schema["items"])].get("examples", [])]
    return own


def _name(reference: dict[str, str]) -> str:
    return reference["$ref"].rpartition("/")[2]


def validate(example: Any, schema: dict[str, Any], described: dict[str, Any]) -> None:
    jsonschema_rs.validate(schema | {"components": described["components"]}, example)
