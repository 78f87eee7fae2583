"""The page before a service that says what a test wants: rare answers, outages, long lists."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from driftquilt.report.lines import sparkline, stream_accuracy
from driftquilt.report.quilt import stream_quilt
from driftquilt.report.quilt_layout import Room
from driftquilt.server import schemas
from driftquilt.server.app import load_page
from driftquilt.server.middleware import HEADERS
from driftquilt.server.problems import MEDIA_TYPE, Problem
from tests.processes import wait_for
from tests.server.test_page import Visit, visit

_PAGE = load_page()


def status(name: str = "clicks", **changes: Any) -> dict[str, Any]:
    """What the service tells of a stream that has learned some rows."""
    return {
        "name": name, "created": "2025-01-01T00:00:00+00:00", "schema": None, "n_rows": 1_000,
        "n_waiting": 0, "n_current": 200, "accuracy": 0.9, "recent_accuracy": 0.95,
        "metric": None, "score": None,
        "classes": ["no", "yes"], "columns": {"age": "number", "city": "text"}, "model": 2,
        "models": [1, 2], "training": False, "rows_until_training": None, "n_segments": 1,
        "n_damaged": 0, "n_drifts": 1, "last_drift": 800, "last_event": 0,
        "detector": {"name": "adwin"}, "guard": {"margin": 0.1}, "settings": {"n_wait": 50},
        "label_delay": None, "failure": None, "feed": None,
        "experts": {"newest": 0.7, "online": 0.3}, **changes,
    }  # fmt: skip


def event(number: int, kind: str = "DriftFound", text: str = "drift found") -> dict[str, Any]:
    return {"number": number, "event": kind, "row": 10 * number, "text": text}


def model(version: int, *, in_use: bool = False) -> dict[str, Any]:
    return {
        "version": version, "row": 100 * version, "loss": 0.1, "n_bytes": 2_048, "in_use": in_use
    }  # fmt: skip


def models(*versions: int, in_use: int | None) -> dict[str, Any]:
    kept = [model(version, in_use=version == in_use) for version in versions]
    return {"in_use": in_use, "models": kept}


class _Server(ThreadingHTTPServer):
    request_queue_size = 100  # a view asks for many things at once


class FakeService:
    """A service on a free port; `away`, it hangs up on whoever asks."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.streams: dict[str, dict[str, Any]] = {}
        self.damaged: list[str] = []
        self.events: list[dict[str, Any]] = []
        self.away = False
        self.asked: list[str] = []
        self._live: list[queue.Queue[bytes | None]] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                with suppress(OSError):  # whoever asked has left
                    fake.answer(self)

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, format: str, *given: Any) -> None:  # noqa: A002
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.hang_up()
        self._server.shutdown()
        self._server.server_close()

    def tell(self, kind: str, data: dict[str, Any]) -> None:
        """Say something to everyone who listens."""
        number = f"id: {data['number']}\n" if "number" in data else ""
        message = f"{number}event: {kind}\ndata: {json.dumps(data)}\n\n".encode()
        for listener in self._live:
            listener.put(message)

    def hang_up(self) -> None:
        """End every connection that is live."""
        for listener in self._live:
            listener.put(None)

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path, _, question = request.path.partition("?")
        if path in _PAGE:
            _send(request, 200, _PAGE[path].content, _PAGE[path].media_type)
            return
        self.asked.append(f"{request.command} {request.path}")
        if self.away:
            request.close_connection = True
            return
        if path.endswith("/events/live"):
            self._listen(request)
            return
        asked = dict(part.split("=") for part in question.split("&") if part)
        stream, _, drawing = path.partition("/drawings/")
        if drawing:
            _send(request, 200, self._draw(stream, drawing, asked).encode(), "image/svg+xml")
            return
        found = self._find(path, asked)
        if isinstance(found, Problem):
            _send(request, found.status, json.dumps(found.to_json("0")).encode(), MEDIA_TYPE)
        else:
            _send(request, 200, json.dumps(found).encode(), "application/json")

    def _find(self, path: str, question: dict[str, str]) -> Any:
        if path in self.answers:
            return self.answers[path]
        if path == "/v1/me":
            return {"name": None, "scopes": ["read", "write", "admin"]}
        if path == "/v1/streams":
            return {"streams": [*self.streams.values()], "damaged": self.damaged}
        name, _, what = path.removeprefix("/v1/streams/").partition("/")
        if name not in self.streams:
            return Problem("stream-unknown", "there is no stream of this name")
        if what == "events":
            after, limit = int(question.get("after", 0)), int(question.get("limit", 100))
            later = [one for one in self.events if one["number"] > after]
            return {"events": later[:limit], "next": None}
        return {"": self.streams[name], **_NOTHING}[what]

    def _draw(self, stream: str, kind: str, question: dict[str, str]) -> str:
        """Draw as the service does, from the answers set here."""

        def payload(what: str) -> Any:
            return self._find(f"{stream}/{what}", {})

        if kind == "sparkline":
            return sparkline(payload("accuracy"))
        if kind == "accuracy":
            return stream_accuracy(payload("accuracy"), self._find(stream, {})["n_rows"])
        room = Room(int(question["width"]), int(question["smallest"]))
        chosen = payload("selections")["selections"][-int(question["rows"]) :]
        return stream_quilt(
            chosen, payload("segments")["segments"], payload("models")["in_use"], room
        )

    def _listen(self, request: BaseHTTPRequestHandler) -> None:
        mine: queue.Queue[bytes | None] = queue.Queue()
        mine.put(b": driftquilt\n\n")
        self._live.append(mine)
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.end_headers()
        while (message := mine.get()) is not None:
            request.wfile.write(message)


