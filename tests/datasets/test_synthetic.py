"""The streams that are made equal the published arrays."""

from __future__ import annotations

import numpy as np

from driftquilt.datasets.base import shuffle_inside
from driftquilt.datasets.synthetic import sine
from tests.published import load_published


def test_sine_equals_the_published_stream_bit_for_bit() -> None:
    made, published = sine(), load_published("sine")
    np.testing.assert_array_equal(made.features, published.features)
    np.testing.assert_array_equal(made.labels, published.labels)
    np.testing.assert_array_equal(made.segments, published.segments)


def test_original_order_undoes_the_shuffle_inside_segments() -> None:
    shuffled, original = sine(3, 100), sine(3, 100, original_order=True)
    order = shuffle_inside(original.segments)
    np.testing.assert_array_equal(original.features[order], shuffled.features)
    np.testing.assert_array_equal(original.labels[order], shuffled.labels)


def test_two_of_the_four_concepts_are_the_others_with_flipped_labels() -> None:
    stream = sine(4, 2000)
    a, b = stream.features[:, 0], stream.features[:, 1]
    curves = {0: np.sin(b), 2: 0.5 + 0.3 * np.sin(3 * np.pi * b)}
    for first, curve in curves.items():
        below = (a < curve).astype(np.int64)
        plain, flipped = stream.segments == first, stream.segments == first + 1
        np.testing.assert_array_equal(stream.labels[plain], below[plain])
        np.testing.assert_array_equal(stream.labels[flipped], 1 - below[flipped])


def test_a_longer_stream_goes_on_where_the_shorter_one_ended() -> None:
    np.testing.assert_array_equal(sine(5, 50).features[:200], sine(4, 50).features)
