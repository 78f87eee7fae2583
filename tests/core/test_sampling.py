"""Samples are drawn fairly, never leave out the present, and by default there are none."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.core.sampling import EVERY_ROW, Sampling
from driftquilt.core.segment import Segment


def rows(name: str, n: int) -> Segment:
    """Rows whose only feature, code and weight are their number."""
    numbers = np.arange(n)
    return Segment(name, numbers[:, None].astype(np.float32), numbers, numbers + 1.0)


def history(sizes: Sequence[int]) -> list[Segment]:
    return [rows(f"s{k}", n) for k, n in enumerate(sizes)]


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def is_part_of(part: Segment, whole: Segment) -> bool:
    rows_stay_together = np.array_equal(part.X[:, 0], part.y) and np.array_equal(
        part.weight, part.y + 1
    )
    return part.name == whole.name and rows_stay_together and set(part.y) <= set(whole.y)


sizes = st.lists(st.integers(1, 60), max_size=6)
seeds = st.integers(0, 99)


@given(sizes, seeds)
def test_the_full_sampling_hands_on_the_very_same_segments_and_draws_nothing(
    sizes: list[int], seed: int
) -> None:
    past, current, rng = history(sizes), rows("now", 7), generator(seed)
    assert EVERY_ROW.to_score(past, rng) is past
    train = EVERY_ROW.to_train(past, current, rng)
    assert [id(pick.load()) for pick in train] == [id(segment) for segment in (*past, current)]
    assert rng.bit_generator.state == generator(seed).bit_generator.state


@given(sizes, st.integers(1, 70), seeds)
def test_every_segment_is_scored_on_at_most_so_many_of_its_rows(
    sizes: list[int], score_rows: int, seed: int
) -> None:
    past = history(sizes)
    looked_at = Sampling(score_rows=score_rows).to_score(past, generator(seed))
    assert [len(part) for part in looked_at] == [min(n, score_rows) for n in sizes]
    assert all(is_part_of(part, whole) for part, whole in zip(looked_at, past, strict=True))


@given(sizes, st.integers(1, 60), st.integers(1, 300), seeds)
def test_an_epoch_trains_on_parts_of_the_selected_segments_and_of_the_current_one(
    sizes: list[int], n_current: int, epoch_rows: int, seed: int
) -> None:
    selected, current = history(sizes), rows("now", n_current)
    *past, last = Sampling(epoch_rows=epoch_rows).to_train(selected, current, generator(seed))
    assert is_part_of(last.load(), current)
    assert (last.load() is current) == (len(last) == n_current)
    assert all(len(part) for part in past)
    by_name = {segment.name: segment for segment in selected}
    assert [part.name for part in past] == [
        name for name in by_name if name in {p.name for p in past}
    ]
    assert all(is_part_of(part.load(), by_name[part.name]) for part in past)
    assert all(len(part) <= len(by_name[part.name]) for part in past)


@given(sizes, st.integers(0, 50))
def test_all_rows_are_trained_on_where_there_is_room_for_them(sizes: list[int], more: int) -> None:
    selected, current = history(sizes), rows("now", 9)
    sampling = Sampling(epoch_rows=sum(sizes) + len(current) + more)
    train = sampling.to_train(selected, current, generator())
    assert [id(pick.load()) for pick in train] == [id(segment) for segment in (*selected, current)]


@given(sizes, st.integers(1, 60), st.integers(1, 300), seeds)
def test_the_current_rows_take_half_an_epoch_if_they_can_and_more_only_where_the_past_is_small(
    sizes: list[int], n_current: int, epoch_rows: int, seed: int
) -> None:
    current, n_past = rows("now", n_current), sum(sizes)
    *_, last = Sampling(epoch_rows=epoch_rows).to_train(history(sizes), current, generator(seed))
    assert len(last) >= min(n_current, epoch_rows / 2)
    if len(last) > epoch_rows / 2 + 1:
        assert len(last) in (n_current, epoch_rows - n_past)


def test_drawn_evenly_current_rows_get_their_share_and_no_more() -> None:
    past, current = [rows("may", 9000)], rows("june", 1000)
    drawn = [
        len(Sampling(epoch_rows=500).to_train(past, current, generator(k), evenly=True)[-1])
        for k in range(200)
    ]
    assert 48 < np.mean(drawn) < 52  # a tenth of the epoch
    assert len(Sampling(epoch_rows=500).to_train(past, current, generator())[-1]) == 250


def test_a_long_current_segment_leaves_room_for_the_past_and_is_drawn_anew() -> None:
    past, current, sampling = history([1000]), rows("now", 5000), Sampling(epoch_rows=100)
    drawn = [sampling.to_train(past, current, generator(seed)) for seed in range(50)]
    assert np.mean([len(part) for part, _ in drawn]) == pytest.approx(50, abs=3)
    assert {len(last) for _, last in drawn} == {50}
    assert len({last.load().y.tobytes() for _, last in drawn}) > 40


def test_an_epoch_has_as_many_rows_as_asked_for_in_proportion_to_the_segments() -> None:
    past, current, sampling = history([1000, 200, 800]), rows("now", 50), Sampling(epoch_rows=450)
    drawn = [
        [len(part) for part in sampling.to_train(past, current, generator(seed))]
        for seed in range(300)
    ]
    # 400 rows of 2000: a fifth. The mean over 300 seeds is known to within 1 row or so.
    assert np.mean(drawn, axis=0) == pytest.approx([200, 40, 160, 50], abs=3)
    assert len({tuple(row) for row in drawn}) > 100


def test_a_segment_of_which_no_row_is_drawn_is_left_out() -> None:
    past, current, sampling = history([2, 500]), rows("now", 10), Sampling(epoch_rows=30)
    names = [
        tuple(str(part.name) for part in sampling.to_train(past, current, generator(seed)))
        for seed in range(200)
    ]
    assert set(names) == {("s0", "s1", "now"), ("s1", "now")}
    # A share of 20 in 502, twice.
    assert names.count(("s0", "s1", "now")) / 200 == pytest.approx(
        1 - (1 - 20 / 502) ** 2, abs=0.06
    )


def test_of_hundreds_of_segments_fewer_rows_each_are_scored_and_some_trained_on() -> None:
    past, current = history([300] * 500), rows("now", 10)
    sampling = Sampling(score_rows=256, epoch_rows=2000)
    assert {len(part) for part in sampling.to_score(past, generator())} == {32768 // 500}
    assert {len(part) for part in sampling.to_score(past[:128], generator())} == {256}
    drawn = [sampling.to_train(past, current, generator(seed)) for seed in range(20)]
    assert {len(parts) for parts in drawn} == {64 + 1}
    assert np.mean([sum(map(len, parts)) for parts in drawn]) == pytest.approx(2000, rel=0.02)
    assert len({part.name for parts in drawn for part in parts}) > 400
    small = history([3] * 500)
    assert len(sampling.to_train(small, current, generator())) == 500 + 1


def test_samples_follow_from_their_generator_and_are_drawn_anew() -> None:
    past, current = history([300, 300]), rows("now", 10)
    sampling, rng = Sampling(score_rows=20, epoch_rows=60), generator()

    def draw(rng: np.random.Generator) -> list[list[int]]:
        drawn = [*sampling.to_score(past, rng)]
        drawn += [pick.load() for pick in sampling.to_train(past, current, rng)]
        return [segment.y.tolist() for segment in drawn]

    first, second = draw(rng), draw(rng)
    assert first == draw(generator())
    assert all(one != other for one, other in zip(first[:-1], second[:-1], strict=True))


@given(st.floats(0, 0.999))
def test_the_average_takes_over_the_first_epoch_and_then_moves_ever_less(averaging: float) -> None:
    sampling = Sampling(averaging=averaging)
    shares = [sampling.share_of_epoch(number) for number in range(1, 3001)]
    assert shares[0] == 1
    assert all(later <= earlier for earlier, later in pairwise(shares))
    assert min(shares) == shares[-1] == 1 - averaging


def test_without_averaging_every_epoch_counts_for_all() -> None:
    assert [EVERY_ROW.share_of_epoch(number) for number in (1, 2, 50)] == [1, 1, 1]


def test_early_epochs_count_for_more_so_that_the_start_is_forgotten() -> None:
    shares = [Sampling(averaging=0.8).share_of_epoch(number) for number in range(1, 11)]
    expected = [1, 1 / 2, 2 / 5, 1 / 3, 2 / 7, 1 / 4, 2 / 9, 0.2, 0.2, 0.2]
    assert shares == pytest.approx(expected)


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=6), st.integers(1, 20), st.integers(1, 40),
    st.booleans(),
)  # fmt: skip
def test_of_long_segments_rows_at_even_distances_are_held(
    counts: list[int], score_rows: int, epoch_rows: int, mixed: bool
) -> None:
    codes = np.repeat(np.arange(len(counts)), counts)
    if mixed:
        codes = generator(1).permutation(codes)
    sampling = Sampling(score_rows=score_rows, epoch_rows=epoch_rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("driftquilt.core.sampling._MAX_PAST", 10)
        patch.setattr("driftquilt.core.sampling._MAX_CURRENT", 30)
        held = sampling.rows_to_keep(codes, len(counts), width=3)
    most = [max(10, score_rows)] * (len(counts) - 1) + [max(30, epoch_rows)]
    if held is None:
        assert all(n <= k for n, k in zip(counts, most, strict=True))
        return
    assert len(np.unique(held)) == len(held)
    for number, (n, k) in enumerate(zip(counts, most, strict=True)):
        rows = np.flatnonzero(codes == number)
        places = np.searchsorted(rows, held[codes[held] == number])
        assert len(places) == min(n, k)
        assert set(np.diff(places).tolist()) <= {n // max(len(places), 1), n // max(k, 1) + 1}


def test_all_rows_are_held_where_every_epoch_looks_at_all_of_them() -> None:
    codes = np.repeat([0, 1], 100_000)
    assert EVERY_ROW.rows_to_keep(codes, 2, 3) is None
    assert Sampling(score_rows=5).rows_to_keep(codes, 2, 3) is None
    held = Sampling(score_rows=5, epoch_rows=9).rows_to_keep(codes, 2, 3)
    assert held is not None
    assert np.bincount(codes[held]).tolist() == [8192, 65536]


def test_wide_rows_are_held_in_smaller_numbers() -> None:
    codes, sampling = np.repeat(np.arange(40), 3000), Sampling(score_rows=256, epoch_rows=2048)
    held = sampling.rows_to_keep(codes, 40, 5000)
    assert held is not None
    assert np.bincount(codes[held]).tolist() == [335] * 39 + [3000]


def test_at_most_two_epochs_of_rows_validate() -> None:
    rest = rows("now", 1000)
    assert Sampling(epoch_rows=500).to_validate(rest) is rest
    assert EVERY_ROW.to_validate(rest) is rest
    some = Sampling(epoch_rows=50).to_validate(rest)
    assert some.y.tolist() == rest.y[::10].tolist()
