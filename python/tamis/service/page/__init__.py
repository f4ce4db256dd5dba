"""The page at `/`: static files, the same for everybody; it gets all data from the API.

    index.html   js/main.js is the entry point, js/views.js lists the views, each is a file in js/views/
    css/         tokens (colours, sizes), base elements, shell, shared parts, views

The files are public, so the browser gets strict rules: no other origin, no inline code.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Request, Response

router = APIRouter(include_in_schema=False)

_TYPES: Mapping[str, str] = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}

_HEADERS: Mapping[str, str] = {
    # Only our own files, no inline code, no code from strings, no frames of other sites.
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; "
        "require-trusted-types-for 'script'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Revalidated each time by ETag: an upgrade shows at once.
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    type: str
    tag: str


def _read() -> dict[str, _File]:
    """All files by URL path, read once: no request can name another path of the disk."""
    read = {}
    for path, file in _below(files(__package__), "/page"):
        kind = _TYPES.get(path.rpartition(".")[2])
        if kind is not None:
            content = file.read_bytes()
            tag = f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'
            read["/" if path == "/page/index.html" else path] = _File(content, kind, tag)
    return read


def _below(folder: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        at = f"{path}/{entry.name}"
        if entry.is_dir():
            yield from _below(entry, at)
        else:
            yield at, entry


_FILES = _read()

PATHS = frozenset(_FILES)
"""The paths of the page. They are public: the files hold no data."""


async def _file(request: Request) -> Response:
    file = _FILES[request.url.path]
    headers = {**_HEADERS, "ETag": file.tag}
    known = {tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")}
    if known & {file.tag, "*"}:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.type, headers=headers)


for _path in sorted(PATHS):
    router.add_api_route(_path, _file, methods=["GET", "HEAD"])
