"""Whatever the README and the docs show is run, and whatever they link to is there."""

from __future__ import annotations

import doctest
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from driftquilt.cli import app

ROOT = Path(__file__).parents[1]
FILES = [path for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))] if path.exists()]

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,})(?P<info>.*)$")
_FIGURE = re.compile(r"(?<![\w.-])[-+]?\d+\.\d+(?:e[-+]\d+)?|\d+(?=%)")
_LINK = re.compile(r"\]\(<?(?P<target>[^)<>\s]+)>?(?:\s+[^)]*)?\)|(?:src|href)=\"(?P<tag>[^\"]+)\"")

each_file = pytest.mark.parametrize(
    "path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES]
)


class Block(NamedTuple):
    """A fenced block: what stands behind its fence, its first line's number, its lines."""

    info: list[str]
    line: int
    text: str


def blocks(markdown: str) -> Iterator[Block]:
    """The fenced blocks of a page; one that is never closed reaches to the end."""
    opened: tuple[str, str, list[str], int] | None = None
    lines: list[str] = []
    for number, line in enumerate([*markdown.splitlines(), ""], start=1):
        fence = _FENCE.match(line)
        if opened is None:
            if fence:
                info = fence["info"].replace("{", " ").replace("}", " ").replace(",", " ").split()
                opened, lines = (fence["indent"], fence["ticks"], info, number + 1), []
            continue
        indent, ticks, info, first = opened
        closes = fence and not fence["info"].strip() and fence["ticks"].startswith(ticks)
        if closes or number > len(markdown.splitlines()):
            yield Block(info, first, "\n".join(lines) + "\n")
            opened = None
        else:
            lines.append(line.removeprefix(indent))


def python_blocks(markdown: str) -> list[Block]:
    return [
        block
        for block in blocks(markdown)
        if block.info and block.info[0] in ("python", "py", "pycon")
    ]


def run(block: Block, path: Path, names: dict[str, Any]) -> None:
    """Run one block in `names`: its examples if it has prompts, else as it stands.

    In what an example prints, ... stands for anything, such as how long it took.
    """
    if not re.search(r"^\s*>>> ", block.text, re.MULTILINE):
        code = compile("\n" * (block.line - 1) + block.text, str(path), "exec")
        exec(code, names)  # noqa: S102
        return
    test = doctest.DocTestParser().get_doctest(
        block.text, names, path.name, str(path), block.line - 1
    )
    test.globs = names  # the parser copies; what a block defines is for the next one too
    told: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    runner.run(test, out=told.append, clear_globs=False)
    if told:
        pytest.fail("".join(told), pytrace=False)


def targets(markdown: str) -> Iterator[str]:
    """Relative links outside of code."""
    text = markdown
    for block in blocks(markdown):
        text = text.replace(block.text, "")
    text = re.sub(r"`[^`\n]*`", "", text)
    for match in _LINK.finditer(text):
        target = match["target"] or match["tag"]
        if not re.match(r"[a-z][a-z0-9+.-]*:|#|//", target, re.IGNORECASE):
            yield target.partition("#")[0]


@each_file
def test_python_in_the_docs_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = path.read_text(encoding="utf-8")
    if "```console" in text:  # such pages are run whole, commands and all, in test_docs
        return
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in python_blocks(text):
        assert "no-run" not in block.info, f"{path}:{block.line} shows Python that is not run"
        run(block, path, names)


@each_file
def test_links_in_the_docs_lead_somewhere(path: Path) -> None:
    found = targets(path.read_text(encoding="utf-8"))
    lost = [target for target in found if not (path.parent / target).exists()]
    assert lost == []


