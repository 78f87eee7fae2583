"""Ratios, from values whose ratios are known."""

from __future__ import annotations

import pytest
from benchmarks.cost.ratios import (
    drift_means,
    geometric_mean,
    growth_ratios,
    kernel_ratios,
    online_ratios,
    torch_ratios,
)

from tests.benchmarks.values import BENCH, DRIFTS


def test_a_stream_counts_by_the_mean_over_its_segments() -> None:
    mean = drift_means(DRIFTS)["sea"]["default"]
    assert (mean.cpu_seconds, mean.wall_seconds) == (1.0, 2.0)
    assert mean.accuracy == pytest.approx(0.8)


def test_the_published_procedure_is_compared_stream_by_stream() -> None:
    assert torch_ratios(DRIFTS) == {"default": {"sine": 4.0, "sea": 8.0}}


def test_without_the_published_procedure_there_is_no_ratio() -> None:
    assert torch_ratios(cost for cost in DRIFTS if cost.method != "torch") == {}


def test_streams_are_summed_up_by_the_geometric_mean() -> None:
    assert geometric_mean([4.0, 9.0]) == pytest.approx(6.0)
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1.0)


def test_kernels_are_multiples_of_their_products() -> None:
    assert kernel_ratios(BENCH.kernels[0]) == pytest.approx((1.5, 3.0))


def test_sizes_are_multiples_of_the_smallest_wherever_it_stands() -> None:
    assert growth_ratios(BENCH.growth) == [(15.0, 2.0), (1.0, 1.0)]
    assert growth_ratios([]) == []


def test_the_net_is_a_multiple_of_each_tree() -> None:
    assert online_ratios(BENCH.online) == {"sine": {"HAT": 10.0}}
    assert online_ratios(BENCH.online[1:]) == {}
