"""A stream scores its last rows by a metric, and a restart has the same score to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import f1_score, log_loss, roc_auc_score

from driftquilt.errors import InputError
from driftquilt.quilt.metrics import find_metric
from driftquilt.store.memory import MemoryStore
from driftquilt.stream import QuiltStream
from driftquilt.stream import recent as recent_module
from driftquilt.stream.recent import RecentRows
from tests.stream.streams import estimator, hasty, learn, rows, start

ROWS = rows(240)
COSTS = {("yes", "no"): 5.0, ("no", "yes"): 1.0, ("later", "no"): 9.0}


def answers(n_rows: int) -> tuple[Any, Any]:
    """Labels of all rows but the first, and the probability of "yes" before each was learned."""
    stream, chances = start(), []
    for x, y in ROWS[:n_rows]:
        chances.append(stream.predict_proba_one(x).get("yes", 0.0))
        stream.learn_one(x, y)
    return np.array([y == "yes" for _, y in ROWS[1:n_rows]]), np.array(chances[1:])


@pytest.mark.parametrize(
    ("scoring", "expected"),
    [
        ("roc_auc", roc_auc_score),
        ("log_loss", lambda y, p: log_loss(y, np.clip(p, 1e-7, 1 - 1e-7))),
        ("f1", lambda y, p: f1_score(y, p > 0.5)),
        (COSTS, lambda y, p: np.mean(5 * (y & (p < 0.5)) + (~y & (p > 0.5)))),
    ],
    ids=["roc_auc", "log_loss", "f1", "costs"],
)
def test_the_score_is_that_of_the_rows_as_they_were_answered(scoring: Any, expected: Any) -> None:
    status = learn(start(scoring=scoring), ROWS).status()
    y, p = answers(len(ROWS))
    assert status.score == pytest.approx(expected(y, p), abs=1e-5)
    assert status.to_json()["metric"] == find_metric(scoring).name
    assert status.to_json()["score"] == round(status.score or 0.0, 6)
    assert f"recent {find_metric(scoring).name} {status.score:.3f}" in str(status)


def test_only_the_last_rows_count_and_classes_may_come_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recent_module, "RECENT", 4)
    recent = RecentRows()
    for code, answer in [
        (1, [1.0]),
        (0, [0.9, 0.1]),
        (1, [0.2, 0.8]),
        (2, [0.5, 0.5]),
        (0, [1, 0]),
    ]:
        recent.add(code, np.array(answer, dtype=np.float32))
    window = recent.freeze()
    assert window.codes.tolist() == [0, 1, 2, 0]
    assert window.score(find_metric("accuracy"), ["b", "a", "c"]) == 0.75
    again = RecentRows()
    again.unpack(recent.pack())
    assert again.freeze().chances.tobytes() == window.chances.tobytes()


def test_a_metric_that_is_not_defined_is_none() -> None:
    stream = start(scoring="roc_auc")
    assert stream.status().score is None
    for _ in range(5):
        stream.learn_one({"a": 1.0}, "no")
    assert stream.status().score is None
    assert stream.status().to_json()["score"] is None
    assert "roc_auc" not in str(stream.status())


def test_without_a_metric_there_is_none_and_nothing_is_kept() -> None:
    store = MemoryStore()
    stream = learn(start(store), ROWS[:60])
    status = stream.status()
    assert (status.metric, status.score, status.recent) == (None, None, None)
    stream._engine.checkpoint()
    assert not any(b"answered." in store.model(model.number)[0] for model in store.models)


@pytest.mark.parametrize("closed", [True, False])
def test_a_restart_has_the_same_score_to_the_bit(tmp_path: Path, closed: bool) -> None:
    store = hasty(tmp_path)
    stream = learn(start(store, scoring=COSTS, checkpoint_rows=50), ROWS[:130])
    expected = learn(start(scoring=COSTS), ROWS).status()
    stream.close(discard=not closed)
    with QuiltStream.open(hasty(tmp_path)) as again:
        status = learn(again, ROWS[130:]).status()
    assert status.recent is not None
    assert expected.recent is not None
    assert status.recent.chances.tobytes() == expected.recent.chances.tobytes()
    assert status.recent.codes.tobytes() == expected.recent.codes.tobytes()
    assert status.score == expected.score


def test_a_store_from_before_there_were_metrics_opens_without_one() -> None:
    store = MemoryStore()
    learn(start(store), ROWS[:40]).flush()
    kept = store.state["stream"]
    store.write_state({"stream": {name: kept[name] for name in kept if name != "scoring"}})
    assert QuiltStream.open(store).status().metric is None


def test_the_estimators_metric_comes_back_with_the_stream() -> None:
    store = MemoryStore()
    stream = QuiltStream(estimator(scoring="roc_auc"), n_wait=30, wait=True, store=store)
    learn(stream, ROWS[:70])
    assert stream.status().metric is None
    again = QuiltStream.open(store)
    assert again._engine.setup.estimator.scoring == "roc_auc"
    assert again.classifier().scoring == "roc_auc"


@pytest.mark.parametrize("owner", ["stream", "estimator"])
def test_code_is_refused_because_a_store_does_not_keep_it(owner: str) -> None:
    of_stream, of_estimator = (max, None) if owner == "stream" else (None, max)
    with pytest.raises(InputError, match=f"the scoring of the {owner} .* is code"):
        QuiltStream(estimator(scoring=of_estimator), scoring=of_stream)


def test_an_unknown_metric_is_refused() -> None:
    with pytest.raises(InputError, match="roc_auc"):
        start(scoring="roc_acu")
