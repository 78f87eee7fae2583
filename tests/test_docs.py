"""The pages of the docs: what they show is run, what they promise is there.

A page's Python and commands run block after block in one empty folder. What is shown under a
command is what it prints: `...` stands for anything, white space and line breaks for any, and a
decimal or a percentage for one nearby, because machines round differently.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import driftquilt
from driftquilt.cli import app
from driftquilt.detectors.named import DETECTORS
from driftquilt.stream import events
from driftquilt.stream.settings import StreamSettings
from tests.cli.conftest import Drive, drive  # noqa: F401  # a fixture
from tests.processes import free_port
from tests.test_readme import ROOT, blocks, run

DOCS = ROOT / "docs"
RUN = ["tutorial.md", "streams.md", "how-it-decides.md", "cli.md", "scale.md"]
PAGES = sorted(DOCS.glob("*.md"))
COMMANDS = {name: app.load_command(name) for name in app.COMMANDS}

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+|(?=%))(?![\d.])")


class Command(NamedTuple):
    """A command of a page, the line it stands in, and what is shown under it."""

    arguments: list[str]
    line: int
    shown: str


def commands(text: str, first: int) -> Iterator[Command]:
    """The commands of a console block whose first line has this number."""
    typed, line, shown = "", first, list[str]()
    for number, here in enumerate([*text.splitlines(), "$ "], start=first):
        if not here.startswith("$ "):
            shown.append(here)
            continue
        if typed:
            yield Command(shlex.split(typed), line, "\n".join(shown))
        typed, line, shown = here.removeprefix("$ "), number, []


def agrees(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed."""
    parts, numbers, end = [], [], 0
    for number in _NUMBER.finditer(shown):
        parts += [_pattern(shown[end : number.start()]), r"([-+]?\d[\d,]*(?:\.\d+)?)"]
        numbers.append(number[0])
        end = number.end()
    parts.append(_pattern(shown[end:]))
    found = re.fullmatch(r"\s*" + "".join(parts) + r"\s*", printed, re.DOTALL)
    return found is not None and all(map(_is_near, numbers, found.groups()))


def _pattern(text: str) -> str:
    words = [re.escape(word).replace(r"\.\.\.", ".*?") for word in re.split(r"\s+", text)]
    return r"\s*".join(words)


def _is_near(shown: str, printed: str) -> bool:
    a, b = (float(number.replace(",", "")) for number in (shown, printed))
    return abs(a - b) <= (0.15 + 0.15 * abs(a) if "." in shown else 20)


def type_in(run_command: Drive, typed: list[Command], page: str) -> None:
    """Run the commands of a block; one that fails has to be asked for its code."""
    code = 0
    for number, command in enumerate(typed):
        where = f"{page}:{command.line}"
        if command.arguments == ["echo", "$?"]:
            assert agrees(command.shown, str(code)), f"{where} shows another code than {code}"
            code = 0
            continue
        assert command.arguments[0] == "driftquilt", f"{where} is no command of ours"
        outcome = run_command(*command.arguments[1:])
        code = outcome.code
        is_asked = [after.arguments for after in typed[number + 1 :][:1]] == [["echo", "$?"]]
        assert code == 0 or is_asked, f"{where} ended with {code}: {outcome.stderr}"
        printed = outcome.stdout or outcome.stderr
        assert not command.shown or agrees(command.shown, printed), f"{where} printed\n{printed}"


@pytest.mark.parametrize("name", RUN)
def test_a_page_shows_what_its_code_and_commands_do(
    name: str,
    drive: Drive,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    page, names = DOCS / name, dict[str, Any](__name__="__main__")
    text = page.read_text(encoding="utf-8").replace("8355", str(free_port()))
    try:
        for block in blocks(text):
            kind = block.info[0] if block.info else ""
            if kind == "python":
                run(block, page, names)
            elif kind == "console":
                type_in(drive, list(commands(block.text, block.line)), name)
    finally:
        for started in [value for value in names.values() if isinstance(value, subprocess.Popen)]:
            started.kill()
            started.wait()


# What has to be named somewhere


def section(page: str, heading: str) -> str:
    """What stands under a heading of the second level."""
    _, _, rest = (DOCS / page).read_text(encoding="utf-8").partition(f"\n## {heading}\n")
    return rest.partition("\n## ")[0]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_section_with_an_example_and_all_its_options(name: str) -> None:
    text = section("cli.md", f"driftquilt {name}")
    assert f"\n$ driftquilt {name}" in text
    told = [flag for option in COMMANDS[name].params for flag in option.opts if flag[:2] == "--"]
    assert [flag for flag in told if f"`{flag}`" not in text and flag != "--help"] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_of_a_commands_help_can_be_parsed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "select-out").mkdir()
    examples = re.findall(r"Example: driftquilt (.+)", COMMANDS[name].help)
    assert examples
    for first, *arguments in map(shlex.split, examples):
        assert first == name
        COMMANDS[name].make_context(name, arguments)


