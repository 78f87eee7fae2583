"""Decisions about other models than the net: boosters, your own, and the better of two."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from catboost import CatBoostClassifier  # type: ignore[import-untyped]
from sklearn.svm import LinearSVC

from driftquilt import InputError, QuiltClassifier, QuiltSelector
from driftquilt.decision import Decision, by_time, decide, deciding, read_decision, write_decision
from driftquilt.report.html import render
from driftquilt.report.page import page_of_decision
from tests.decision.tables import shop_table, tiny

TABLE = shop_table()
MONTHS = by_time(TABLE, "when", "1mo")


def choose(table: pa.Table = TABLE, **settings: Any) -> Decision:
    given: dict[str, Any] = {"drop": ["order"], "estimator": tiny(), **settings}
    return decide(table, "bought", MONTHS, **given)


@pytest.mark.parametrize("kind", ["lightgbm", "xgboost", "hgb"])
def test_a_booster_is_compared_explained_and_written(kind: str, tmp_path: Path) -> None:
    decision = choose(model=kind, scoring="f1")
    assert decision.kind == kind
    assert [method.name for method in decision.methods] == ["Quilt", "all data", "current only"]
    assert all(method.accuracy is not None and method.validation for method in decision.methods)
    assert 0 < (decision.threshold or 0) < 1
    assert sum(one.share for one in decision.sets) == pytest.approx(1)
    assert decision.bounds
    assert {c.name for c in decision.columns if c.used} >= {"when", "channel", "member"}
    write_decision(decision, TABLE, tmp_path, render(page_of_decision(decision)))
    again = read_decision(tmp_path)
    assert json.dumps(again.to_json()) == json.dumps(decision.to_json())
    assert isinstance(again.model, QuiltSelector)
    assert isinstance(decision.model, QuiltSelector)
    rows = TABLE.select([*decision.model.feature_names_in_])
    assert np.array_equal(again.model.predict(rows), decision.model.predict(rows))
    assert kind in (tmp_path / "report.html").read_text()
    weights = set(pq.read_table(tmp_path / "selected.parquet")["driftquilt_weight"].to_pylist())
    assert 1.0 in weights


def test_a_model_of_ones_own() -> None:
    catboost = CatBoostClassifier(iterations=5, verbose=False, allow_writing_files=False)
    decision = choose(estimator=QuiltSelector(catboost, quilt=tiny()))
    assert decision.kind == "catboost"
    assert decision.methods[0].n_rows > 0


def test_the_better_of_two_is_chosen_and_said() -> None:
    decision = choose(model="auto")
    assert set(decision.choice) == {"net", "hgb"}
    assert decision.kind in decision.choice
    assert any(f"The model is {decision.kind}" in note for note in decision.warnings)
    assert Decision.from_json(decision.to_json()).choice == pytest.approx(decision.choice)
    if decision.kind == "net":  # then it is the very model that "net" gives
        plain = choose().model
        assert isinstance(plain, QuiltClassifier)
        assert isinstance(decision.model, QuiltClassifier)
        rows = TABLE.select([*plain.feature_names_in_])
        assert np.array_equal(plain.predict_proba(rows), decision.model.predict_proba(rows))


def test_of_too_many_rows_some_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deciding, "MAX_VALUES", 6 * 200)
    decision = choose(model="lightgbm")
    assert any("holds its rows in memory" in note for note in decision.warnings)
    assert sum(decision.selection.n_rows) + decision.selection.n_current <= 200


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"model": "lightgmb"}, "lightgmb"),
        ({"estimator": QuiltSelector(LinearSVC())}, "LinearSVC"),
        ({"estimator": QuiltSelector(LinearSVC()), "model": "hgb"}, "QuiltClassifier"),
    ],
)
def test_what_is_no_model_is_refused(settings: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word):
        choose(**settings)