def test_the_readme_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Word for word; figures may differ a little between machines, ... stands for lines."""
    monkeypatch.chdir(tmp_path)
    found = list(blocks((ROOT / "README.md").read_text(encoding="utf-8")))
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = [(one, two) for one, two in pairwise(found) if two.info == ["text"]]
    assert shown
    for block, output in shown:
        capsys.readouterr()
        run(block, ROOT / "README.md", names)
        printed = capsys.readouterr().out
        assert prints(output.text, printed), f"README.md:{output.line} shows not:\n{printed}"


def prints(shown: str, printed: str) -> bool:
    """Whether the lines shown are the first ones printed, and ... at the end is for more of them.

    Words are the same, and figures near: percentages by 10, others by a quarter or 0.05.
    """
    lines, there = shown.splitlines(), printed.splitlines()
    if lines[-1] == "...":
        lines, there = lines[:-1], there[: len(lines) - 1]
    return len(lines) == len(there) and all(map(_is_line, lines, there))


def _is_line(shown: str, printed: str) -> bool:
    figures = [_FIGURE.findall(line) for line in (shown, printed)]
    if _FIGURE.sub("#", shown) != _FIGURE.sub("#", printed):
        return False
    return all(
        abs(float(a) - float(b)) <= (10 if "." not in a else max(0.05, 0.25 * abs(float(a))))
        for a, b in zip(*figures, strict=True)
    )


@pytest.mark.parametrize(
    "printed",
    [
        "used (weight 23%): it helps (gain 0.5)\n",  # another weight
        "used (weight 53%): it helped (gain 0.5)\n",  # another word
        "used (weight 53%): it helps (gain 0.9)\n",  # another figure
        "used (weight 53%): it helps (gain 0.5)\nand more\n",
    ],
)
def test_a_readme_that_shows_something_else_is_noticed(printed: str) -> None:
    shown = "used (weight 53%): it helps (gain 0.5)\n"
    assert prints(shown, "used (weight 55%): it helps (gain 0.53)\n")
    assert prints(f"{shown}...\n", f"{shown}\n\nand more\n")
    assert not prints(shown, printed)


def test_commands_in_the_readme_can_be_parsed(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shells = [block.text for block in blocks(text) if not block.info]
    lines = [line for shell in shells for line in shell.splitlines()]
    typed = [shlex.split(line, comments=True) for line in lines if line.startswith("driftquilt ")]
    (tmp_path / "history.csv").touch()
    assert len(typed) >= 4
    for _, name, *arguments in typed:
        app.load_command(name).make_context(name, arguments)


def test_the_stream_of_the_readme_runs_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    found = python_blocks((ROOT / "README.md").read_text(encoding="utf-8"))
    [stream] = [block for block in found if "QuiltStream" in block.text]
    [number] = re.findall(r"(\d+) lines here", stream.text)
    names: dict[str, Any] = {"__name__": "__main__"}
    run(found[0], ROOT / "README.md", names)
    for _ in range(2):
        capsys.readouterr()
        run(stream, ROOT / "README.md", names)
        assert abs(len(capsys.readouterr().out.splitlines()) - int(number)) <= 10


def test_the_readme_can_be_read_to_the_end() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 1_000
    assert python_blocks(text)[0].line <= 40
    for block in blocks(text):
        text = text.replace(block.text, "")
    prose = [line for line in text.splitlines() if line and not line.startswith(("|", "[", "!"))]
    sentences = [s for line in prose for s in re.split(r"(?<=[.:;?])\s+", line)]
    assert [s for s in sentences if len(s.split()) > 30] == []


# The runner itself

PAGE = """
```python
>>> a = 1
>>> a + 1
2
```
Text, a [link](there.md#part), `[no link](x)` and [another](https://example.org).

```python
assert a == 1
b = a + 2
```
  ```python
  >>> b
  3
  ```
```sh
[not](a-link)
```
"""


def test_blocks_of_a_page_share_their_names() -> None:
    names: dict[str, Any] = {}
    found = python_blocks(PAGE)
    assert [block.line for block in found] == [3, 10, 14]
    for block in found:
        run(block, Path("page.md"), names)
    assert names["b"] == 3


def test_a_wrong_example_fails() -> None:
    [block] = python_blocks("```python\n>>> 1 + 1\n3\n```\n")
    with pytest.raises(pytest.fail.Exception, match=r"Expected:\n\s+3\nGot:\n\s+2"):
        run(block, Path("page.md"), {})


def test_an_example_may_leave_out_what_differs_each_time() -> None:
    [block] = python_blocks("```python\n>>> print('trained in 0.3 s')\ntrained in ... s\n```\n")
    run(block, Path("page.md"), {})


def test_an_example_that_raises_fails_at_its_line() -> None:
    [block] = python_blocks("Text\n\n```python\n1 / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as caught:
        run(block, Path("page.md"), {})
    assert caught.traceback[-1].lineno == 3


@pytest.mark.parametrize("info", ["python no-run", "python {no-run}", "python,no-run"])
def test_python_that_is_not_to_be_run_is_noticed(info: str) -> None:
    [block] = python_blocks(f"```{info}\nx\n```\n")
    assert "no-run" in block.info


def test_relative_links_are_found_and_code_is_not_searched() -> None:
    assert list(targets(PAGE)) == ["there.md"]
