"""The record: its checksum, its parts, and the order of its rows."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.errors import InputError
from driftquilt.paper.datasets.stream import Stream, restore_order, shuffle_inside


def stream_of(sizes: list[int]) -> Stream:
    n_rows = sum(sizes)
    return Stream(
        "toy",
        np.arange(2.0 * n_rows).reshape(n_rows, 2),
        np.arange(n_rows) % 3,
        np.repeat(np.arange(len(sizes)), sizes),
        "nobody",
        drift_points=tuple(np.cumsum(sizes)[:-1].tolist()),
    )


sizes = st.lists(st.integers(1, 30), min_size=1, max_size=8)


@given(sizes)
def test_restoring_the_order_is_the_inverse_of_the_shuffle(sizes: list[int]) -> None:
    original = stream_of(sizes)
    order = shuffle_inside(original.segments)
    shuffled = replace(original, features=original.features[order], labels=original.labels[order])
    restored = restore_order(shuffled)
    np.testing.assert_array_equal(restored.features, original.features)
    np.testing.assert_array_equal(restored.labels, original.labels)


@given(sizes)
def test_the_shuffle_keeps_every_row_in_its_segment(sizes: list[int]) -> None:
    segments = stream_of(sizes).segments
    order = shuffle_inside(segments)
    np.testing.assert_array_equal(np.sort(order), np.arange(len(segments)))
    np.testing.assert_array_equal(segments[order], segments)


@given(sizes, st.data())
def test_the_first_segments_are_a_stream_of_their_own(
    sizes: list[int], data: st.DataObject
) -> None:
    whole, n_segments = stream_of(sizes), data.draw(st.integers(1, len(sizes)))
    part = whole.first(n_segments)
    n_rows = sum(sizes[:n_segments])
    np.testing.assert_array_equal(part.features, whole.features[:n_rows])
    assert part.n_segments == len(part.segment_names) == n_segments
    assert part.drift_points == tuple(np.cumsum(sizes[:n_segments])[:-1].tolist())
    assert part.sha256 is None


def test_more_segments_than_there_are_is_refused() -> None:
    with pytest.raises(InputError, match="toy has 2 segments, not 3"):
        stream_of([2, 2]).first(3)


def test_the_checksum_is_of_eight_bytes_a_value_row_by_row() -> None:
    stream = stream_of([1, 1])
    values = np.array([0, 1, 2, 3], "<f8").tobytes() + np.array([0, 1, 0, 1], "<i8").tobytes()
    assert stream.checksum() == hashlib.sha256(values).hexdigest()


def test_the_checksum_does_not_see_how_the_memory_lies() -> None:
    stream = stream_of([4, 3])
    other = replace(
        stream,
        features=np.asfortranarray(stream.features).astype(">f8"),
        labels=stream.labels.astype(np.int32),
    )
    assert other.checksum() == stream.checksum()


def test_verify_refuses_one_changed_value_and_says_whose() -> None:
    stream = stream_of([4, 3])
    sealed = replace(stream, sha256=stream.checksum())
    assert sealed.verify()
    sealed.features[3, 1] = np.nextafter(sealed.features[3, 1], np.inf)
    with pytest.raises(InputError, match=r"toy has the SHA-256 .* but should have"):
        sealed.verify()


def test_names_that_are_not_given_are_made_up() -> None:
    stream = stream_of([4, 3])
    assert stream.feature_names == ("x0", "x1")
    assert stream.class_names == ("0", "1", "2")
    assert stream.segment_names == ("0", "1")
