"""The page with much on it, for a hand, an eye and a keyboard: narrow, wide, by day, by night."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.server.running import HOSTILE
from tests.server.test_page import visit
from tests.server.test_page_states import FakeService, event, models, status, watch

_LONG = "x" * 63  # as long as a name of a stream may be
_STREAM = f"/v1/streams/{_LONG}"
_VIEWS = {  # with what is drawn last
    "": f".card:has-text('{_LONG}') .spark .line",
    f"#/streams/{_LONG}": ".accuracy .chart",
    "#/streams/empty": ".models p:has-text('There is no model yet.')",
}
_N_SEGMENTS, _N_SELECTIONS = 30, 12


def selection(k: int, n_patches: int) -> dict[str, Any]:
    patches = [
        {"segment": n, "weight": n % 3 / 2, "used": n % 3 > 0, "disparity": n / 10, "gain": 0.1}
        for n in range(1, n_patches + 1)
    ]
    return {
        "number": k, "row": 100_000 * k, "n_current": 300, "model": k, "validation_loss": 0.1,
        "seconds": 2.5, "blend": {}, "patches": patches,
    }  # fmt: skip


def crowd(fake: FakeService, n_selections: int = _N_SELECTIONS) -> None:
    """A stream with many names, segments, selections, models and events, and one with nothing."""
    fake.streams[_LONG] = status(
        _LONG, n_rows=12_345_678, n_segments=_N_SEGMENTS, last_event=200, training=True,
        classes=[HOSTILE, "y" * 1_000, *map(str, range(998))],
        columns=dict.fromkeys([HOSTILE, "z" * 1_000, *map(str, range(98))], "number"),
        failure="StoreError: the log of the service says more",
    )  # fmt: skip
    fake.damaged = ["w" * 63]
    fake.events = [event(k, "ColumnAppeared", f"column {HOSTILE!r}") for k in range(1, 201)]
    chosen = [selection(k, _N_SEGMENTS) for k in range(1, n_selections + 1)]
    reasons = "\n".join(f"segment {n} was used: {HOSTILE}" for n in range(_N_SEGMENTS))
    fake.answers |= {
        f"{_STREAM}/selections": {"selections": chosen},
        f"{_STREAM}/models": models(*range(1, 20), in_use=9),
        f"{_STREAM}/accuracy": {
            "size": 40_000, "first_row": 0, "accuracy": [0.9, 0.5] * 150, "drifts": [1_000_000]
        },
        **{
            f"{_STREAM}/selections/{one['number']}": {**one, "explanation": f"Of many:\n{reasons}"}
            for one in chosen
        },
    }  # fmt: skip
    fake.streams["empty"] = status(
        "empty", n_rows=0, n_current=0, accuracy=None, recent_accuracy=None, classes=[],
        columns={}, model=None, models=[], n_segments=0, n_damaged=0, n_drifts=0, last_drift=None,
    )  # fmt: skip
    fake.answers["/v1/streams/empty/models"] = models(in_use=None)


@pytest.fixture
def fake() -> Iterator[FakeService]:
    service = FakeService()
    crowd(service)
    yield service
    service.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_much_on_the_page_does_not_make_it_scroll_sideways(
    browser: Browser, fake: FakeService, width: int, scheme: str
) -> None:
    size = {"width": width, "height": 844}
    seen = visit(browser, fake.url, viewport=size, color_scheme=scheme)
    for view, last in _VIEWS.items():
        seen.tab.evaluate("view => { location.hash = view; }", view)
        expect(seen.tab.locator(last)).to_be_visible()
        assert seen.tab.evaluate("document.documentElement.scrollWidth") <= width, view
        heights = seen.tab.locator(".tall").evaluate_all("all => all.map((e) => e.clientHeight)")
        assert all(height <= 28 * 16 for height in heights)
    seen.close()


def test_a_name_however_long_leaves_room_for_the_button_to_log_out(
    browser: Browser, fake: FakeService
) -> None:
    fake.answers["/v1/me"] = {"name": "n" * 63, "scopes": ["read"]}
    context = browser.new_context(viewport={"width": 320, "height": 640})
    context.add_init_script("sessionStorage.setItem('driftquilt-token', 'dq_x')")
    tab = context.new_page()
    tab.goto(fake.url)
    button = tab.get_by_role("button", name="Log out")
    expect(button).to_be_visible()
    box = button.bounding_box()
    assert box is not None
    assert box["height"] < box["width"]
    assert tab.evaluate("document.documentElement.scrollWidth") <= 320
    context.close()


def test_a_stream_with_nothing_says_so_everywhere(browser: Browser, fake: FakeService) -> None:
    seen = watch(browser, fake, "empty")
    for words in (
        "There is no selection yet",
        "There are too few rows for a line yet.",
        "Nothing was selected yet",
        "Nothing has happened yet.",
        "There is no model yet.",
    ):
        expect(seen.tab.get_by_text(words)).to_be_visible()
    expect(seen.tab.locator(".setup").get_by_text("None so far.")).to_have_count(2)
    expect(seen.tab.locator(".tiles dd").first).to_have_text("\u2013")  # a dash
    seen.close()


def test_a_long_explanation_is_read_from_its_beginning(browser: Browser, fake: FakeService) -> None:
    size = {"width": 390, "height": 600}
    seen = watch(browser, fake, _LONG, viewport=size)
    seen.tab.locator("svg.live [tabindex='0']").press("Enter")
    dialog = seen.tab.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_be_in_viewport()
    expect(dialog.get_by_text("current rows")).to_be_in_viewport()
    expect(dialog.get_by_role("button", name="Close")).to_be_in_viewport()
    body = dialog.get_by_role("group")
    expect(body).to_be_focused()
    assert body.evaluate("body => body.scrollTop === 0 && body.scrollHeight > body.clientHeight")
    seen.tab.keyboard.press("End")
    expect(dialog.get_by_role("listitem").last).to_be_in_viewport()
    seen.close()


def test_the_tip_goes_along_when_the_focus_scrolls_the_page(
    browser: Browser, fake: FakeService
) -> None:
    seen = watch(browser, fake, _LONG, viewport={"width": 1280, "height": 300})
    expect(seen.tab.locator("svg.live .row")).to_have_count(_N_SELECTIONS)
    cell = seen.tab.locator("svg.live .row").last.locator(".patch").nth(3)
    assert cell.evaluate("cell => cell.getBoundingClientRect().top > innerHeight")
    cell.focus()
    expect(cell).to_be_in_viewport()
    tip = seen.tab.locator("#tip")
    expect(tip).to_contain_text("Segment 4")
    seen.tab.wait_for_function(
        """() => {
            const tip = document.getElementById("tip").getBoundingClientRect();
            const cell = document.activeElement.getBoundingClientRect();
            return [cell.top - tip.bottom, tip.top - cell.bottom].some((gap) => gap > 6 && gap < 9);
        }"""
    )
    seen.close()


def test_who_shows_all_selections_goes_on_in_the_quilt(browser: Browser, fake: FakeService) -> None:
    crowd(fake, n_selections=40)
    seen = watch(browser, fake, _LONG)
    seen.tab.get_by_role("button", name="Show all 40 selections").press("Enter")
    expect(seen.tab.locator("svg.live .row")).to_have_count(40)
    expect(seen.tab.locator("svg.live [tabindex='0']")).to_be_focused()
    seen.close()


def test_the_focus_returns_to_a_quilt_that_was_drawn_behind_an_explanation(
    browser: Browser, fake: FakeService
) -> None:
    seen = watch(browser, fake, _LONG)
    cell = seen.tab.locator("svg.live [data-row='5'] [data-segment='7']")
    cell.focus()
    seen.tab.keyboard.press("Enter")
    dialog = seen.tab.get_by_role("dialog")
    expect(dialog).to_be_visible()
    fake.answers[f"{_STREAM}/models"] = models(*range(1, 20), in_use=5)
    fake.tell("ModelPromoted", event(201, "ModelPromoted", "promoted"))
    expect(seen.tab.locator("svg.live .used")).to_have_attribute("data-row", "5")
    seen.tab.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(cell).to_be_focused()
    seen.close()


def test_the_tab_key_reaches_every_part_and_the_focus_is_seen(
    browser: Browser, fake: FakeService
) -> None:
    fake.streams[_LONG]["failure"] = None
    seen = watch(browser, fake, _LONG)
    expect(seen.tab.locator(".models tbody tr")).to_have_count(19)
    expect(seen.tab.locator(".events-list li")).to_have_count(50)
    look = """() => {
        const at = document.activeElement;
        const marked = at.matches(".live *, .switch *") // in their own way
            || getComputedStyle(at).outlineStyle !== "none";
        return at === document.body ? null : [at.ariaLabel ?? at.textContent.trim(), marked];
    }"""
    seen.tab.keyboard.press("Tab")
    reached = []
    while (here := seen.tab.evaluate(look)) is not None:
        reached.append(here)
        seen.tab.keyboard.press("Tab")
    assert [name for name, is_marked in reached if not is_marked] == []
    assert {
        "Skip to the content", "← All streams", "The last selection", "Events", "Earlier events",
        "Roll back", "Adapt now", "Models", "Use model 19", "How it is set up",
    } <= {name for name, _ in reached}  # fmt: skip
    seen.close()