def test_every_public_name_is_in_the_reference() -> None:
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    assert [name for name in driftquilt.__all__ if f"`{name}`" not in text] == []


def test_the_reference_speaks_of_things_that_are_there() -> None:
    named = re.findall(r"^::: (\S+)", (DOCS / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(named) > 20
    for name in named:
        module, _, last = name.rpartition(".")
        assert hasattr(importlib.import_module(module), last) or importlib.import_module(name)


def test_every_detector_event_and_setting_is_told_of() -> None:
    text = (DOCS / "streams.md").read_text(encoding="utf-8")
    kinds = [kind.__name__ for kind in events.Event.__subclasses__()]
    wanted = [*DETECTORS, *kinds, *StreamSettings().to_json()]
    assert [name for name in wanted if f"`{name}`" not in text] == []


def test_every_recipe_and_schema_is_linked() -> None:
    told = (DOCS / "recipes.md").read_text() + (DOCS / "cli.md").read_text()
    files = [*DOCS.glob("recipes/*.*"), *DOCS.glob("schemas/*.json")]
    assert [
        path.name for path in files if f"({path.relative_to(DOCS).as_posix()})" not in told
    ] == []


# Links, without building the site; that files are there is tested with the README


def anchors(page: Path) -> set[str]:
    """The headings of a page as addresses, as the site makes them."""
    text = page.read_text(encoding="utf-8")
    for block in blocks(text):
        text = text.replace(block.text, "")
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", head).strip().lower()) for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_to_headings_lead_to_one(page: Path) -> None:
    found = re.findall(r"\]\(([^)\s#:]*)#([^)\s]+)\)", page.read_text(encoding="utf-8"))
    lost = [f"{to}#{head}" for to, head in found if head not in anchors(DOCS / (to or page.name))]
    assert lost == []


def test_every_page_is_in_the_menu_of_the_site() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    menu = re.findall(r"[\w-]+\.md", text.partition("\nnav:\n")[2].partition("\n\n")[0])
    assert sorted(menu) == [page.name for page in PAGES]


def test_links_that_leave_the_docs_lead_to_files_that_the_site_has(tmp_path: Path) -> None:
    sources = _load(DOCS / "hooks" / "sources.py")
    docs = tmp_path / "docs"
    for path in ("docs/way.py", "src/x.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    text = "[x](../src/x.py), [way](way.py#top), [`src/`](../src/), [page](page.md)\n"
    code = "```md\n[x](../src/x.py)\n```\n"
    assert list(sources.linked(text + code, docs)) == ["source/src/x.py.md", "way.py.md"]
    turned = "[x](source/src/x.py.md), [way](way.py.md#top), `src/`, [page](page.md)\n"
    assert sources.rewrite(text + code, docs) == turned + code
    added = "[`x`](results/x.md), [up](../docs/y.md#a), [far](https://example.org)\n"
    assert sources.unlink(added + code) == f"`x`, up, [far](https://example.org)\n{code}"


def _load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# The runner itself


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("accuracy 0.95, kept", "accuracy 0.93,\nkept\n"),
        ("used in 56% of epochs", "used in 61% of epochs"),
        ("a table\n...\nits end", "a table\n1\n2\nits end"),
        ("29... of 300 right", "298 of 300 right"),
    ],
)
def test_what_may_differ_between_machines_does(shown: str, printed: str) -> None:
    assert agrees(shown, printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("accuracy 0.95", "accuracy 0.45"),
        ("2 drifts", "3 drifts"),
        ("disparity 4.94", "disparity 0.12"),
        ("kept", "kept, and more"),
    ],
)
def test_what_is_wrong_is_noticed(shown: str, printed: str) -> None:
    assert not agrees(shown, printed)


def test_commands_of_a_block_are_told_apart() -> None:
    found = list(commands("$ driftquilt demo --seed 1\nDone\n$ echo $?\n0\n", 7))
    assert found == [
        Command(["driftquilt", "demo", "--seed", "1"], 7, "Done"),
        Command(["echo", "$?"], 9, "0"),
    ]
