"""What the columns of a user's file become, and which are refused with a reason."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.errors import InputError
from driftquilt.paper.datasets import Stream, read_stream
from driftquilt.paper.datasets.columns import read_features

TEXT = """since,seen at,city,paid,visits,label,segment
1970-01-03,1970-01-02 12:00:00,Rome,true,3,yes,may
,,,,,no,may
1970-01-01,1970-01-01 06:00:00,Oslo,false,1.5,no,june
"""

BECOMES = [[2, 1.5, 1, 1, 3], [np.nan] * 5, [0, 0.25, 0, 0, 1.5]]


def read(values: Any) -> tuple[list[float], tuple[str, ...] | None]:
    """One column as it comes out, and its categories."""
    matrix, categories = read_features(Path("mine.csv"), pa.table({"a": values}), ["a"])
    return matrix[:, 0].tolist(), categories.get("a")


def check_mixed(stream: Stream) -> None:
    np.testing.assert_array_equal(stream.features, BECOMES)
    assert stream.categories == {"city": ("Oslo", "Rome")}
    assert stream.feature_names == ("since", "seen at", "city", "paid", "visits")


def test_text_dates_booleans_and_gaps_of_a_csv_file_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(TEXT)
    check_mixed(read_stream(path))


def test_a_parquet_file_of_pandas_gives_the_same(tmp_path: Path) -> None:
    path = tmp_path / "mine.parquet"
    frame = pd.DataFrame(
        {
            "since": [dt.date(1970, 1, 3), None, dt.date(1970, 1, 1)],
            "seen at": pd.to_datetime(["1970-01-02 12:00", None, "1970-01-01 06:00"], utc=True),
            "city": pd.Categorical(["Rome", None, "Oslo"]),
            "paid": pd.array([True, None, False], dtype="boolean"),
            "visits": [Decimal("3.0"), None, Decimal("1.5")],
            "label": ["yes", "no", "no"],
            "segment": ["may", "may", "june"],
        }
    )
    frame.to_parquet(path)
    check_mixed(read_stream(path))


@pytest.mark.parametrize(
    ("values", "days"),
    [
        (pa.array([1, None], pa.date32()), 1),
        (pa.array([86_400_000, None], pa.date64()), 1),
        (pa.array([43_200, None], pa.timestamp("s")), 0.5),
        (pa.array([43_200 * 10**9, None], pa.timestamp("ns", "Europe/Oslo")), 0.5),
        (pa.array([21_600, None], pa.time32("s")), 0.25),
        (pa.array([21_600 * 10**6, None], pa.time64("us")), 0.25),
        (pa.array([172_800 * 1000, None], pa.duration("ms")), 2),
        (pa.array([1, None], pa.date32()).dictionary_encode(), 1),
    ],
)
def test_dates_and_times_are_days(values: Any, days: float) -> None:
    found, categories = read(values)
    assert found == [days, pytest.approx(np.nan, nan_ok=True)]
    assert categories is None


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_text_of_any_arrow_type_is_codes(kind: Any) -> None:
    codes, categories = read(pa.array(["b", "a", None, "b"], kind))
    assert codes == [1, 0, pytest.approx(np.nan, nan_ok=True), 1]
    assert categories == ("a", "b")


@given(
    st.lists(st.one_of(st.none(), st.sampled_from("abc"), st.text()), min_size=1).filter(
        lambda texts: any(text is not None for text in texts)
    )
)
def test_codes_lead_back_to_the_text(texts: list[str | None]) -> None:
    halves = [pa.array(texts[:3], pa.string()), pa.array(texts[3:], pa.string())]
    for values in (pa.chunked_array(halves), pa.array(texts, pa.string()).dictionary_encode()):
        codes, categories = read(values)
        assert categories is not None
        assert list(categories) == sorted({text for text in texts if text is not None})
        assert [None if np.isnan(code) else categories[int(code)] for code in codes] == texts


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1], [2]], "column 'a' holds list<.*>; turn it into numbers, UTF-8 text or dates, or"),
        ([b"\xe9", b"a"], "column 'a' holds binary; turn it into numbers, UTF-8 text or"),
        ([1.0, float("inf")], "column 'a' is inf in row 1 .*; leave the cell empty or rescale"),
        ([1e39, 2.0], r"column 'a' is 1e\+39 in row 0 .*which float32 cannot hold"),
        ([None, None], "column 'a' has no value in any row; drop it"),
        ([float("nan")] * 2, "column 'a' has no value in any row; drop it"),
        (pa.array([None, None], pa.string()), "column 'a' has no value in any row; drop it"),
    ],
)
def test_a_column_that_cannot_be_used_is_named_with_what_to_do(values: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"mine.csv: {message}"):
        read(values)


def test_one_mark_among_many_numbers_is_refused_with_its_row() -> None:
    numbers = [str(number / 2) for number in range(30)]
    with pytest.raises(InputError, match=r"is numbers, but '\?' in row 30 .*leave the cell empty"):
        read([*numbers, "?", "?"])


def test_numbers_that_name_things_may_stand_among_words() -> None:
    assert read(["1", "2", "G"])[1] == ("1", "2", "G")  # floors
    codes = [str(number) for number in range(30)]
    assert read([*codes, "V27", "E909"])[1] == tuple(sorted([*codes, "V27", "E909"]))
    assert read(codes)[1] == tuple(sorted(codes))  # text in a typed file, so meant as text


def test_the_checksum_knows_what_codes_stand_for(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    sums = set()
    for first, second in (("a", "b"), ("a", "c"), ("0", "1")):
        path.write_text(f"x,label,segment\n{first},0,0\n{second},1,0\n")
        sums.add(read_stream(path).checksum())
    assert len(sums) == 3
