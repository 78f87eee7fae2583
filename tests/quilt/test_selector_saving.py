"""A saved QuiltSelector answers as it did, whatever its estimator; what is code is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
from catboost import CatBoostClassifier  # type: ignore[import-untyped]
from lightgbm import LGBMClassifier
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC
from xgboost import XGBClassifier

from driftquilt import QuiltClassifier, QuiltSelector, load_model
from driftquilt.errors import InputError, ModelFileError
from driftquilt.quilt.model_file import read_model, write_model

rng = np.random.default_rng(0)
MONTH = np.repeat(["April", "May", "June"], [150, 150, 60])
TABLE = pd.DataFrame(
    {
        "age, years": rng.normal(size=360),
        "city": np.array(["Oslo", "Rome", None], dtype=object)[np.arange(360) % 3],
        "paid": pd.array([True, False, None, True] * 90, dtype="boolean"),
        "day": pd.date_range("2024-04-01", periods=360, freq="6h"),
    }
)
Y = np.where((TABLE["age, years"] > 0) ^ (MONTH == "April"), "buys", "leaves")
NUMBERS = TABLE[["age, years"]].to_numpy()
ESTIMATORS = {
    "lightgbm": LGBMClassifier(n_estimators=8, n_jobs=1, verbose=-1),
    "xgboost": XGBClassifier(n_estimators=8, n_jobs=1, enable_categorical=True),
    "catboost": CatBoostClassifier(
        iterations=8, thread_count=1, verbose=False, allow_writing_files=False
    ),
    "hgb": HistGradientBoostingClassifier(max_iter=8),
}
QUICK = QuiltClassifier(hidden_units=8, max_epochs=6)


def fitted(estimator: Any, X: Any = TABLE, y: Any = Y, **settings: Any) -> QuiltSelector:
    model = QuiltSelector(estimator, **{"quilt": QUICK, "random_state": 0, **settings})
    return model.fit(X, y, segments=MONTH)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


@pytest.fixture
def saved(path: Path) -> Path:
    fitted(ESTIMATORS["lightgbm"]).save(path)
    return path


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_loaded_model_is_the_saved_one(kind: str, path: Path) -> None:
    model = fitted(ESTIMATORS[kind], scoring={("buys", "leaves"): 3.0, ("leaves", "buys"): 1.0})
    model.threshold_ = 0.25
    model.save(path)
    loaded = load_model(path)
    assert isinstance(loaded, QuiltSelector)
    strange = TABLE[:5].assign(city="Bonn")
    for rows in (TABLE, strange):
        assert np.array_equal(loaded.predict_proba(rows), model.predict_proba(rows))
        assert np.array_equal(loaded.predict(rows), model.predict(rows))
    assert loaded.search_ == model.search_
    assert loaded.explain() == model.explain()
    assert loaded.feature_names_in_.tolist() == [*TABLE]
    assert loaded.threshold_ == 0.25
    assert loaded.metric_.costs == model.metric_.costs
    assert loaded.n_folds == model.n_folds
    assert type(loaded.estimator) is type(model.estimator)
    assert read_model(path)[1]["kind"] == kind
    again = path.with_name("again.safetensors")
    loaded.save(again)
    refitted = clone(loaded).fit(TABLE, Y, segments=MONTH)
    for same in (QuiltSelector.load(again), refitted):
        assert np.array_equal(same.predict_proba(TABLE), model.predict_proba(TABLE))


def test_a_model_without_a_past_comes_back(path: Path) -> None:
    model = QuiltSelector(LogisticRegression(), random_state=0).fit(NUMBERS, Y)
    model.save(path)
    loaded = QuiltSelector.load(path)
    assert np.array_equal(loaded.predict_proba(NUMBERS), model.predict_proba(NUMBERS))
    assert [one.n_segments for one in loaded.search_] == [0]


def test_a_file_of_before_sets_were_part_of_the_selection_is_read(saved: Path) -> None:
    tensors, record = read_model(saved)
    record["search"] = record["selection"].pop("sets")
    del record["selection"]["metric"]
    write_model(saved, tensors, record)
    assert QuiltSelector.load(saved).explain() == fitted(ESTIMATORS["lightgbm"]).explain()


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize("labels", [np.arange(360) % 3, np.repeat(["a", "b"], [300, 60])])
def test_other_labels_come_back(kind: str, labels: Any, path: Path) -> None:
    model = fitted(ESTIMATORS[kind], NUMBERS, labels)  # of "b", the present has nothing else
    model.save(path)
    loaded = QuiltSelector.load(path)
    assert np.array_equal(loaded.predict_proba(NUMBERS), model.predict_proba(NUMBERS))
    assert loaded.classes_.dtype == model.classes_.dtype


def test_estimators_of_scikit_learn_come_back(path: Path) -> None:
    for estimator in (make_pipeline(StandardScaler(), LogisticRegression()), LinearSVC()):
        model = fitted(estimator, NUMBERS)
        model.save(path)
        loaded = QuiltSelector.load(path)
        assert np.array_equal(loaded.predict(NUMBERS), model.predict(NUMBERS))


class Own(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Someone's own classifier."""

    def fit(self, _: Any, y: Any) -> Own:
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.classes_[0])


