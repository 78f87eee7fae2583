"""Plain words in the sources, the docs and the README: a list of turns that are not used."""

from __future__ import annotations

import re

import pytest

from tests.test_readme import ROOT

#: What is not written, and what is instead.
AVOIDED = {
    r"\banew\b": "again",
    r"\bis no (?!longer|better|worse|more|less)(?<!there is no )(?<!There is no )": "is not a",
    r"\b(?:that|which) is none\b": "that is not one",
    r"\bof yours\b": "your own",
    r"\b(?:told|said)(?: =|\[|\.append)|\bin (?:told|said)\b": "a noun, such as `lines`",
}
SUFFIXES = {".py", ".md", ".html", ".js", ".json", ".css"}


def written() -> dict[str, str]:
    """The text of every file of the package and the docs, by its path."""
    folders = [ROOT / "src" / "driftquilt", ROOT / "docs"]
    paths = [path for folder in folders for path in folder.rglob("*") if path.suffix in SUFFIXES]
    texts = {path: path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *paths]}
    return {str(path.relative_to(ROOT)): " ".join(text.split()) for path, text in texts.items()}


@pytest.mark.parametrize("pattern", AVOIDED)
def test_a_turn_that_is_avoided_is_nowhere(pattern: str) -> None:
    files = written()
    assert len(files) > 200
    turn = re.compile(pattern)
    found = [
        f"{path}: {text[max(match.start() - 30, 0) : match.end() + 20]!r}"
        for path, text in files.items()
        for match in turn.finditer(text)
    ]
    assert found == [], f"write {AVOIDED[pattern]!r}"


@pytest.mark.parametrize(
    "text",
    [
        "It begins anew.",
        "The body is no JSON.",
        "It has a zone that is none.",
        "Take a model of yours.",
        "told = []",
        "[line for line in said]",
    ],
)
def test_an_avoided_turn_is_noticed(text: str) -> None:
    assert any(re.search(pattern, text) for pattern in AVOIDED)


@pytest.mark.parametrize(
    "text",
    ["There is no past.", "if there is no store", "It is no longer used.", "Nobody told it."],
)
def test_other_turns_are_free(text: str) -> None:
    assert not any(re.search(pattern, text) for pattern in AVOIDED)