_NOTHING: dict[str, dict[str, Any]] = {
    "accuracy": {"size": 100, "first_row": 0, "accuracy": [], "drifts": []},
    "selections": {"selections": []},
    "segments": {"segments": [], "current": {"first_row": 800, "n_rows": 200}},
    "models": models(1, 2, in_use=2),
}


def _send(request: BaseHTTPRequestHandler, code: int, body: bytes, kind: str) -> None:
    request.send_response(code)
    for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": len(body)}.items():
        request.send_header(name, str(value))
    request.end_headers()
    request.wfile.write(body)


@pytest.fixture
def fake() -> Iterator[FakeService]:
    service = FakeService()
    service.streams["clicks"] = status()
    yield service
    service.close()


def watch(browser: Browser, fake: FakeService, name: str = "clicks", **options: Any) -> Visit:
    """The view of a stream, live."""
    seen = visit(browser, f"{fake.url}/#/streams/{name}", **options)
    expect(seen.state()).to_have_text("live")
    return seen


def close_after_outage(seen: Visit) -> None:
    """The browser itself notes each request that had no answer."""
    seen.complaints = [words for words in seen.complaints if "ERR_" not in words]
    seen.close()


_COUNT_CHANGES = """() => {
    window.nSaid = 0;
    const notice = document.getElementById("notice");
    new MutationObserver(() => { window.nSaid += notice.textContent !== ""; })
        .observe(notice, { childList: true, characterData: true, subtree: true });
}"""


def test_what_is_told_here_has_the_shape_of_what_the_service_tells() -> None:
    for payload, schema in (
        (status(), schemas.Stream),
        (event(1), schemas.Event),
        (models(1, in_use=1), schemas.Models),
        (model(1), schemas.Model),
        (_NOTHING["accuracy"], schemas.Accuracy),
        (_NOTHING["segments"], schemas.Segments),
        (_NOTHING["selections"], schemas.Selections),
    ):
        assert payload.keys() <= schema.__annotations__.keys()


def test_a_stream_that_cannot_be_asked_for_is_asked_for_again(
    browser: Browser, fake: FakeService
) -> None:
    seen = visit(browser, fake.url)
    expect(seen.tab.locator(".card")).to_have_count(1)
    seen.tab.evaluate(_COUNT_CHANGES)
    fake.away = True
    seen.tab.get_by_role("link", name="clicks").click()
    notice = seen.tab.get_by_role("alert").filter(has_text="tries again by itself")
    expect(notice).to_be_visible()
    wait_for(lambda: fake.asked.count("GET /v1/streams/clicks") == 3)
    expect(notice).to_be_visible()
    assert seen.tab.evaluate("window.nSaid") == 1
    fake.away = False
    expect(seen.state()).to_have_text("live")
    expect(seen.tab.locator("#notice")).to_be_hidden()
    close_after_outage(seen)


