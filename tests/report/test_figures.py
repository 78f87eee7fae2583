"""The quilt as SVG: one patch per past segment, and nothing that breaks out of it."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from driftquilt.report.figures import quilt_svg
from driftquilt.report.quilt_rows import QuiltRow, mean_accuracies

SVG = "{http://www.w3.org/2000/svg}"

ROWS = [
    QuiltRow("May", {}, {"Quilt": 0.9, "all data": 0.5}),
    QuiltRow("June", {"May": 0.25}, {"Quilt": 0.8, "all data": 0.3}),
    QuiltRow("July", {"May": 0.0, "June": 1.0}, {"Quilt": 1.0, "all data": 0.1}),
]


def test_a_patch_per_past_segment_is_as_dark_as_it_was_used() -> None:
    picture = ET.fromstring(quilt_svg(ROWS, "quilt"))
    patches = picture.findall(f"{SVG}rect")
    assert [patch.get("fill-opacity") for patch in patches] == ["0.25", "0.00", "1.00"]
    told = [patch.findtext(f"{SVG}title") for patch in patches]
    assert told == ["May: used in 25% of epochs", "May: dropped", "June: used in 100% of epochs"]


def test_accuracies_stand_in_order_along_the_axis() -> None:
    picture = ET.fromstring(quilt_svg(ROWS, "quilt"))
    at = {
        text.findtext(f"{SVG}title"): float(text.get("x", "nan"))
        for text in picture.findall(f"{SVG}text")
        if text.find(f"{SVG}title") is not None
    }
    places = [at[f"{name}"] for name in ("all data: 0.100", "all data: 0.500", "Quilt: 1.000")]
    assert places == sorted(places)


def test_names_cannot_break_out_of_the_picture() -> None:
    row = QuiltRow('<script>"', {"</svg>&": 0.5}, {"<b>": 0.5})
    picture = ET.fromstring(quilt_svg([row], 'a "title" <x>'))
    assert picture.get("aria-label") == 'a "title" <x>'
    assert not picture.findall(".//script")


def test_an_empty_quilt_is_still_a_picture() -> None:
    assert ET.fromstring(quilt_svg([], "nothing yet")).tag == f"{SVG}svg"


def test_means_are_over_the_segments_that_have_the_method() -> None:
    means = mean_accuracies(ROWS)
    assert round(means["Quilt"], 6) == 0.9
    assert round(means["all data"], 6) == 0.3
