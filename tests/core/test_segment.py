"""Segments lose no row, keep the rows' order, and split as the paper splits them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.core.segment import (
    Pick,
    Segment,
    count_classes,
    cut,
    folds,
    gather,
    join,
    sample,
)
from driftquilt.errors import InputError


def rows(y: list[int], name: str = "june") -> Segment:
    """Rows whose only feature is their number."""
    n = len(y)
    X = np.arange(n, dtype=np.float32)[:, None]
    return Segment(name, X, np.array(y, dtype=np.int64), np.arange(1, n + 1, dtype=np.float32))


def numbers(segment: Segment) -> list[int]:
    return [int(x) for x in segment.X[:, 0]]


labels = st.lists(st.integers(0, 3), min_size=10, max_size=60)


def test_cut_makes_the_last_name_the_current_segment() -> None:
    whole = rows([0, 1, 0, 1, 1, 1])
    history, current = cut(whole.X, whole.y, np.array([0, 0, 1, 1, 2, 2]), ["a", "b", "c"])
    assert [segment.name for segment in history] == ["a", "b"]
    assert [numbers(segment) for segment in (*history, current)] == [[0, 1], [2, 3], [4, 5]]
    assert current.name == "c"


def test_cut_of_one_name_has_no_history() -> None:
    whole = rows([0, 1, 0])
    history, current = cut(whole.X, whole.y, np.zeros(3, dtype=np.intp), ["only"])
    assert history == []
    assert numbers(current) == [0, 1, 2]


@given(st.lists(st.integers(0, 3), max_size=40).map(lambda codes: [*codes, 0, 1, 2, 3]))
def test_cut_keeps_the_order_of_interleaved_rows_and_their_weights(codes: list[int]) -> None:
    whole = rows([code % 2 for code in codes])
    history, current = cut(whole.X, whole.y, np.array(codes), list("abcd"), whole.weight)
    for code, segment in enumerate((*history, current)):
        mine = [i for i, of in enumerate(codes) if of == code]
        assert numbers(segment) == mine
        assert segment.weight.tolist() == [i + 1 for i in mine]
        assert segment.y.tolist() == [code % 2] * len(mine)
        assert segment.X.flags.c_contiguous


def test_cut_leaves_the_rows_it_was_given_as_they_were() -> None:
    whole = rows([0, 1, 0, 1])
    codes = np.array([1, 0, 1, 0])
    cut(whole.X, whole.y, codes, ["a", "b"])
    assert numbers(whole) == [0, 1, 2, 3]
    assert codes.tolist() == [1, 0, 1, 0]


def test_rows_without_a_weight_weigh_one() -> None:
    whole = rows([0, 1])
    _, current = cut(whole.X, whole.y, np.array([0, 1]), ["a", "b"])
    assert current.weight.tolist() == [1.0]
    assert current.weight.dtype == np.float32


@given(st.integers(2, 51))
def test_one_fold_trains_on_the_first_half_rounded_down(n_rows: int) -> None:
    [(train, validation)] = folds(rows([0] * n_rows), 1)
    assert numbers(train) == list(range(n_rows // 2))
    assert numbers(validation) == list(range(n_rows // 2, n_rows))
    assert train.name == validation.name == "june"


@given(labels, st.integers(2, 10))
def test_every_row_validates_once_and_trains_in_all_other_folds(y: list[int], k: int) -> None:
    parts = folds(rows(y), k)
    assert sorted(i for _, validation in parts for i in numbers(validation)) == list(range(len(y)))
    for train, validation in parts:
        assert sorted(numbers(train) + numbers(validation)) == list(range(len(y)))


@given(labels, st.integers(2, 10))
def test_folds_have_the_same_share_of_each_class_within_one_row(y: list[int], k: int) -> None:
    parts = [validation for _, validation in folds(rows(y), k)]
    for label in set(y):
        counts = [int((part.y == label).sum()) for part in parts]
        assert max(counts) - min(counts) <= 1
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1


@given(labels, st.integers(1, 10))
def test_rows_keep_their_order_labels_and_weights_inside_a_fold(y: list[int], k: int) -> None:
    for part in (part for pair in folds(rows(y), k) for part in pair):
        assert numbers(part) == sorted(numbers(part))
        assert part.y.tolist() == [y[i] for i in numbers(part)]
        assert part.weight.tolist() == [i + 1 for i in numbers(part)]


@pytest.mark.parametrize(("n_rows", "n_folds"), [(0, 1), (1, 1), (1, 2), (4, 5)])
def test_too_small_a_segment_is_named_with_what_to_do(n_rows: int, n_folds: int) -> None:
    with pytest.raises(InputError, match=rf"'june' has {n_rows} row"):
        folds(rows([0] * n_rows), n_folds)


@pytest.mark.parametrize(("n_rows", "n_folds"), [(2, 1), (2, 2), (5, 5)])
def test_the_smallest_segment_that_can_be_split_is_split(n_rows: int, n_folds: int) -> None:
    for train, validation in folds(rows([0] * n_rows), n_folds):
        assert len(train) >= 1
        assert len(validation) >= 1


def test_join_puts_rows_in_order_under_the_last_name() -> None:
    one, two = rows([0, 1], "may"), rows([1, 1, 0], "june")
    both = join([one, two])
    assert both.name == "june"
    assert numbers(both) == [0, 1, 0, 1, 2]
    assert both.y.tolist() == [0, 1, 1, 1, 0]
    assert both.weight.tolist() == [1, 2, 1, 2, 3]


@given(labels, labels)
def test_join_undoes_cut(first: list[int], second: list[int]) -> None:
    whole = rows(first + second)
    codes = np.repeat([0, 1], [len(first), len(second)])
    history, current = cut(whole.X, whole.y, codes, ["may", "june"], whole.weight)
    again = join([*history, current])
    assert np.array_equal(again.X, whole.X)
    assert np.array_equal(again.y, whole.y)
    assert np.array_equal(again.weight, whole.weight)


@pytest.mark.parametrize(
    ("past", "present", "expected"),
    [([], [0, 1], 2), ([[4]], [0, 1], 5), ([[0], [1]], [2], 3), ([[0]], [0], 1)],
)
def test_classes_are_counted_by_the_highest_code_anywhere(
    past: list[list[int]], present: list[int], expected: int
) -> None:
    assert count_classes([rows(y) for y in past], rows(present)) == expected


@given(labels, st.integers(1, 70), st.integers(0, 9))
def test_a_sample_is_so_many_rows_of_the_segment_in_stream_order(
    y: list[int], n_rows: int, seed: int
) -> None:
    whole = rows(y)
    drawn = sample(whole, n_rows, np.random.default_rng(seed)).load()
    assert len(drawn) == min(n_rows, len(whole))
    assert drawn.name == "june"
    assert numbers(drawn) == sorted(numbers(drawn))
    assert drawn.y.tolist() == [y[i] for i in numbers(drawn)]
    assert drawn.weight.tolist() == [i + 1 for i in numbers(drawn)]


@given(labels, st.integers(0, 5))
def test_a_sample_of_all_rows_or_more_is_the_segment_itself(y: list[int], more: int) -> None:
    whole, rng = rows(y), np.random.default_rng(0)
    assert sample(whole, len(whole) + more, rng).load() is whole
    assert rng.bit_generator.state == np.random.default_rng(0).bit_generator.state


def test_a_sample_follows_from_its_generator() -> None:
    one, same, other = (
        numbers(sample(rows([0] * 60), 20, np.random.default_rng(seed)).load())
        for seed in (1, 1, 2)
    )
    assert one == same != other


def test_every_row_is_as_likely_to_be_sampled_as_any_other() -> None:
    rng = np.random.default_rng(0)
    drawn = [i for _ in range(2000) for i in numbers(sample(rows([0] * 10), 5, rng).load())]
    # 10,000 draws: 1000 of each row give or take 4 standard deviations of 30.
    assert np.abs(np.bincount(drawn, minlength=10) - 1000).max() < 120


def test_sampling_leaves_the_segment_as_it_was() -> None:
    whole = rows([0, 1, 0, 1])
    drawn = sample(whole, 3, np.random.default_rng(0)).load()
    drawn.X[:], drawn.y[:], drawn.weight[:] = -1, -1, -1
    assert numbers(whole) == [0, 1, 2, 3]
    assert whole.y.tolist() == [0, 1, 0, 1]


@given(
    st.lists(st.tuples(st.integers(1, 20), st.booleans()), min_size=1, max_size=5),
    st.integers(0, 99),
)
def test_gathering_picks_is_joining_what_they_load(
    wanted: list[tuple[int, bool]], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    picks = [Pick(rows([0] * n), rng.integers(n, size=3) if some else None) for n, some in wanted]
    gathered, parts = gather(picks), [pick.load() for pick in picks]
    assert gathered.name == parts[-1].name
    for name in ("X", "y", "weight"):
        expected = np.concatenate([getattr(part, name) for part in parts])
        assert np.array_equal(getattr(gathered, name), expected)
        assert getattr(gathered, name).dtype == expected.dtype
