"""A classifier takes dates as features, and speaks of them as the caller does."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from driftquilt import QuiltClassifier
from driftquilt.errors import InputError

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

N = 400
RNG = np.random.default_rng(0)
WHEN = [dt.datetime(2024, 1, 1) + dt.timedelta(minutes=int(m)) for m in RNG.integers(10**6, size=N)]
Y = np.array(["night" if when.hour < 12 else "day" for when in WHEN])
SEGMENTS = np.repeat([1, 2], N // 2)
TABLE: dict[str, Any] = {"n": RNG.normal(size=N), "when": WHEN}
NEW = [dt.datetime(2030, 8, 1, 3), dt.datetime(2030, 8, 2, 15)]


def quilt(**settings: Any) -> QuiltClassifier:
    small = {"hidden_units": 16, "max_epochs": 30, "random_state": 0}
    return QuiltClassifier(**{**small, **settings})


@pytest.fixture(scope="module")
def clf() -> QuiltClassifier:
    return quilt().fit(TABLE, Y, segments=SEGMENTS)


def test_the_hour_is_learned_and_holds_in_years_never_seen(clf: QuiltClassifier) -> None:
    assert clf.predict({"n": [0.0, 0.0], "when": NEW}).tolist() == ["night", "day"]


def test_features_are_the_columns_that_were_given(clf: QuiltClassifier) -> None:
    assert clf.n_features_in_ == 2
    assert clf.feature_names_in_.tolist() == ["n", "when"]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_every_library_gives_the_same_model(clf: QuiltClassifier, make: Any) -> None:
    other = quilt().fit(make(TABLE), Y, segments=SEGMENTS)
    assert other.predict_proba(make(TABLE)).tobytes() == clf.predict_proba(TABLE).tobytes()


def test_a_missing_date_column_is_named(clf: QuiltClassifier) -> None:
    with pytest.raises(InputError, match="X lacks columns that were there at fit: 'when'; add"):
        clf.predict({"n": [0.0]})


def test_a_date_that_is_missing_or_all_missing_is_filled_in(clf: QuiltClassifier) -> None:
    some = clf.predict_proba({"n": [0.0, 0.0], "when": [NEW[0], None]})[1:]
    assert some.tobytes() == clf.predict_proba({"n": [0.0], "when": [None]}).tobytes()


def test_batches_with_dates_give_the_model_of_all_rows(clf: QuiltClassifier) -> None:
    batches = quilt()
    for rows in (slice(0, N // 2), slice(N // 2, N)):
        part = {name: values[rows] for name, values in TABLE.items()}
        batches.partial_fit(part, Y[rows], segments=SEGMENTS[rows])
    assert batches.predict_proba(TABLE).tobytes() == clf.predict_proba(TABLE).tobytes()


def test_a_training_starts_from_the_previous_weights_with_dates() -> None:
    clf = quilt(init="previous", max_epochs=2)
    first = clf.fit(TABLE, Y, segments=SEGMENTS).encoder_
    assert clf.fit(TABLE, Y, segments=SEGMENTS).encoder_ is first


def test_a_model_with_dates_comes_back_from_its_file(clf: QuiltClassifier, tmp_path: Path) -> None:
    clf.save(tmp_path / "model")
    loaded = QuiltClassifier.load(tmp_path / "model")
    assert loaded.predict_proba(TABLE).tobytes() == clf.predict_proba(TABLE).tobytes()
    assert loaded.encoder_ is not None
    assert loaded.encoder_.names_in == ("n", "when")


def test_a_history_of_dates_that_stays_in_place_gives_the_model_of_the_loaded_one() -> None:
    few = {"score_rows": 16, "epoch_rows": 32, "max_epochs": 5}
    lazy = quilt(**few).fit(pa.table(TABLE), Y, segments=SEGMENTS)
    loaded = quilt(**few).fit(TABLE, Y, segments=SEGMENTS)
    assert lazy.predict_proba(TABLE).tobytes() == loaded.predict_proba(TABLE).tobytes()


def test_the_name_of_a_column_in_place_of_segments_is_refused_with_what_to_write() -> None:
    with pytest.raises(
        InputError, match=r"segments is the text 'month'.*segments=table\['month'\]"
    ):
        quilt().fit(TABLE, Y, segments="month")
