"""`/docs`: the OpenAPI description as one HTML page, without scripts."""

import json
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel

from tamis.service.api.values import RequestModel, ResponseModel

router = APIRouter(include_in_schema=False)

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h2, h3 { font-size: 1rem; margin: 2rem 0 0; }
h4 { font-size: .9rem; margin: .6rem 0 .2rem; }
pre { overflow-x: auto; margin: .3rem 0; padding: .5rem; background: #8881; }
code { font-family: ui-monospace, monospace; }
.method { display: inline-block; min-width: 4.5rem; font-weight: bold; }
dt { font-family: ui-monospace, monospace; }
dd { margin: 0 0 .3rem 1.5rem; }
"""


def complete(app: FastAPI) -> None:
    """Describe responses by their models. Give models their examples again: FastAPI leaves out nulls."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        described = generate()
        models = described["components"]["schemas"]
        for model in _models(*RequestModel.__subclasses__(), *ResponseModel.__subclasses__()):
            # One that a route reads by itself is not there yet.
            made = model.model_json_schema(ref_template="#/components/schemas/{model}")
            known = models.setdefault(model.__name__, made)
            if "examples" in made:
                known["examples"] = made["examples"]
        for operation in (one for methods in described["paths"].values() for one in methods.values()):
            for response in operation["responses"].values():
                if response["description"] == "Successful Response":
                    response["description"] = _meaning(response, models)
        return described

    # As FastAPI's manual extends it; mypy takes it for a mistake.
    setattr(app, "openapi", openapi)  # noqa: B010


def _models(*roots: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for one in roots:
        yield one
        yield from _models(*one.__subclasses__())


def _meaning(response: Mapping[str, Any], models: Mapping[str, Any]) -> str:
    """What a response is, by its model."""
    for content in response.get("content", {}).values():
        schema = content["schema"]
        if "$ref" in schema:
            return str(models[_model_name(schema)]["description"])
        return "All that the caller may see."
    return "Done; there is no body."


def _model_name(reference: Mapping[str, str]) -> str:
    return reference["$ref"].rpartition("/")[2]


@router.get("/docs")
def docs(request: Request) -> HTMLResponse:
    """All operations, and the fields of all bodies."""
    described = request.app.openapi()
    operations = [
        _operation(path, method, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>tamis</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{_STYLE}</style><h1>tamis {escape(described['info']['version'])}</h1>"
        f"<p>{escape(described['info']['description'])} The full description: "
        '<a href="/openapi.json">openapi.json</a>.</p>'
        + "".join(operations)
        + "<h2>Bodies</h2>"
        + "".join(_body(name, schema) for name, schema in described["components"]["schemas"].items())
    )
    return HTMLResponse(
        page, headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
    )


def _operation(path: str, method: str, operation: dict[str, Any]) -> str:
    parts = [
        f'<h2><code><span class="method">{method.upper()}</span>{escape(path)}</code></h2>',
        f"<p>{escape(operation.get('description', ''))}</p>",
    ]
    parameters = [
        f"<dt>{escape(one['name'])}</dt><dd>{escape(one['description'])}</dd>"
        for one in operation.get("parameters", ())
    ]
    parts += ["<dl>", *parameters, "</dl>"]
    request = operation.get("requestBody", {}).get("content", {})
    parts += [_content("Body", kind, described) for kind, described in request.items()]
    for status, response in operation["responses"].items():
        title = f"{status}: {response['description']}"
        contents = response.get("content", {}).items()
        parts += [_content(title, kind, described) for kind, described in contents] or [_title(title)]
    return "".join(parts)


def _content(title: str, kind: str, described: Mapping[str, Any]) -> str:
    """A body of a request or a response: what it is, and its own examples."""
    examples = [one["value"] for one in described.get("examples", {}).values()]
    if "example" in described:
        examples.append(described["example"])
    return _title(title) + f"<p>{escape(kind)}: {_type(described['schema'])}</p>" + _examples(examples)


def _body(name: str, schema: Mapping[str, Any]) -> str:
    """A model: its fields and examples."""
    fields = [
        f"<dt>{escape(field)}: {_type(described)}</dt><dd>{escape(described['description'])}</dd>"
        for field, described in schema.get("properties", {}).items()
    ]
    head = f'<h3 id="{name}"><code>{name}</code></h3><p>{escape(schema["description"])}</p>'
    return "".join([head, "<dl>", *fields, "</dl>"]) + _examples(schema.get("examples", ()))


def _type(schema: Mapping[str, Any]) -> str:
    """The type of a value, with links to models."""
    if "$ref" in schema:
        name = _model_name(schema)
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if schema.get("type") == "array" and "items" in schema:
        return f"list of {_type(schema['items'])}"
    return escape(str(schema.get("format") or schema.get("const") or schema.get("type", "object")))


def _title(text: str) -> str:
    return f"<h4>{escape(text)}</h4>"


def _examples(examples: Iterable[object]) -> str:
    texts = (
        one if isinstance(one, str) else json.dumps(one, indent=1, ensure_ascii=False) for one in examples
    )
    return "".join(f"<pre>{escape(text)}</pre>" for text in texts)
