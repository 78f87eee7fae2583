"""Drawings: readable at any size, self-contained, and true to their values."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from driftquilt.errors import InputError, MissingExtraError
from driftquilt.report.drawing import Drawing, draw_selection, draw_selections
from driftquilt.report.lines import sparkline, stream_accuracy
from driftquilt.report.page import Drift, mean_accuracies
from driftquilt.report.quilt import drift_quilt, stream_quilt, weight_cover
from driftquilt.report.quilt import quilt_svg as svg_of_quilt
from driftquilt.report.quilt_layout import Room, lay_out
from driftquilt.report.score_panels import fold_range, score_panels
from driftquilt.report.svg import DAY, NIGHT, ink_class
from tests.report.pages import drifts, hostile_page, large_page, renamed

SVG = "{http://www.w3.org/2000/svg}"
SIZES = [(1, 2), (1, 60), (60, 2), (60, 60), (8, 7)]


def quilt_svg(drifts: Sequence[Drift], title: str) -> str:
    return svg_of_quilt(drift_quilt(drifts), title)


def drawn_quilt() -> Drawing:
    return draw_selections({str(drift.name): drift.selection for drift in drifts()})


def with_class(picture: ET.Element, name: str) -> list[ET.Element]:
    return [part for part in picture.iter() if name in (part.get("class") or "").split()]


def test_a_patch_per_past_segment_is_as_strong_as_it_was_used() -> None:
    picture = ET.fromstring(quilt_svg(drifts(), "quilt"))
    patches = with_class(picture, "patch")
    uses = [use for drift in drifts() for use in drift.uses]
    found = [float(patch.findall(f"{SVG}rect")[1].get("fill-opacity", "nan")) for patch in patches]
    covers = [weight_cover(use.weight) for use in uses]
    assert found == [round(cover, 2) for cover in covers]
    assert {cover > 0 for cover in covers} == {True, False}
    assert [cover > 0 for cover in covers] == [use.word != "dropped" for use in uses]


def test_a_segment_that_is_used_in_part_has_its_colour_and_its_weight() -> None:
    parts = [{"segment": n, "weight": w, "used": u} for n, w, u in SHARES]
    patches = [{**part, "disparity": None, "gain": None} for part in parts]
    chosen = [{**SELECTIONS[0], "patches": patches}]
    quilt = ET.fromstring(stream_quilt(chosen, [], in_use=2, room=Room(800, 10)))
    used, in_part, dropped = with_class(quilt, "patch")
    assert "used in part, weight 20%" in (in_part.get("aria-label") or "")
    covers = [
        float(with_class(patch, "cover")[0].get("fill-opacity", "nan"))
        for patch in (used, in_part, dropped)
    ]
    assert covers == [0.83, 0.32, 0.0]
    shown = ["".join(patch.itertext()) for patch in (used, in_part, dropped)]
    assert [("80%" in shown[0]), ("20%" in shown[1]), ("%" in shown[2])] == [True, True, False]
    assert [bool(with_class(patch, "stitch")) for patch in (used, in_part)] == [True, False]
    assert "dropped" in [word.text for word in with_class(quilt, "faint")]  # the legend


def test_no_mark_hides_another_of_the_same_score() -> None:
    alike = replace(drifts()[0], accuracies={"Quilt": 0.9, "all data": 0.9, "current only": 0.5})
    marks = with_class(ET.fromstring(quilt_svg([alike], "quilt")), "mark")[:3]
    places = [re.findall(r"[\d.]+", mark.get("transform") or "")[:2] for mark in marks]
    (x1, y1), (x2, y2) = (map(float, place) for place in places[1:])
    assert x1 == x2
    assert y1 - y2 >= 10  # ours is drawn last, and is the upper one


def test_the_scores_beside_a_model_are_by_the_metric_that_decides() -> None:
    words = "log loss, lower is better"
    scores = {"Quilt": 0.381, "all data": 0.681, "current only": 0.389}
    drift = replace(drifts()[0], scores=scores, measure=words)
    quilt = drift_quilt([drift])
    picture = ET.fromstring(svg_of_quilt(quilt, "quilt"))
    titles = [text.text for text in with_class(picture, "faint")]
    assert words in titles
    assert "accuracy" not in titles
    assert {mark.findtext(f"{SVG}title") for mark in with_class(picture, "mark")} > {
        "Quilt: 0.381", "all data: 0.681", "current only: 0.389"
    }  # fmt: skip
    ticks = lay_out(quilt).score_ticks
    assert ticks[0] <= min(scores.values())
    assert ticks[-1] >= max(scores.values())
    alone = replace(drift, scores={"Quilt": 38.2})
    low, *_, high = lay_out(drift_quilt([alone])).score_ticks
    assert low < 38.2 < high


def test_numbered_segments_are_labelled_by_their_number() -> None:
    selection = drifts()[1].selection
    names = tuple(f"segment {n} (rows {n} to {n})" for n in range(1, len(selection) + 1))
    drift = replace(drifts()[1], selection=replace(selection, names=names))
    picture = ET.fromstring(quilt_svg([drift], "quilt"))
    labels = [text for text in picture.iter(f"{SVG}text") if text.findtext(f"{SVG}title") in names]
    assert [label.text for label in labels] == [str(n) for n in range(1, len(names) + 1)]


def test_a_patch_says_its_numbers() -> None:
    patches = with_class(ET.fromstring(quilt_svg(drifts(), "quilt")), "patch")
    use, told = drifts()[1].uses[0], patches[0].findtext(f"{SVG}title") or ""
    assert told.startswith(f"{use.name}: ")
    assert (
        f"median disparity {use.disparity.median:.2f}, median gain {use.gain.median:+.2g}" in told
    )


def test_accuracies_stand_in_order_along_the_axis() -> None:
    layout = lay_out(drift_quilt(drifts()))
    values = sorted(value for drift in drifts() for value in drift.accuracies.values())
    placed = [layout.score_x(value) for value in values]
    assert placed == sorted(placed)
    assert layout.beside <= placed[0] <= placed[-1] <= layout.beside + layout.plot_width


@pytest.mark.parametrize(("n_drifts", "n_segments"), SIZES)
def test_labels_keep_apart_and_everything_is_inside(n_drifts: int, n_segments: int) -> None:
    made = large_page(n_drifts, n_segments).drifts
    layout, picture = lay_out(drift_quilt(made)), ET.fromstring(quilt_svg(made, "quilt"))
    assert len(with_class(picture, "patch")) == n_drifts * n_segments
    assert layout.row_step * layout.cell >= 14
    assert layout.column_step * layout.cell >= 14
    width, height = float(picture.get("width", "0")), float(picture.get("height", "0"))
    assert width <= 1100
    assert height <= 1300
    for part in picture.iter(f"{SVG}rect"):
        assert float(part.get("x", "0")) + float(part.get("width", "0")) <= width
        assert float(part.get("y", "0")) + float(part.get("height", "0")) <= height


def test_long_names_are_cut_and_whole_in_the_title() -> None:
    picture = ET.fromstring(quilt_svg(large_page(2, 2).drifts, "quilt"))
    label = next(text for text in picture.iter(f"{SVG}text") if "the segment" in (text.text or ""))
    assert label.text == "the segment o…"
    assert label.findtext(f"{SVG}title") == "the segment of week 0"


def test_names_cannot_break_out_of_the_picture() -> None:
    page = hostile_page()
    picture = ET.fromstring(quilt_svg(page.drifts, 'a "title" <x>'))
    assert picture.get("aria-label") == 'a "title" <x>'
    assert {part.tag for part in picture.iter()}.isdisjoint({f"{SVG}script", f"{SVG}img", "img"})
    ET.fromstring(draw_selection(page.drifts[0].selection).svg)


def test_an_empty_quilt_is_still_a_picture() -> None:
    assert ET.fromstring(quilt_svg([], "nothing yet")).tag == f"{SVG}svg"


def test_the_picture_asks_nothing_of_the_net() -> None:
    svg = quilt_svg(drifts(), "quilt")
    assert set(re.findall(r"https?://[^\s\"'<]*", svg)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\b(href|src|@import|url\()", svg)


def test_means_are_over_the_drifts_that_have_the_method() -> None:
    means = mean_accuracies(drifts())
    quilt = [drift.accuracies["Quilt"] for drift in drifts()]
    assert means["Quilt"] == pytest.approx(sum(quilt) / len(quilt))
    assert list(means) == ["Quilt", "all data", "current only"]


def test_a_selection_draws_itself_with_a_line_and_a_band_per_segment() -> None:
    selection = drifts()[-1].selection
    picture = ET.fromstring(selection.plot()._repr_svg_())
    assert len(with_class(picture, "patch")) == len(selection)
    assert len(with_class(picture, "line")) == 2 * len(selection)
    assert len(with_class(picture, "range")) == 2 * len(selection)
    disparity, gain = score_panels(selection)
    assert disparity.chart.views[0].bound == selection.disparity_max
    assert gain.chart.views[0].bound == 0


def test_a_line_is_the_mean_over_folds_within_their_range() -> None:
    selection = drifts()[-1].selection
    for panel in score_panels(selection):
        for s, line in enumerate(panel.chart.views[0].lines):
            for epoch in (0, 5):
                scores = [getattr(fold, panel.name)[epoch, s] for fold in selection.folds]
                assert line.values[epoch] == pytest.approx(sum(scores) / len(scores))
                assert (line.low[epoch], line.high[epoch]) == (min(scores), max(scores))


def test_a_fold_that_stopped_early_counts_no_more_and_one_without_a_number_not_at_all() -> None:
    short, long = np.array([[1.0], [np.nan]]), np.array([[3.0], [4.0], [5.0]])
    mean, low, high = fold_range([short, long])
    assert mean[:, 0].tolist() == [2, 4, 5]
    assert low[:, 0].tolist() == [1, 4, 5]
    assert high[:, 0].tolist() == [3, 4, 5]
    assert np.isnan(fold_range([short * np.nan]).mean).all()


def test_rows_of_a_drawing_have_the_names_given() -> None:
    drawing = draw_selections(
        {f"model {k}, row {k}00": d.selection for k, d in enumerate(drifts())}
    )
    names = [part.text for part in with_class(ET.fromstring(drawing.svg), "name")]
    assert names == [f"model {k}, row {k}00" for k in range(5)]


@pytest.mark.parametrize("n_segments", [2, 17, 30, 40])
def test_forty_patches_fit_a_page_and_are_large_enough_to_point_at(n_segments: int) -> None:
    names = [f"{2020 + k // 12}-{k % 12 + 1:02d}" for k in range(n_segments)]
    layout = lay_out(drift_quilt([renamed(drifts()[-1], names, "2024-01")]), Room())
    assert layout.cell >= 23
    assert layout.width <= 1092
    assert bool(layout.methods) == (n_segments < 36)


def test_lines_stay_inside_their_panel() -> None:
    for panel in score_panels(drifts()[-1].selection):
        low, high = panel.chart.y_range
        for line in [line for view in panel.chart.views for line in view.lines]:
            for scores in (line.values, line.low, line.high):
                assert all(low <= score <= high for score in scores)


def test_each_fold_has_a_view_with_its_own_lines_and_bound() -> None:
    selection = drifts()[-1].selection
    disparity, _ = score_panels(selection)
    for fold, view in zip(selection.folds, disparity.chart.views[1:], strict=True):
        assert view.bound == fold.disparity_max
        assert view.x == tuple(range(1, len(fold.disparity) + 1))
        for s, line in enumerate(view.lines):
            assert line.values == tuple(fold.disparity[:, s].tolist())


def test_a_long_training_is_thinned_from_its_first_epoch_to_its_last() -> None:
    selection = drifts()[-1].selection
    disparity, _ = score_panels(selection, n_points=4)
    for fold, view in zip(selection.folds, disparity.chart.views[1:], strict=True):
        assert len(view.x) == 4
        assert (view.x[0], view.x[-1]) == (1, len(fold.disparity))


def test_a_selection_without_a_past_is_one_empty_row() -> None:
    picture = ET.fromstring(drifts()[0].selection.plot().svg)
    assert not with_class(picture, "patch")
    assert not with_class(picture, "line")


def test_a_drawing_saves_as_its_name_ends(tmp_path: Path) -> None:
    drawing = drawn_quilt()
    assert drawing.save(tmp_path / "quilt.svg").read_text() == drawing.svg
    png = drawing.save(tmp_path / "quilt.PNG").read_bytes()
    assert png.startswith(b"\x89PNG")
    width = int.from_bytes(png[16:20])
    assert width == pytest.approx(2 * float(ET.fromstring(drawing.svg).get("width", "0")), abs=2)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_drawing_refuses_other_kinds_of_file_and_folders_that_are_not_there(
    tmp_path: Path,
) -> None:
    drawing = drawn_quilt()
    with pytest.raises(InputError, match=r"saved as \.svg or \.png, but got 'quilt\.gif'"):
        drawing.save("quilt.gif")
    with pytest.raises(FileNotFoundError, match=r"quilt\.svg"):
        drawing.save(tmp_path / "no" / "quilt.svg")
    (tmp_path / "a.svg").mkdir()
    with pytest.raises(IsADirectoryError, match=r"a\.svg"):
        drawing.save(tmp_path / "a.svg")


def test_without_the_extra_a_png_is_a_sentence_with_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'driftquilt\[report\]'"):
        drawn_quilt().save(tmp_path / "quilt.png")
    assert not list(tmp_path.iterdir())


def luminance(colour: tuple[float, ...]) -> float:
    parts = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def rgb(colour: str) -> tuple[float, ...]:
    return tuple(int(colour[k : k + 2], 16) for k in (1, 3, 5))


def contrast(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [DAY, NIGHT], ids=["day", "night"])
def test_text_on_a_patch_of_any_strength_has_the_contrast_of_aa(colours: dict[str, str]) -> None:
    mid = "full" if colours is NIGHT else "low"
    for step in range(101):
        cover = step / 100
        kind = ink_class(cover)
        ink = rgb(colours[mid if kind == "mid" else kind])
        pairs = zip(rgb(colours["accent"]), rgb(colours["soft"]), strict=True)
        patch = tuple(a * cover + b * (1 - cover) for a, b in pairs)
        assert contrast(ink, patch) >= 4.5, cover


@pytest.mark.parametrize("colours", [DAY, NIGHT], ids=["day", "night"])
@pytest.mark.parametrize("ground", ["paper", "soft"])
def test_all_inks_have_the_contrast_of_aa(colours: dict[str, str], ground: str) -> None:
    for name in ("ink", "faint", "accent", "m1", "m2", "m3", "m4", "m5"):
        assert contrast(rgb(colours[name]), rgb(colours[ground])) >= 4.5, name


SELECTIONS: list[dict[str, Any]] = [
    {
        "number": 7, "row": 12_000, "n_current": 300, "model": 2, "validation_loss": 0.1,
        "patches": [
            {"segment": 1, "weight": 0.5, "used": True, "disparity": 0.4, "gain": 0.1},
            {"segment": 3, "weight": 0.0, "used": False, "disparity": None, "gain": None},
        ],
    },
    {
        "number": 9, "row": 14_000, "n_current": 200, "model": None, "validation_loss": None,
        "patches": [],
    },
]  # fmt: skip
SHARES = [(1, 0.8, True), (2, 0.2, False), (3, 0.02, False)]
SEGMENTS = [{"number": 1, "first_row": 1_000, "n_rows": 2_000}]


def test_the_quilt_of_a_stream_is_a_grid_that_says_its_numbers() -> None:
    quilt = ET.fromstring(stream_quilt(SELECTIONS, SEGMENTS, in_use=2, room=Room(800, 10)))
    assert quilt.get("role") == "grid"
    first, second = with_class(quilt, "row")
    assert [row.get("data-row") for row in (first, second)] == ["7", "9"]
    assert (first.get("class"), second.get("class")) == ("row used", "row")
    used, dropped = with_class(first, "patch")
    assert used.get("data-tip") == (
        "Segment 1\nrows\t2,000 from 1,000\nweight\t50%\ndisparity\t0.400\ngain\t+0.1000"
    )
    assert (
        dropped.get("aria-label") == "segment 3: dropped, weight 0%, disparity \u2013, gain \u2013"
    )
    assert [part.text for part in with_class(quilt, "model")] == ["2 in use", "refused"]
    assert not list(quilt.iter(f"{SVG}style"))  # a page has the style sheet


@pytest.mark.parametrize("width", [200, 390, 1152])
def test_the_quilt_of_a_stream_is_as_wide_as_its_place_or_its_smallest_patches(width: int) -> None:
    patches = [{**SELECTIONS[0]["patches"][0], "segment": n} for n in range(1, 31)]
    chosen = [{**SELECTIONS[0], "patches": patches}]
    quilt = ET.fromstring(stream_quilt(chosen, SEGMENTS, None, Room(width, 10)))
    assert float(quilt.get("width", "0")) <= max(width, 510)
    assert len(with_class(quilt, "patch")) == 30


@pytest.mark.parametrize(("n_rows", "last"), [(400, 400), (250, 290)])
def test_drifts_after_the_last_full_bucket_are_within_the_axis(n_rows: int, last: int) -> None:
    curve: dict[str, Any] = {
        "size": 100,
        "first_row": 0,
        "accuracy": [0.9, 0.8],
        "drifts": [100, 290],
    }
    chart = ET.fromstring(stream_accuracy(curve, n_rows))  # the rows may be older than a drift
    places = [float(mark.get("x1", "")[:-1]) for mark in with_class(chart, "drift")]
    assert places == pytest.approx([100 * drift / last for drift in curve["drifts"]], abs=0.01)
    assert chart.get("aria-label") == (
        "Accuracy up to row 200: now 0.800, lowest 0.800 at row 200; 2 drifts, the last at row 290"
    )


def test_without_a_full_bucket_there_is_nothing_to_draw() -> None:
    curve = {"size": 100, "first_row": 0, "accuracy": [], "drifts": []}
    for drawing in (stream_accuracy(curve, 50), sparkline(curve)):
        assert not list(ET.fromstring(drawing))
