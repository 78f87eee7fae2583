"""The live page in a browser, on a real service that is fed real rows over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from driftquilt.client import Client
from tests.server.running import HOSTILE, Running, feed, feed_until_chosen

SETTINGS = {"settings": {"n_wait": 50}, "detector": "adwin", "random_state": 0}
_WAIT = 60_000  # milliseconds, for a drift and its training
_PATIENCE = 20_000  # for anything else, on a machine that is busy
expect.set_options(timeout=_PATIENCE)


@dataclass
class Fed:
    """A service with one stream that has drifted, and the tokens of those who watch."""

    running: Running
    admin: str
    reader: str
    client: Client


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fed]:
    with Running(tmp_path_factory.mktemp("service")) as running:
        admin = running.tokens.create("ops", ["admin"])
        reader = running.tokens.create("looker", ["read"])
        with running.client(admin) as client:
            client.create_stream("clicks", **SETTINGS)
            feed(client, "clicks", 300, flipped=False)
            feed_until_chosen(client, "clicks", n_past=0, flipped=False)
            feed_until_chosen(client, "clicks", n_past=1, flipped=True)
            yield Fed(running, admin, reader, client)


@dataclass
class Visit:
    """A tab, and what the browser had to complain about, but for answers that were asked for."""

    tab: Page
    refusals: tuple[int, ...] = ()
    complaints: list[str] = field(default_factory=list)

    def heard(self, words: str) -> None:
        if not any(f"a status of {status} " in words for status in self.refusals):
            self.complaints.append(words)

    def state(self) -> Locator:
        return self.tab.locator(".live-state")

    def close(self) -> None:
        self.tab.context.close()
        assert self.complaints == []


def visit(browser: Browser, url: str, *refusals: int, **options: Any) -> Visit:
    tab = browser.new_context(**options).new_page()
    tab.set_default_timeout(_PATIENCE)
    seen = Visit(tab, refusals)
    tab.on("console", lambda message: seen.heard(message.text))
    tab.on("pageerror", lambda error: seen.heard(str(error)))
    tab.on("dialog", lambda dialog: seen.heard(dialog.message))
    tab.goto(url)
    return seen


def enter(seen: Visit, token: str) -> None:
    seen.tab.get_by_label("Token").fill(token)
    seen.tab.keyboard.press("Enter")


def watch(browser: Browser, fed: Fed, name: str, token: str, **options: Any) -> Visit:
    """The view of a stream, logged in and live."""
    seen = visit(browser, f"{fed.running.url}/#/streams/{name}", 401, **options)
    enter(seen, token)
    expect(seen.state()).to_have_text("live")
    return seen


def test_who_has_no_token_is_asked_for_one_and_told_why_another_is_refused(
    browser: Browser, fed: Fed
) -> None:
    seen = visit(browser, fed.running.url, 401)
    enter(seen, "dq_" + "x" * 43)
    expect(seen.tab.locator("#log-in-problem")).to_contain_text("oken")
    enter(seen, "señal")
    expect(seen.tab.locator("#log-in-problem")).to_contain_text("not a token")
    enter(seen, fed.reader)
    expect(seen.tab.get_by_role("heading", name="Streams")).to_be_visible()
    seen.tab.reload()
    expect(seen.tab.get_by_role("heading", name="Streams")).to_be_visible()
    seen.tab.get_by_role("button", name="Log out").click()
    expect(seen.tab.get_by_label("Token")).to_be_focused()
    assert seen.tab.evaluate("sessionStorage.length + localStorage.length") == 0
    seen.close()


def test_streams_are_seen_at_a_glance(browser: Browser, fed: Fed) -> None:
    seen = visit(browser, fed.running.url, 401)
    enter(seen, fed.reader)
    card = seen.tab.locator(".card", has_text="clicks")
    status = fed.client.stream("clicks").status()
    expect(card).to_contain_text(f"{status['recent_accuracy']:.3f}")
    expect(card.locator("dd").first).to_have_text(f"{status['n_rows']:,}")
    expect(card.locator(".spark .line")).to_have_count(1)
    card.get_by_role("link").click()
    expect(seen.tab.get_by_role("heading", name="clicks", exact=True)).to_be_focused()
    expect(seen.state()).to_have_text("live")
    seen.close()


def test_a_drift_arrives_while_one_watches_and_explains_itself(browser: Browser, fed: Fed) -> None:
    fed.client.create_stream("watched", **SETTINGS)
    feed(fed.client, "watched", 300, flipped=False, seed=1)
    feed_until_chosen(fed.client, "watched", n_past=0, flipped=False)
    seen = watch(browser, fed, "watched", fed.reader)
    rows = seen.tab.locator("svg.live .row")
    expect(rows).not_to_have_count(0)
    before = rows.count()
    feed_until_chosen(fed.client, "watched", n_past=1, flipped=True)
    events = seen.tab.locator(".events-list")
    expect(events).to_contain_text("drift found", timeout=_WAIT)
    expect(rows).not_to_have_count(before, timeout=_WAIT)
    expect(seen.tab.locator("#announcement")).to_contain_text("row")
    expect(seen.tab.locator(".accuracy .chart .drift")).not_to_have_count(0, timeout=_WAIT)
    events.get_by_role("button").first.click()
    said = seen.tab.get_by_role("dialog").get_by_role("listitem").first
    expect(said).to_contain_text("epochs")
    seen.tab.keyboard.press("Escape")
    expect(seen.tab.get_by_role("dialog")).to_have_count(0)
    seen.close()


def test_numbers_on_the_page_are_those_of_the_service(browser: Browser, fed: Fed) -> None:
    seen = watch(browser, fed, "clicks", fed.reader)
    stream = fed.client.stream("clicks")
    status, chosen = stream.status(), stream.selections()["selections"]
    tiles = seen.tab.locator(".tiles div")
    expect(tiles.filter(has_text="rows learned")).to_contain_text(f"{status['n_rows']:,}")
    expect(tiles.filter(has_text="drifts")).to_contain_text(str(status["n_drifts"]))
    rows = seen.tab.locator("svg.live .row")
    expect(rows).to_have_count(min(len(chosen), 24))
    patches = rows.last.locator(".patch")
    expect(patches).to_have_count(len(chosen[-1]["patches"]))
    for patch, drawn in zip(chosen[-1]["patches"], patches.all(), strict=True):
        cover = float(drawn.locator(".by-weight.cover").get_attribute("fill-opacity") or "nan")
        wanted = 0.15 + 0.85 * patch["weight"] if patch["used"] else 0.0
        assert cover == pytest.approx(wanted, abs=0.006)
    seen.close()


def test_the_switch_colours_patches_by_disparity(browser: Browser, fed: Fed) -> None:
    seen = watch(browser, fed, "clicks", fed.reader, reduced_motion="reduce")
    chosen = fed.client.stream("clicks").selections()["selections"]
    scored = next(one for one in chosen if one["model"] and one["patches"])
    patch, row = scored["patches"][0], f'svg.live [data-row="{scored["number"]}"]'
    seen.tab.get_by_label("disparity", exact=True).check(force=True)
    cover = seen.tab.locator(row).locator(".patch .cover:visible").first
    strength = float(cover.evaluate("part => getComputedStyle(part).fillOpacity"))
    assert strength == pytest.approx(max(1 - patch["disparity"] / 2, 0), abs=0.006)
    seen.close()


def test_the_keyboard_walks_the_quilt_and_opens_an_explanation(browser: Browser, fed: Fed) -> None:
    seen = watch(browser, fed, "clicks", fed.reader)
    stop = seen.tab.locator("svg.live [tabindex='0']")
    expect(stop).to_have_count(1)
    stop.focus()
    seen.tab.keyboard.press("ArrowRight")
    expect(seen.tab.locator("#tip")).to_contain_text("Segment")
    held = "document.activeElement.getAttribute('aria-label')"
    label = seen.tab.evaluate(held)
    assert label.startswith("segment ")
    seen.tab.keyboard.press("Enter")
    expect(seen.tab.get_by_role("dialog")).to_contain_text("Selection at row")
    seen.tab.keyboard.press("Escape")
    expect(seen.tab.get_by_role("dialog")).to_have_count(0)
    assert seen.tab.evaluate(held) == label
    expect(seen.tab.locator("svg.live [tabindex='0']")).to_have_count(1)
    seen.close()


def test_rolling_back_asks_first_and_then_the_page_follows(browser: Browser, fed: Fed) -> None:
    seen = watch(browser, fed, "clicks", fed.admin)
    stream = fed.client.stream("clicks")
    before = stream.status()["model"]
    dialog = seen.tab.get_by_role("dialog")
    button = seen.tab.get_by_role("button", name="Roll back", exact=True)
    button.click()
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    seen.tab.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    assert stream.status()["model"] == before
    button.click()
    dialog.get_by_role("button", name="Roll back").click()
    used = seen.tab.locator(".models tr.used th")
    expect(used).not_to_contain_text(str(before))
    expect(seen.tab.locator(".events-list")).to_contain_text("took over again")
    after = stream.status()["model"]
    assert after < before
    expect(used).to_contain_text(str(after))
    seen.tab.get_by_role("button", name=f"Use model {before}").click()
    dialog.get_by_role("button", name="Use it").click()
    expect(used).to_contain_text(str(before))
    seen.close()


def test_who_may_only_read_sees_no_button_that_changes_anything(browser: Browser, fed: Fed) -> None:
    seen = watch(browser, fed, "clicks", fed.reader)
    expect(seen.tab.locator(".models tbody tr")).not_to_have_count(0)
    assert seen.tab.get_by_role("button", name="Roll back").count() == 0
    assert seen.tab.get_by_role("button", name="Adapt").count() == 0
    assert seen.tab.locator(".models button").count() == 0
    seen.close()


def test_hostile_names_are_shown_as_they_are(browser: Browser, fed: Fed) -> None:
    seen = watch(browser, fed, "clicks", fed.reader)
    expect(seen.tab.locator(".setup")).to_contain_text(HOSTILE)
    assert seen.tab.locator("img, main b").count() == 0
    seen.close()


def test_messages_are_read_whole_however_they_are_cut(browser: Browser, fed: Fed) -> None:
    sent = (
        ': hello\r\n\r\nid: 7\nevent: DriftFound\ndata: {"row":\ndata: 3}\n\ndata: [1]\n\nid: 8\n'
    )
    read = """async ([sent, size]) => {
        const { messageReader } = await import("/static/live.js");
        const seen = [];
        const read = messageReader((message) => seen.push(message));
        for (let k = 0; k < sent.length; k += size) read(sent.slice(k, k + size));
        return seen;
    }"""
    seen = visit(browser, fed.running.url, 401)
    for size in (1, 2, 3, 7, 100):
        assert seen.tab.evaluate(read, [sent, size]) == [
            {"id": "7", "event": "DriftFound", "data": '{"row":\n3}'},
            {"data": "[1]"},
        ]
    seen.close()


def test_a_stream_that_is_not_there_is_said_in_a_sentence(browser: Browser, fed: Fed) -> None:
    seen = visit(browser, f"{fed.running.url}/#/streams/nothing", 401, 404)
    enter(seen, fed.reader)
    expect(seen.tab.get_by_role("alert").filter(has_text="no stream")).to_be_visible()
    seen.tab.get_by_role("link", name="All streams").click()
    expect(seen.tab.locator("#notice")).to_be_hidden()
    seen.close()


def test_what_the_service_refuses_to_do_is_said_and_stays(browser: Browser, fed: Fed) -> None:
    fed.client.create_stream("empty", **SETTINGS)
    seen = watch(browser, fed, "empty", fed.admin)
    seen.refusals += (409,)
    seen.tab.get_by_role("button", name="Adapt now").click()
    seen.tab.get_by_role("dialog").get_by_role("button", name="Adapt").click()
    expect(seen.tab.locator("#notice")).to_be_visible()
    expect(seen.tab.locator(".quilt .note")).to_contain_text("no selection yet")
    feed(fed.client, "empty", 25, flipped=False)
    expect(seen.tab.locator(".tiles div").filter(has_text="rows learned")).to_contain_text("25")
    expect(seen.tab.locator("#notice")).to_be_visible()
    seen.close()


def test_a_token_that_is_revoked_brings_back_the_log_in(browser: Browser, fed: Fed) -> None:
    token = fed.running.tokens.create("guest", ["read"])
    seen = visit(browser, fed.running.url, 401)
    enter(seen, token)
    expect(seen.tab.locator(".card")).not_to_have_count(0)
    fed.running.tokens.revoke("guest")
    expect(seen.tab.get_by_label("Token")).to_be_visible()
    seen.close()


@pytest.fixture
def unlocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("unlocked")) as running:
        yield running


def test_without_tokens_nobody_logs_in_and_a_restart_is_survived(
    browser: Browser, unlocked: Running
) -> None:
    with unlocked.client() as client:
        client.create_stream("clicks", **SETTINGS)
        seen = visit(browser, f"{unlocked.url}/#/streams/clicks")
        expect(seen.state()).to_have_text("live")
        seen.complaints.clear()
        unlocked.end()
        expect(seen.state()).to_have_text("reconnecting")
        unlocked.begin()
        expect(seen.state()).to_have_text("live", timeout=_WAIT)
        feed(client, "clicks", 100, flipped=False)
        expect(seen.tab.locator(".events-list")).to_contain_text("promoted", timeout=_WAIT)
    expect(seen.tab.locator("#notice")).to_be_hidden()
    # The browser itself notes each connection that was refused meanwhile.
    assert all("ERR_" in words for words in seen.complaints)
    seen.tab.context.close()