def test_a_page_that_is_opened_before_the_service_answers_waits_for_it(
    browser: Browser, fake: FakeService
) -> None:
    fake.away = True
    seen = visit(browser, f"{fake.url}/#/streams/clicks")
    expect(seen.tab.locator("#notice")).to_contain_text("does not answer")
    fake.away = False
    expect(seen.state()).to_have_text("live")
    expect(seen.tab.locator("#notice")).to_be_hidden()
    close_after_outage(seen)


def test_each_part_is_asked_for_until_it_is_there_and_no_other_hides_its_problem(
    browser: Browser, fake: FakeService
) -> None:
    fake.events = [event(1)]
    fake.streams["clicks"]["last_event"] = 1
    fake.answers["/v1/streams/clicks/events"] = Problem("internal", "the log has the reason")
    seen = visit(browser, f"{fake.url}/#/streams/clicks", 500)
    expect(seen.state()).to_have_text("live")
    expect(seen.tab.locator(".models tbody tr")).to_have_count(2)
    notice = seen.tab.locator("#notice")
    expect(notice).to_contain_text("Something went wrong here: the log has the reason. The page")
    del fake.answers["/v1/streams/clicks/events"]
    expect(seen.tab.locator(".events-list li")).to_have_count(1)
    expect(notice).to_be_hidden()
    seen.close()


def test_what_the_reader_wanted_is_not_said_to_be_tried_again(
    browser: Browser, fake: FakeService
) -> None:
    seen = watch(browser, fake)
    fake.away = True
    seen.tab.get_by_role("button", name="Adapt now").click()
    seen.tab.get_by_role("dialog").get_by_role("button", name="Adapt").click()
    expect(seen.tab.locator("#notice")).to_have_text("The service does not answer.")
    close_after_outage(seen)


def test_damaged_streams_are_named_and_are_not_nothing(browser: Browser, fake: FakeService) -> None:
    fake.damaged = ["broken", "torn"]
    seen = visit(browser, fake.url)
    part = seen.tab.locator(".damaged")
    expect(part).to_contain_text("2 streams are damaged")
    expect(part).to_contain_text("The log of the service says why")
    expect(part.get_by_role("listitem")).to_have_text(["broken", "torn"])
    expect(seen.tab.locator(".card")).to_have_count(1)
    fake.streams, fake.damaged = {}, ["broken"]
    seen.tab.reload()
    expect(part).to_contain_text("1 stream is damaged")
    expect(seen.tab.get_by_text("There is no stream yet")).to_be_hidden()
    fake.damaged = []
    seen.tab.reload()
    expect(seen.tab.get_by_text("There is no stream yet")).to_be_visible()
    expect(part).to_be_hidden()
    seen.close()


def test_the_page_of_a_damaged_stream_says_that_it_cannot_be_opened(
    browser: Browser, fake: FakeService
) -> None:
    fake.answers["/v1/streams/broken"] = Problem("stream-damaged", "the log says why; restore it")
    seen = visit(browser, f"{fake.url}/#/streams/broken", 503)
    said = "The stream cannot be opened: the log says why; restore it."
    expect(seen.tab.locator("#notice")).to_contain_text(said)
    fake.answers["/v1/streams/broken"] = status("broken")
    fake.streams["broken"] = status("broken")
    expect(seen.state()).to_have_text("live")
    seen.close()


def test_what_is_announced_twice_is_read_twice(browser: Browser, fake: FakeService) -> None:
    seen = watch(browser, fake)
    places = seen.tab.locator("#announcement [role=status]")
    expect(places).to_have_text(["", ""])
    heard = """() => {
        window.heard = [];
        new MutationObserver((changes) => changes.forEach(({ target, addedNodes }) => {
            if (target.matches("[role=status]")) {
                window.heard.push(...[...addedNodes].map((node) => node.textContent));
            }
        })).observe(document.getElementById("announcement"), { childList: true, subtree: true });
    }"""
    seen.tab.evaluate(heard)
    for number in (1, 2):
        fake.tell("DriftFound", {**event(number), "row": 7})
    expect(seen.tab.locator(".events-list li")).to_have_count(2)
    assert seen.tab.evaluate("window.heard") == ["clicks, row 7: drift found"] * 2
    assert sorted(places.all_text_contents()) == ["", "clicks, row 7: drift found"]
    seen.close()


_KEPT = "/v1/streams/clicks/models"