class OwnLightGBM(LGBMClassifier):
    """A LightGBM with code of its own."""


@pytest.mark.parametrize(
    ("estimator", "word"),
    [
        (Own(), "Own"),
        (OwnLightGBM(n_estimators=3, verbose=-1), "OwnLightGBM"),
        (make_pipeline(FunctionTransformer(lambda X: X), LogisticRegression()), "cannot be saved"),
        (make_pipeline(StandardScaler(), ESTIMATORS["xgboost"]), "xgboost"),
    ],
)
def test_code_is_refused(estimator: Any, word: str, path: Path) -> None:
    with pytest.raises(InputError, match=word):
        fitted(estimator, NUMBERS).save(path)
    assert not path.exists()


def test_a_scorer_that_is_code_is_refused(path: Path) -> None:
    model = fitted(ESTIMATORS["lightgbm"], scoring=make_scorer(accuracy_score))
    with pytest.raises(InputError, match="scoring"):
        model.save(path)


def test_an_unfitted_model_cannot_be_saved(path: Path) -> None:
    with pytest.raises(NotFittedError):
        QuiltSelector(ESTIMATORS["hgb"]).save(path)


def test_each_class_names_the_other(saved: Path, path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"QuiltSelector\.load"):
        QuiltClassifier.load(saved)
    clone(QUICK).fit(NUMBERS, Y, segments=MONTH).save(path)
    with pytest.raises(ModelFileError, match=r"QuiltClassifier\.load"):
        QuiltSelector.load(path)
    assert isinstance(load_model(path), QuiltClassifier)


def test_a_flipped_byte_is_noticed(saved: Path) -> None:
    content = saved.read_bytes()
    for place in np.linspace(0, len(content) - 1, 40).astype(int):
        damaged = bytearray(content)
        damaged[place] ^= 1
        saved.write_bytes(damaged)
        with pytest.raises(ModelFileError):
            QuiltSelector.load(saved)


@pytest.mark.parametrize(
    "key", ["estimator", "fits", "checksums", "shares", "categories", "selection", "names"]
)
def test_a_record_without_one_of_its_keys_is_refused(saved: Path, key: str) -> None:
    tensors, record = read_model(saved)
    del record[key]
    write_model(saved, tensors, record)
    with pytest.raises(ModelFileError, match=key):
        QuiltSelector.load(saved)


def test_estimators_that_are_something_else_are_refused(path: Path) -> None:
    for estimator in ESTIMATORS.values():
        fitted(estimator).save(path)
        tensors, record = read_model(path)
        write_model(path, {name: part[:-9].copy() for name, part in tensors.items()}, record)
        with pytest.raises(ModelFileError):
            QuiltSelector.load(path).predict(TABLE)


def test_types_that_are_not_trusted_are_not_read(path: Path) -> None:
    io = pytest.importorskip("skops.io")
    fitted(ESTIMATORS["hgb"]).save(path)
    tensors, record = read_model(path)
    content = np.frombuffer(io.dumps(Own().fit(NUMBERS, Y)), dtype=np.uint8)
    record["checksums"] = dict.fromkeys(tensors, crc32(content.tobytes()))
    write_model(path, dict.fromkeys(tensors, content), record)
    with pytest.raises(ModelFileError, match="Own"):
        QuiltSelector.load(path)


def test_another_scikit_learn_is_named(path: Path) -> None:
    fitted(ESTIMATORS["hgb"]).save(path)
    tensors, record = read_model(path)
    text = json.dumps(record["estimator"])
    version = record["estimator"]["versions"]["scikit-learn"]
    record["estimator"] = json.loads(text.replace(version, "0.99.1"))
    write_model(path, tensors, record)
    with pytest.raises(ModelFileError, match=r"0\.99\.1"):
        QuiltSelector.load(path)
