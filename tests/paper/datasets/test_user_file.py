"""A stream of one's own: what is taken, and what is refused with a reason."""

from __future__ import annotations

import datetime as dt
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.errors import InputError
from driftquilt.paper.datasets import Stream, read_stream
from driftquilt.paper.protocol import evaluations


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mine.csv"


def from_columns(folder: Path, **columns: Any) -> Stream:
    path = folder / "mine.parquet"
    pq.write_table(pa.table(columns), path)
    return read_stream(path)


def test_csv_and_parquet_give_the_same_stream(path: Path) -> None:
    path.write_text("a,label,b,segment\n1,x,2.5,9\n3,y,4,7\n5,x,6,9\n")
    table = {"a": [1, 3, 5], "label": ["x", "y", "x"], "b": [2.5, 4, 6], "segment": [9, 7, 9]}
    for stream in (read_stream(path), from_columns(path.parent, **table)):
        assert stream.name == "mine"
        assert stream.features.tolist() == [[1, 2.5], [5, 6], [3, 4]]
        assert stream.labels.tolist() == [0, 0, 1]
        assert stream.segments.tolist() == [0, 0, 1]
        assert stream.feature_names == ("a", "b")
        assert stream.class_names == ("x", "y")
        assert stream.segment_names == ("9", "7")
        assert stream.labels.dtype == stream.segments.dtype == np.int64
        assert stream.drift_points is None
        assert not stream.verify()


def test_columns_and_share_may_have_other_names_and_values(path: Path) -> None:
    path.write_text("a,month,kind\n1,5,x\n2,6,y\n")
    stream = read_stream(str(path), label="kind", segment="month", current_share=0.3)
    assert stream.current_share == 0.3
    assert stream.feature_names == ("a",)


def test_a_stream_of_ones_own_can_be_evaluated(path: Path) -> None:
    rows = [f"{i},{i % 7},{'yes' if i % 3 else 'no'},{i // 40}" for i in range(120)]
    path.write_text("\n".join(["a,b,label,segment", *rows]))
    seen = [(len(e.current), len(e.test)) for e in evaluations(read_stream(path))]
    assert seen == [(4, 36)] * 3


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=40))
def test_segments_count_by_first_appearance_and_rows_keep_their_order(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows = np.arange(len(names))
        stream = from_columns(Path(folder), row=rows, label=rows % 2, segment=names)
    assert stream.segment_names == tuple(dict.fromkeys(names))
    assert [stream.segment_names[s] for s in stream.segments] == [
        names[int(row)] for row in stream.features[:, 0]
    ]
    for segment in range(stream.n_segments):
        assert (np.diff(stream.features[stream.segments == segment, 0]) > 0).all()


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([10, 9, 10], ("9", "10")),
        ([2.0, -1.0, 2.0], ("-1.0", "2.0")),
        ([True, False, True], ("False", "True")),
        (pa.array(["b", "a", "b"]).dictionary_encode(), ("a", "b")),
        (pa.array(["b", "a", "b"], pa.large_string()), ("a", "b")),
        ([Decimal(2), Decimal(1), Decimal(2)], ("1.0", "2.0")),
        (
            [dt.date(2024, 2, 1), dt.date(2024, 1, 1), dt.date(2024, 2, 1)],
            ("2024-01-01", "2024-02-01"),
        ),
    ],
)
def test_labels_become_codes_in_sorted_order(
    tmp_path: Path, labels: Any, classes: tuple[str, ...]
) -> None:
    stream = from_columns(tmp_path, a=[1, 2, 3], label=labels, segment=[0, 0, 0])
    assert stream.labels.tolist() == [1, 0, 1]
    assert stream.class_names == classes


