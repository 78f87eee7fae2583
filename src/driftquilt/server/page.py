"""The live page: its files, read once at start, and the headers that fence it in.

The page is plain HTML, CSS and ES modules with no build step and no other host. Drawings come from
`report`, with the style sheet and the script that the HTML report has too.

>>> page = load_page()
>>> page["/"].media_type, page["/static/page.js"].media_type
('text/html; charset=utf-8', 'text/javascript; charset=utf-8')
>>> page["/static/drawings.css"].content[:20]
b':root{--paper:#fffff'
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files

from driftquilt.report.html import drawing_files

__all__ = ["HEADERS", "PageFile", "load_page"]

#: Nothing runs on the page, and nothing is fetched, but what this service itself serves.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",  # the browser asks each time, and the ETag answers
}
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class PageFile:
    """A file as it is sent; the tag changes whenever the content does."""

    content: bytes
    media_type: str
    etag: str


def load_page() -> dict[str, PageFile]:
    """Every file of the page by the path it is served at."""
    found = {
        f"/static/{name}": _page_file(name, text.encode()) for name, text in drawing_files().items()
    }
    for file in (files("driftquilt.server") / "static").iterdir():
        path = "/" if file.name == "index.html" else f"/static/{file.name}"
        found[path] = _page_file(file.name, file.read_bytes())
    return found


def _page_file(name: str, content: bytes) -> PageFile:
    ending = name[name.rindex(".") :]
    return PageFile(content, _TYPES[ending], f'"{hashlib.sha256(content).hexdigest()[:32]}"')
