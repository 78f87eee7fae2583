"""The streams that are made equal the published arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable
from subprocess import run

import numpy as np
import pytest

from driftquilt.errors import InputError
from driftquilt.paper.datasets.stream import Stream, shuffle_inside
from driftquilt.paper.datasets.synthetic import hyperplane, random_rbf, sea, sine
from tests.published import load_published

MAKERS = [sea, hyperplane, random_rbf, sine]


@pytest.mark.parametrize("make", MAKERS)
def test_the_stream_equals_the_published_one_bit_for_bit(make: Callable[..., Stream]) -> None:
    made, published = make(), load_published(make.__name__)
    np.testing.assert_array_equal(made.features, published.features)
    np.testing.assert_array_equal(made.labels, published.labels)
    np.testing.assert_array_equal(made.segments, published.segments)


@pytest.mark.parametrize("make", MAKERS)
def test_the_stream_with_the_papers_numbers_has_the_checksum_on_record(
    make: Callable[..., Stream],
) -> None:
    assert make().verify()


@pytest.mark.parametrize("make", MAKERS)
def test_a_stream_of_other_numbers_has_no_checksum(make: Callable[..., Stream]) -> None:
    for stream in (make(2, 30), make(original_order=True, n_segments=1, n_rows=30)):
        assert stream.sha256 is None
        assert not stream.verify()


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("original_order", [False, True])
def test_a_longer_stream_begins_with_the_shorter_one(
    make: Callable[..., Stream], original_order: bool
) -> None:
    shorter = make(4, 51, original_order=original_order)
    longer = make(9, 51, original_order=original_order)
    np.testing.assert_array_equal(longer.features[:204], shorter.features)
    np.testing.assert_array_equal(longer.labels[:204], shorter.labels)
    np.testing.assert_array_equal(longer.segments[:204], shorter.segments)


@pytest.mark.parametrize("make", [hyperplane, random_rbf])
def test_a_stream_without_rest_does_not_ask_where_it_is_cut(make: Callable[..., Stream]) -> None:
    few, many = make(2, 60, original_order=True), make(8, 15, original_order=True)
    np.testing.assert_array_equal(few.features, many.features)
    np.testing.assert_array_equal(few.labels, many.labels)


@pytest.mark.parametrize("make", MAKERS)
def test_original_order_undoes_the_shuffle_inside_segments(make: Callable[..., Stream]) -> None:
    shuffled, original = make(3, 100), make(3, 100, original_order=True)
    order = shuffle_inside(original.segments)
    np.testing.assert_array_equal(original.features[order], shuffled.features)
    np.testing.assert_array_equal(original.labels[order], shuffled.labels)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(("n_segments", "n_rows"), [(0, 5), (-1, 5), (2, 0), (2.5, 5), (True, 5)])
def test_numbers_of_segments_and_rows_are_checked(
    make: Callable[..., Stream], n_segments: int, n_rows: int
) -> None:
    with pytest.raises(InputError, match="at least 1"):
        make(n_segments, n_rows)


@pytest.mark.parametrize("make", MAKERS)
def test_a_single_row_is_a_stream(make: Callable[..., Stream]) -> None:
    assert make(1, 1).features.shape[0] == 1


def test_two_of_the_four_concepts_are_the_others_with_flipped_labels() -> None:
    stream = sine(4, 2000)
    a, b = stream.features[:, 0], stream.features[:, 1]
    curves = {0: np.sin(b), 2: 0.5 + 0.3 * np.sin(3 * np.pi * b)}
    for first, curve in curves.items():
        below = (a < curve).astype(np.int64)
        plain, flipped = stream.segments == first, stream.segments == first + 1
        np.testing.assert_array_equal(stream.labels[plain], below[plain])
        np.testing.assert_array_equal(stream.labels[flipped], 1 - below[flipped])


def test_sea_labels_are_flipped_at_nine_percent() -> None:
    stream = sea(40, 2000)
    thresholds = np.array([8, 9, 7, 9.5])[stream.segments % 4]
    flipped = stream.labels != (stream.features[:, 0] + stream.features[:, 1] > thresholds)
    assert flipped.mean() == pytest.approx(0.09, abs=0.004)


def test_the_normal_draws_of_random_rbf_are_numpys_but_for_the_last_bit() -> None:
    from driftquilt.paper.datasets.synthetic import _normals  # noqa: PLC0415

    ours, theirs = np.random.RandomState(7), np.random.RandomState(7)
    draws = _normals(ours)
    made = np.array([next(draws) for _ in range(2000)])
    np.testing.assert_allclose(made, theirs.normal(size=2000), rtol=3e-16)


def test_global_randomness_is_left_alone() -> None:
    np.random.seed(1)  # noqa: NPY002  # the old global generator is what is asked about
    undisturbed = np.random.rand(3)  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    for make in MAKERS:
        make(2, 10)
    np.testing.assert_array_equal(np.random.rand(3), undisturbed)  # noqa: NPY002


def test_data_sets_import_neither_numba_nor_torch_nor_scikit_learn() -> None:
    code = "import sys, driftquilt.paper.datasets; print(*sys.modules)"
    done = run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numba", "torch", "sklearn", "pandas", "river"} & set(done.stdout.split())