def test_the_focus_stays_on_a_button_of_the_models_while_they_change(
    browser: Browser, fake: FakeService
) -> None:
    seen = watch(browser, fake)
    use = seen.tab.get_by_role("button", name="Use model 1")
    use.focus()
    fake.answers[_KEPT] = models(1, 2, 3, in_use=2)
    fake.tell("ModelTrained", event(1, "ModelTrained", "trained"))
    expect(seen.tab.locator(".models tbody tr")).to_have_count(3)
    expect(use).to_be_focused()
    use.press("Enter")
    dialog = seen.tab.get_by_role("dialog")
    expect(dialog).to_be_visible()
    fake.answers[_KEPT] = models(1, 2, 3, 4, in_use=2)
    fake.tell("ModelTrained", event(2, "ModelTrained", "trained"))
    expect(seen.tab.locator(".models tbody tr")).to_have_count(4)
    seen.tab.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(use).to_be_focused()
    seen.close()


def test_models_that_stay_as_they_are_are_not_drawn_again(
    browser: Browser, fake: FakeService
) -> None:
    seen = watch(browser, fake)
    table = seen.tab.locator(".models table")
    table.evaluate("table => { window.before = table; }")
    fake.answers["/v1/streams/clicks/selections"] = Problem("internal", "a mark of the request")
    seen.refusals += (500,)
    fake.tell("SegmentSealed", event(1, "SegmentSealed", "sealed"))
    expect(seen.tab.locator("#notice")).to_be_visible()
    del fake.answers["/v1/streams/clicks/selections"]
    expect(seen.tab.locator("#notice")).to_be_hidden()
    assert table.evaluate("table => table === window.before")
    seen.close()


def test_the_focus_goes_to_the_models_when_the_one_that_had_it_is_in_use(
    browser: Browser, fake: FakeService
) -> None:
    fake.answers[f"{_KEPT}/1/promote"] = {"model": 1}
    seen = watch(browser, fake)
    seen.tab.get_by_role("button", name="Use model 1").press("Enter")
    fake.answers[_KEPT] = models(1, 2, in_use=1)
    seen.tab.get_by_role("dialog").get_by_role("button", name="Use it").press("Enter")
    expect(seen.tab.locator(".models tr.used th")).to_contain_text("1")
    expect(seen.tab.get_by_role("group", name="Models")).to_be_focused()
    seen.close()


def test_rolling_back_is_to_the_next_older_model_and_needs_one(
    browser: Browser, fake: FakeService
) -> None:
    fake.answers[_KEPT] = models(1, 2, 5, in_use=5)
    seen = watch(browser, fake)
    button = seen.tab.get_by_role("button", name="Roll back", exact=True)
    button.click()
    dialog = seen.tab.get_by_role("dialog")
    expect(dialog).to_contain_text("next older model, model 2, answers from now on")
    fake.answers[f"{_KEPT}/rollback"] = {"model": 2}
    fake.answers[_KEPT] = models(2, 5, in_use=2)  # newer ones are none to roll back to
    dialog.get_by_role("button", name="Roll back").click()
    expect(button).to_be_disabled()
    expect(button).to_be_focused()
    seen.tab.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    fake.answers[_KEPT] = models(in_use=None)
    seen.tab.reload()
    expect(seen.tab.get_by_text("There is no model yet.")).to_be_visible()
    expect(button).to_be_disabled()
    seen.close()


def numbers(seen: Visit) -> list[int]:
    """Of the events on the page, from above."""
    found: list[int] = seen.tab.evaluate(
        "[...document.querySelectorAll('.events-list li')].map((e) => Number(e.dataset.number))"
    )
    return found


def test_earlier_events_are_shown_while_the_service_has_some(
    browser: Browser, fake: FakeService
) -> None:
    kept = [3, 7, *range(5_000, 5_100)]  # many of columns are forgotten, so numbers have gaps
    fake.events = [event(number) for number in kept]
    fake.streams["clicks"]["last_event"] = kept[-1]
    seen = watch(browser, fake)
    items, more = seen.tab.locator(".events-list li"), seen.tab.get_by_text("Earlier events")
    expect(items).to_have_count(50)
    more.click()
    expect(items).to_have_count(100)
    more.click()
    expect(items).to_have_count(102)
    assert numbers(seen) == kept[::-1]
    expect(more).to_be_hidden()
    expect(seen.tab.get_by_role("group", name="Events")).to_be_focused()
    seen.close()


