"""The files of the page: nothing in them that the page's own policy would refuse."""

from __future__ import annotations

import re

import pytest

from driftquilt.report.svg import DAY, NIGHT
from driftquilt.server.app import load_page
from driftquilt.server.middleware import HEADERS

PAGE = load_page()
SCRIPTS = sorted(path for path in PAGE if path.endswith(".js"))


def text(path: str) -> str:
    return PAGE[path].content.decode()


def test_every_file_that_the_page_names_is_served() -> None:
    named = set(re.findall(r'(?:href|src)="(/[^"]*)"', text("/")))
    for path in SCRIPTS:
        named |= {f"/static/{name}" for name in re.findall(r'from "\./([^"]+)"', text(path))}
    assert named <= set(PAGE)
    assert set(PAGE) - named == {"/"}


def test_the_page_has_no_inline_script_style_or_handler() -> None:
    html = text("/")
    assert not re.search(r"<script(?![^>]*\bsrc=)", html)
    assert not re.search(r"<style|\sstyle=|\son\w+=", html)


@pytest.mark.parametrize("path", SCRIPTS)
def test_no_script_reads_text_as_markup_or_code(path: str) -> None:
    unwanted = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Function\(|\.style\s*="
    )
    assert not re.search(unwanted, text(path))


@pytest.mark.parametrize("path", sorted(PAGE))
def test_no_file_names_another_host(path: str) -> None:
    hosts = set(re.findall(r"https?://([^/\"'\s]+)", text(path)))
    assert hosts <= {"www.w3.org"}  # the name of SVG


def test_the_token_is_kept_for_the_tab_alone() -> None:
    everything = "".join(map(text, SCRIPTS))
    assert "sessionStorage" in everything
    assert not re.search(r"localStorage|document\.cookie|indexedDB", everything)


def test_colours_are_those_of_the_report_by_day_and_by_night() -> None:
    sheet = text("/static/drawings.css")
    for colours in (DAY, NIGHT):
        assert all(f"--{name}:{value};" in sheet for name, value in colours.items())


def test_tags_differ_exactly_where_contents_do() -> None:
    assert len({file.etag for file in PAGE.values()}) == len(
        {file.content for file in PAGE.values()}
    )
    assert {path: file.etag for path, file in load_page().items()} == {
        path: file.etag for path, file in PAGE.items()
    }


def test_the_policy_allows_no_inline_and_no_framing() -> None:
    policy = HEADERS["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy


def test_what_a_script_exports_is_used_by_another() -> None:
    exported = {
        (path, name)
        for path in SCRIPTS
        for name in re.findall(r"^export (?:const|class) (\w+)", text(path), re.MULTILINE)
    }
    imported = {
        (f"/static/{source}", name.strip())
        for path in SCRIPTS
        for names, source in re.findall(r'import \{([^}]*)\} from "\./([^"]+)"', text(path))
        for name in names.split(",")
    }
    assert exported - imported == {("/static/live.js", "messageReader")}  # a test reads with it
    assert imported <= exported
