"""Links that leave the docs, or lead to a script, become pages of the site.

In the repository `../benchmarks/results/bench.md` and `recipes/late_labels.py` are files that one
can open. A site has only what is put into it: so each file that a page links to is added, a
script as a page that shows its code. A link to a folder becomes plain text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ADDED = "source"  # the folder of the site for what stands outside of the docs
_LINK = re.compile(
    r"(?P<text>!?\[(?:[^\[\]]|\[[^\]]*\])*\])"
    r"\((?P<path>[^)\s#:]+)(?P<head>#[^)\s]*)?\)"
)
_CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def place_of(path: str) -> str:
    """Where in the site a link leads, as seen from a page at the top of the docs."""
    place = re.sub(r"^\.\./", f"{ADDED}/", path)
    return f"{place}.md" if place.endswith(".py") else place


def linked(markdown: str, docs: Path) -> dict[str, Path]:
    """Return the files to add: where they go, and where they are."""
    paths = [match["path"] for match in _LINK.finditer(_CODE.sub("", markdown))]
    found = {place_of(path): docs / path for path in paths if place_of(path) != path}
    return {place: path for place, path in found.items() if path.is_file()}


def rewrite(markdown: str, docs: Path) -> str:
    """Return the page with its links turned to what the site has; code stays as it is."""
    return _outside_code(markdown, lambda text: _turn(text, docs))


def unlink(markdown: str) -> str:
    """Return a page that was added with its relative links as text: the site lacks their ends."""
    return _outside_code(markdown, lambda text: _LINK.sub(_only_text, text))


def _only_text(match: re.Match[str]) -> str:
    return match["text"].lstrip("!").strip("[]")


def _outside_code(markdown: str, change: Callable[[str], str]) -> str:
    parts, end = [], 0
    for code in _CODE.finditer(markdown):
        parts += [change(markdown[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, change(markdown[end:])])


def _turn(text: str, docs: Path) -> str:
    def turn(match: re.Match[str]) -> str:
        path = match["path"]
        if path.startswith("../") and not (docs / path).is_file():
            return match["text"].strip("[]")
        return f"{match['text']}({place_of(path)}{match['head'] or ''})"

    return _LINK.sub(turn, text)


def _show(path: Path) -> str:
    """Return a script as a page; the fence is longer than any in the script."""
    return f"# {path.name}\n\n`````python\n{path.read_text(encoding='utf-8')}`````\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what the pages link to."""
    # Here, because only a build has it; a test of the links has not.
    from mkdocs.structure.files import File, InclusionLevel  # noqa: PLC0415

    docs = Path(config.docs_dir)
    wanted: dict[str, Path] = {}
    for page in docs.glob("*.md"):
        wanted |= linked(page.read_text(encoding="utf-8"), docs)
    for place, path in wanted.items():
        content = _show(path) if path.suffix == ".py" else path.read_bytes()
        level = InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, place, content=content, inclusion=level))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Turn the links of a page of the docs; those of pages that were added become text."""
    if page.file.src_uri.startswith(f"{ADDED}/"):
        return unlink(markdown)
    return markdown if "/" in page.file.src_uri else rewrite(markdown, Path(config.docs_dir))
