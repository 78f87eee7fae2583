"""Lines as SVG: every point inside the frame, whatever the range, and nothing that breaks it."""

from __future__ import annotations

import math
import re
from itertools import accumulate
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.paper.outputs import Series, lines_svg

SVG = "{http://www.w3.org/2000/svg}"
WIDTH, HEIGHT = 400, 262  # of the box of the lines

numbers = st.floats(-1e12, 1e12)
points = st.lists(
    st.tuples(st.floats(0, 1e6), numbers), max_size=6, unique_by=lambda point: point[0]
)
offsets = st.builds(
    lambda base, steps: [(float(k), base + step) for k, step in enumerate(steps)],
    numbers,
    st.lists(st.floats(0, 1e-9), min_size=1, max_size=5),
)


def draw(series: Series, *, log_y: bool = False, title: str = "t") -> ET.Element:
    svg = lines_svg(series, title=title, x_label="x", y_label="y", log_y=log_y)
    return ET.fromstring(svg)


def places(picture: ET.Element) -> list[list[tuple[float, float]]]:
    """The points of each line, as drawn; a point alone has a stroke of no length."""
    lines = []
    for path in sorted(picture.iter(f"{SVG}path"), key=lambda path: int(path.get("data-line", ""))):
        line: list[complex] = []
        for stroke in (path.get("d") or "").split("M")[1:]:
            x = list(map(float, re.findall(r"-?[\d.]+(?:e[-+]?\d+)?", stroke)))
            steps = [complex(*pair) for pair in zip(x[::2], x[1::2], strict=True)]
            line += list(accumulate(steps))[: 1 if steps[1:] == [0] else None]
        lines.append([(point.real, point.imag) for point in line])
    return lines


def expect_inside(picture: ET.Element) -> None:
    for line in places(picture):
        for x, y in line:
            assert -0.5 <= x <= WIDTH + 0.5
            assert -0.5 <= y <= HEIGHT + 0.5


@given(st.dictionaries(st.text(max_size=30), points | offsets, max_size=4))
def test_every_point_is_inside_the_frame_whatever_the_range(
    series: dict[str, list[tuple[float, float]]],
) -> None:
    picture = draw(series)
    expect_inside(picture)
    assert list(map(bool, places(picture))) == list(map(bool, series.values()))


@given(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=6))
def test_every_point_of_a_log_axis_is_inside_the_frame(values: list[float]) -> None:
    expect_inside(draw({"a": list(enumerate(values))}, log_y=True))


@pytest.mark.parametrize("value", [0.0, 1.0, -1.0, 0.3, -1e-320, 5e-324, 1e16, -7e11])
def test_a_constant_has_a_frame(value: float) -> None:
    expect_inside(draw({"a": [(0, value), (1, value)]}))


def test_higher_is_higher_and_later_is_further_right() -> None:
    ((first, second),) = places(draw({"a": [(1, 2.0), (2, 3.0)]}))
    assert second[0] > first[0]
    assert second[1] < first[1]


def test_a_log_axis_gives_every_decade_the_same_room() -> None:
    ((a, b, c),) = places(draw({"a": [(0, 0.1), (1, 1.0), (2, 10.0)]}, log_y=True))
    assert a[1] - b[1] == pytest.approx(b[1] - c[1], abs=0.11)
    assert a[1] > c[1]


def test_what_has_no_place_is_left_out() -> None:
    values = [1.0, math.nan, math.inf, 2.0]
    assert [len(line) for line in places(draw({"a": list(enumerate(values))}))] == [2]
    below = [(0, 1.0), (1, 0.0), (2, -1.0), (3, 10.0)]
    assert [len(line) for line in places(draw({"a": below}, log_y=True))] == [2]


@pytest.mark.parametrize("series", [{}, {"a": []}, {"a": [], "b": [(1.0, 2.0)]}])
@pytest.mark.parametrize("log_y", [True, False])
def test_empty_series_are_still_a_picture(series: Series, log_y: bool) -> None:
    picture = draw(series, log_y=log_y)
    assert len(places(picture)) == len(series)


def test_a_single_point_can_be_seen() -> None:
    (path,) = draw({"a": [(1.0, 2.0)]}).iter(f"{SVG}path")
    assert (path.get("d") or "").endswith("l0 0")  # a dot, as strokes have round ends


def test_names_cannot_break_out_of_the_picture() -> None:
    name = '<script>"&\x00'
    picture = draw({name: [(0, 1)]}, title=name)
    assert picture.get("aria-label") == '<script>"& '
    assert {title.text for title in picture.iter(f"{SVG}title")} == {'<script>"& '}
    assert not list(picture.iter(f"{SVG}script"))


def test_the_legend_has_every_name_inside_the_picture() -> None:
    series = {f"a method with a long name, number {k}": [(0.0, float(k))] for k in range(30)}
    picture = draw(series)
    texts = [text for text in picture.iter(f"{SVG}text") if "method" in (text.text or "")]
    assert len(texts) == 30
    assert max(float(text.get("y", "nan")) for text in texts) < float(picture.get("height", "nan"))
    assert max(len(text.text or "") for text in texts) <= 20
    assert [text[0].text for text in texts] == list(series)


def test_ticks_are_round_numbers() -> None:
    picture = draw({"a": [(1, 0.31), (20, 0.88)]})
    ticks = [
        float(text.text or "nan")
        for text in picture.iter(f"{SVG}text")
        if text.get("class") and (text.text or "").replace(".", "").isdigit()
    ]
    assert ticks == [0.4, 0.6, 0.8, *range(2, 21, 2)]