def test_no_earlier_events_are_offered_when_the_service_has_forgotten_them(
    browser: Browser, fake: FakeService
) -> None:
    fake.events = [event(number) for number in range(2_000, 2_050)]
    fake.streams["clicks"]["last_event"] = 2_049
    seen = watch(browser, fake)
    expect(seen.tab.locator(".events-list li")).to_have_count(50)
    expect(seen.tab.get_by_text("Earlier events")).to_be_hidden()
    seen.close()


def test_events_that_gave_way_to_new_ones_are_earlier_events(
    browser: Browser, fake: FakeService
) -> None:
    fake.events = [event(number) for number in range(1, 51)]
    fake.streams["clicks"]["last_event"] = 50
    seen = watch(browser, fake)
    items = seen.tab.locator(".events-list li")
    expect(items).to_have_count(50)
    new = [event(number, "SegmentSealed", "sealed") for number in range(51, 1_021)]
    for one in new:
        fake.tell("SegmentSealed", one)
    expect(items.first).to_have_attribute("data-number", "1020")
    assert numbers(seen) == list(range(1_020, 20, -1))
    fake.events += new
    seen.tab.get_by_text("Earlier events").click()
    expect(items).to_have_count(1_020)
    assert numbers(seen) == list(range(1_020, 0, -1))
    expect(seen.tab.get_by_text("Earlier events")).to_be_hidden()
    seen.close()


def test_a_failure_is_told_as_it_comes_and_goes(browser: Browser, fake: FakeService) -> None:
    seen = watch(browser, fake)
    failure = seen.tab.locator("main .failure[role=alert]")  # all streams have others
    expect(failure).to_be_hidden()
    why = "StoreError: the log of the service says more"
    fake.tell("status", status(failure=why))
    expect(failure).to_be_visible()
    expect(failure).to_contain_text("cannot learn at the moment")
    expect(failure).to_contain_text(f"{why}.")
    fake.tell("status", status(failure=None))
    expect(failure).to_be_hidden()
    expect(seen.tab.locator("#announcement")).to_have_text("clicks learns again")
    fake.streams["clicks"] = status(failure=why)
    seen.tab.get_by_role("link", name="All streams").click()
    expect(seen.tab.locator(".card")).to_contain_text("cannot learn")
    seen.tab.get_by_role("link", name="clicks").click()
    expect(failure).to_contain_text(why)
    seen.close()


def test_a_metric_stands_beside_accuracy_if_the_stream_has_one(
    browser: Browser, fake: FakeService
) -> None:
    seen = watch(browser, fake)
    tiles = seen.tab.locator(".tiles")
    expect(tiles).to_contain_text("recent accuracy")
    expect(tiles).not_to_contain_text("AUC")
    fake.tell("status", status(metric="roc_auc", score=0.8765))
    expect(tiles.locator("div").nth(1)).to_have_text("recent AUC0.876")
    fake.tell("status", status(metric="roc_auc", score=None))
    expect(tiles.locator("div").nth(1)).to_have_text("recent AUC\u2013")
    fake.streams["clicks"] = status(metric="average_precision", score=0.5)
    seen.tab.get_by_role("link", name="All streams").click()
    expect(seen.tab.locator(".card")).to_contain_text("recent average precision0.500")
    seen.close()


def test_what_a_broker_feeds_and_what_is_in_its_way_is_told(
    browser: Browser, fake: FakeService
) -> None:
    seen = watch(browser, fake)
    lead = seen.tab.locator(".lead")
    expect(lead).not_to_contain_text("Fed from")
    feed = {"source": "redis:0/<b>rows</b>", "n_messages": 1200, "n_refused": 0, "trouble": None}
    feed |= {"last_refused": None, "n_late": 0, "n_forgotten": 0}
    fake.tell("status", status(feed=feed))
    expect(lead).to_contain_text("Fed from redis:0/<b>rows</b>: 1,200 messages, 0 refused.")
    feed |= {"n_refused": 3, "last_refused": "it is no JSON", "trouble": "the broker is away: no"}
    fake.tell("status", status(feed=feed))
    expect(lead).to_contain_text("3 refused, the last because it is no JSON. The broker is away")
    seen.close()
