"""Laws that hold for every data set because it has a name."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from driftquilt.errors import InputError
from driftquilt.paper.datasets import describe, load, names
from driftquilt.paper.datasets.catalog import Description
from driftquilt.paper.datasets.stream import Stream, shuffle_inside
from tests.published import load_published

SHAPES = {
    "sea": (16000, 3, 2, 8),
    "hyperplane": (16000, 10, 2, 8),
    "random_rbf": (16000, 10, 5, 8),
    "sine": (16000, 4, 2, 8),
    "electricity": (43200, 6, 2, 10),
    "weather": (18000, 8, 2, 10),
    "spam": (9324, 499, 2, 9),
    "usenet1": (1500, 99, 2, 5),
    "usenet2": (1500, 99, 2, 5),
}
SUDDEN = {"sea": 2000, "sine": 2000, "usenet1": 300, "usenet2": 300}
every_name = pytest.mark.parametrize("name", names())


def load_here(name: str, **settings: int) -> Stream:
    """Loads; a real stream only from the folder that DRIFTQUILT_DATA names."""
    is_real = describe(name, check=False).kind == "real"
    if is_real and not os.environ.get("DRIFTQUILT_DATA"):
        pytest.skip("needs the published streams: set DRIFTQUILT_DATA to the folder they lie in")
    return load(name, **settings)  # type: ignore[arg-type]


def test_there_are_the_nine_streams_of_the_paper() -> None:
    assert names() == tuple(SHAPES)


@every_name
def test_the_rows_are_the_published_ones(name: str) -> None:
    stream, published = load_here(name), load_published(name)
    assert stream.verify()
    np.testing.assert_array_equal(stream.features, published.features)
    np.testing.assert_array_equal(stream.labels, published.labels)
    np.testing.assert_array_equal(stream.segments, published.segments)
    assert stream.current_share == published.current_share


@every_name
def test_a_stream_has_the_form_it_promises(name: str) -> None:
    stream = load_here(name)
    shape = (*stream.features.shape, len(stream.class_names), stream.n_segments)
    assert shape == SHAPES[name]
    assert stream.features.dtype == np.float64
    assert stream.features.flags.c_contiguous
    assert stream.features.flags.writeable
    assert stream.labels.dtype == stream.segments.dtype == np.int64
    assert len(stream.feature_names) == len(set(stream.feature_names)) == shape[1]
    assert np.unique(stream.labels).tolist() == list(range(shape[2]))
    assert (np.diff(stream.segments) >= 0).all()
    assert stream.name == name
    assert stream.citation
    assert stream.current_share == (0.2 if name in ("spam", "usenet1", "usenet2") else 0.1)


@every_name
def test_drift_points_are_the_starts_of_segments_where_the_drift_is_sudden(name: str) -> None:
    stream = load_here(name)
    if name not in SUDDEN:
        assert stream.drift_points is None
    else:
        size = SUDDEN[name]
        assert stream.drift_points == tuple(range(size, len(stream.labels), size))


@every_name
def test_original_order_undoes_the_shuffle(name: str) -> None:
    published, original = load_here(name), load_here(name, original_order=True)
    order = shuffle_inside(published.segments)
    np.testing.assert_array_equal(original.features[order], published.features)
    np.testing.assert_array_equal(original.labels[order], published.labels)
    np.testing.assert_array_equal(original.segments, published.segments)


@every_name
@pytest.mark.parametrize("original_order", [False, True])
def test_fewer_segments_are_the_first_ones(name: str, original_order: bool) -> None:
    whole = load_here(name, original_order=original_order)
    part = load_here(name, original_order=original_order, n_segments=2)
    assert part.n_segments == 2
    np.testing.assert_array_equal(part.features, whole.features[: len(part.features)])
    np.testing.assert_array_equal(part.labels, whole.labels[: len(part.labels)])


@every_name
def test_two_loads_share_no_memory(name: str) -> None:
    first, second = load_here(name, n_segments=1), load_here(name, n_segments=1)
    assert not np.shares_memory(first.features, second.features)


@every_name
def test_a_number_of_segments_below_one_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="n_segments"):
        load(name, n_segments=0)


@every_name
def test_the_description_has_the_shape_and_that_the_checksum_holds(name: str) -> None:
    stream, description = load_here(name), describe(name)
    shape = (
        description.n_rows,
        description.n_features,
        description.n_classes,
        description.n_segments,
    )
    assert shape == SHAPES[name]
    assert description.citation == stream.citation
    assert description.is_present
    assert description.is_intact
    assert not description.problem


def test_electricity_in_original_order_counts_the_half_hours_of_each_day() -> None:
    stream = load_here("electricity", original_order=True)
    period = stream.features[:, stream.feature_names.index("period")]
    steps = np.diff(period)
    np.testing.assert_allclose(steps[steps > 0], 1 / 47, atol=1e-5)
    assert (steps < 0).sum() == len(period) // 48


def test_a_real_stream_has_no_more_segments_than_were_measured() -> None:
    with pytest.raises(InputError, match="usenet1 has 5 segments, not 6"):
        load_here("usenet1", n_segments=6)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("SEA", "'sea'"), ("usenet", "'usenet"), ("RandomRBF", "'random_rbf'"), ("elec2", "")],
)
def test_an_unknown_name_is_refused_with_the_nearest_ones(wrong: str, right: str) -> None:
    with pytest.raises(InputError, match=f"'{wrong}'.*{right}") as raised:
        load(wrong)
    assert all(name in str(raised.value) for name in names())


def test_a_name_that_is_no_text_is_refused() -> None:
    with pytest.raises(InputError, match="data set 3"):
        describe(3)  # type: ignore[arg-type]


def test_a_stream_that_is_not_here_is_described_with_its_address(cache: Path) -> None:
    description = describe("spam")
    assert not cache.exists()
    assert not description.is_present
    assert description.is_intact is None
    assert description.place.startswith("https://raw.githubusercontent.com/minsu716-kim/Quilt/")


def test_a_damaged_file_is_described_with_what_is_wrong(cache: Path) -> None:
    cache.mkdir()
    (cache / "weather.parquet").write_bytes(b"PAR1 and no more")
    description = describe("weather")
    assert description.is_present
    assert description.is_intact is False
    assert "weather.parquet" in description.problem
    assert description.place == str(cache / "weather.parquet")
    assert describe("weather", check=False).is_intact is None


def test_a_description_without_a_check_is_values_only() -> None:
    description = describe("sine", check=False)
    assert description == Description(
        "sine",
        "synthetic",
        16000,
        4,
        2,
        8,
        "Gama, Medas, Castillo, Rodrigues: Learning with drift detection, SBIA 2004",
        "made in code",
        is_present=True,
    )
