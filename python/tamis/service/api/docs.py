"""`/docs`: the OpenAPI description as one HTML page, without scripts."""

from html import escape
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

router = APIRouter(include_in_schema=False)

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h2 { font-size: 1rem; margin: 2rem 0 0; }
code { font-family: ui-monospace, monospace; }
.method { display: inline-block; min-width: 4.5rem; font-weight: bold; }
dt { font-family: ui-monospace, monospace; }
dd { margin: 0 0 .3rem 1.5rem; }
"""


@router.get("/docs")
def docs(request: Request) -> HTMLResponse:
    """The list of operations."""
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
        '<a href="/openapi.json">openapi.json</a>.</p>' + "".join(operations)
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
        f"<dt>{escape(one['name'])}</dt><dd>{escape(one.get('description', one['in']))}</dd>"
        for one in operation.get("parameters", ())
    ]
    content = operation.get("requestBody", {}).get("content", {})
    parameters += [f"<dt>{escape(kind)}</dt><dd>the body</dd>" for kind in content]
    return "".join([*parts, "<dl>", *parameters, "</dl>"])