@pytest.mark.parametrize(
    "values",
    [
        [True, False],
        pa.array([1, 0], pa.uint8()),
        [Decimal("1.0"), Decimal(0)],
        pa.array([1, 0], pa.float16()),
    ],
)
def test_features_of_any_numeric_kind_become_float64(tmp_path: Path, values: Any) -> None:
    stream = from_columns(tmp_path, a=values, label=[0, 1], segment=[0, 0])
    assert stream.features.dtype == np.float64
    assert stream.features.tolist() == [[1.0], [0.0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("a,label,segment\n", "no rows"),
        ("a,label,segment\n1,2\n", "line 2 has 2 fields"),
        ("a,label,segment\n1,x,1\n-inf,y,1\n", "column 'a'.*row 1.*-inf"),
        ("a,label,segment\n1,x,1\n2,,1\n", "column 'label' is missing in row 1"),
        ("a,label,segment\n1,x,\n2,x,1\n", "column 'segment' is missing in row 0"),
        ("a,label,segment\n1,,1\n2,,1\n", "column 'label' is missing in row 0"),
        ("a,b,c,label,segment\n1,q,,x,1\n2,r,,y,1\n", "column 'c' has no value in any row; drop"),
        ("a,a,label,segment\n1,1,x,1\n", "several columns named 'a'"),
        ("label,segment\nx,1\n", "no column but 'label' and 'segment'; add features"),
        ("a,lable,segment\n1,x,1\n", "no column 'label'; did you mean 'lable'"),
        ("a,label,segment\n1,0.5,1\n", "continuous"),
    ],
)
def test_a_table_that_is_no_stream_is_refused(path: Path, text: str, message: str) -> None:
    path.write_text(text)
    with pytest.raises(InputError, match=f"mine.csv.*{message}"):
        read_stream(path)


@pytest.mark.parametrize("values", [[[1], [2]], [b"a", b"b"], [{"a": 1}, {"a": 2}]])
@pytest.mark.parametrize("column", ["a", "label"])
def test_nested_and_binary_columns_are_refused(
    tmp_path: Path, column: str, values: list[Any]
) -> None:
    columns = {"a": [1, 2], "label": [1, 2], "segment": [0, 0], column: values}
    with pytest.raises(InputError, match=r"mine.parquet"):
        from_columns(tmp_path, **columns)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.csv"):
        read_stream(tmp_path / "nowhere.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_stream(tmp_path)


@pytest.mark.parametrize("share", [0, 1, -0.1, float("nan"), "0.1"])
def test_a_share_outside_of_zero_to_one_is_refused(path: Path, share: Any) -> None:
    with pytest.raises(InputError, match="current_share"):
        read_stream(path, current_share=share)


def test_one_column_cannot_be_both_label_and_segment(path: Path) -> None:
    with pytest.raises(InputError, match="'label'"):
        read_stream(path, segment="label")


TEXT = """since,seen at,city,paid,visits,label,segment
1970-01-03,1970-01-02 12:00:00,Rome,true,3,yes,may
,,,,,no,may
1970-01-01,1970-01-01 06:00:00,Oslo,false,1.5,no,june
"""


def test_text_dates_booleans_and_gaps_are_taken_from_csv_and_from_pandas(path: Path) -> None:
    path.write_text(TEXT)
    frame = pd.DataFrame(
        {
            "since": [dt.date(1970, 1, 3), None, dt.date(1970, 1, 1)],
            "seen at": pd.to_datetime(["1970-01-02 12:00", None, "1970-01-01 06:00"]),
            "city": pd.Categorical(["Rome", None, "Oslo"]),
            "paid": pd.array([True, None, False], dtype="boolean"),
            "visits": [Decimal("3.0"), None, Decimal("1.5")],
            "label": ["yes", "no", "no"],
            "segment": ["may", "may", "june"],
        }
    )
    frame.to_parquet(path.with_suffix(".parquet"))
    one, other = read_stream(path), read_stream(path.with_suffix(".parquet"))
    assert one.frame is not None
    assert one.frame.texts["city"].tolist() == ["Rome", None, "Oslo"]
    assert {"seen at (time of day, sin)", "city", "paid", "visits"} < set(one.feature_names)
    assert one.checksum() == other.checksum()


def test_one_mark_among_many_numbers_is_refused_with_its_row(tmp_path: Path) -> None:
    rows = {"label": [0, 1] * 16, "segment": [0] * 32}
    numbers = [str(number / 2) for number in range(30)]
    with pytest.raises(InputError, match=r"'a' is numbers, but '\?' in row 30"):
        from_columns(tmp_path, a=[*numbers, "?", "?"], **rows)
    assert from_columns(tmp_path, a=[*numbers, "V27", "E909"], **rows).frame is not None


def test_the_checksum_knows_the_text(path: Path) -> None:
    sums = set()
    for first, second in (("a", "b"), ("a", "c"), ("0", "1")):
        path.write_text(f"x,label,segment\n{first},0,0\n{second},1,0\n")
        sums.add(read_stream(path).checksum())
    assert len(sums) == 3
