"""A model file gives back the model that was saved, or says why it cannot."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from sklearn.exceptions import NotFittedError
from torch import nn

from driftquilt import QuiltClassifier, TorchLearner
from driftquilt.errors import InputError, ModelFileError
from driftquilt.learners.mlp import MLP
from driftquilt.quilt.model_file import read_model, write_model
from driftquilt.search.bayes import Bayes
from driftquilt.search.shared import Shared

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 2))
SEGMENTS = np.repeat(["April", "May", "June"], 30)
Y = np.where(X[:, 0] > 0, "buys", "leaves")
TABLE = {"age": X[:, 0], "city": np.where(X[:, 1] > 0, "Oslo", "Rome").tolist()}
NEW = {"age": [0.5, -0.5, None], "city": ["Rome", "Oslo", "Bonn"]}


def fitted(**settings: Any) -> QuiltClassifier:
    small = {"hidden_units": 4, "max_epochs": 4, "random_state": 0}
    return QuiltClassifier(**{**small, **settings}).fit(TABLE, Y, segments=SEGMENTS)


def conv(n_channels: int, n_classes: int) -> nn.Module:
    layers = [nn.Conv2d(n_channels, 2, 3), nn.BatchNorm2d(2), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(72, n_classes))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.safetensors"


@pytest.fixture
def saved(path: Path) -> Path:
    fitted().save(path)
    return path


# Round trips


def test_a_model_that_is_saved_again_is_the_same_file(path: Path) -> None:
    clf, contents = fitted(), set[bytes]()
    for _ in range(8):
        clf.save(path)
        contents.add(path.read_bytes())
    assert len(contents) == 1


@pytest.mark.parametrize("n_folds", [1, 3])
def test_a_loaded_model_is_the_saved_one(path: Path, n_folds: int) -> None:
    clf = fitted(n_folds=n_folds)
    clf.save(path)
    loaded = QuiltClassifier.load(path)
    assert np.array_equal(loaded.predict_proba(NEW), clf.predict_proba(NEW))
    assert loaded.get_params() == clf.get_params()
    assert loaded.search_ == clf.search_
    assert loaded.disparity_max_ == clf.disparity_max_
    assert loaded.encoder_ == clf.encoder_
    assert loaded.n_features_in_ == 2
    assert loaded.feature_names_in_.tolist() == ["age", "city"]
    assert repr(loaded.selection_) == repr(clf.selection_)
    assert loaded.selection_.explain() == clf.selection_.explain()
    assert json.dumps(loaded.selection_.to_json()) == json.dumps(clf.selection_.to_json())


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param((X[:, 0] > 0).astype(np.int32), id="int32"),
        pytest.param(X[:, 0] > 0, id="bool"),
        pytest.param(Y, id="str"),
        pytest.param(Y.astype(object), id="object"),
        pytest.param((X[:, 0] > 0).astype(float), id="float"),
    ],
)
def test_labels_keep_their_type(path: Path, labels: Any) -> None:
    clf = QuiltClassifier(hidden_units=4, max_epochs=2).fit(X, labels)
    clf.save(path)
    loaded = QuiltClassifier.load(path)
    assert loaded.classes_.dtype == clf.classes_.dtype
    assert np.array_equal(loaded.predict(X), clf.predict(X))
    assert not hasattr(loaded, "feature_names_in_")


@pytest.mark.parametrize(
    "settings",
    [
        {"search": Shared((0.25, 0.5))},
        {"search": Shared((0.25, 0.5), drop_by=0.3)},
        {"search": Bayes(1, 1)},
        {"search": "bayes", "n_folds": 1},
        {"class_weight": {"buys": 2.0, "leaves": 0.5}},
        {"class_weight": "balanced"},
        {"scoring": "roc_auc"},
        {"disparity_max": float("inf"), "use_gain": False},
        {"n_folds": np.int64(3), "disparity_max": np.float64(0.5), "random_state": np.int64(1)},
        {"score_rows": 9, "score_every": 2, "epoch_rows": 40, "averaging": 0.5, "n_jobs": 2},
        {"score_rows": None, "epoch_rows": None, "averaging": 0, "n_jobs": None},
        {"score_rows": np.int64(9), "averaging": np.float64(0.3), "n_jobs": np.int64(1)},
    ],
    ids=str,
)
def test_settings_come_back(path: Path, settings: dict[str, Any]) -> None:
    clf = fitted(**settings)
    clf.save(path)
    assert QuiltClassifier.load(path).get_params() == clf.get_params()


def test_a_generator_as_seed_is_not_saved(path: Path) -> None:
    fitted(random_state=np.random.RandomState(0)).save(path)
    assert QuiltClassifier.load(path).random_state is None


def test_a_search_of_the_users_own_is_code_and_refused(path: Path) -> None:
    class Mine(Shared):
        pass

    with pytest.raises(InputError, match="cannot be saved: it is code"):
        fitted(search=Mine((0.5,))).save(path)
    assert not path.exists()


def test_weights_are_saved_with_the_settings_they_were_trained_with(path: Path) -> None:
    clf = fitted()
    clf.set_params(hidden_units=8, learner=TorchLearner(nn.Linear)).save(path)
    loaded = QuiltClassifier.load(path)
    assert loaded.hidden_units == 4
    assert np.array_equal(loaded.predict_proba(NEW), clf.predict_proba(NEW))


def test_the_default_net_given_as_a_learner_needs_no_learner_to_load(path: Path) -> None:
    clf = fitted(learner=MLP(6))
    clf.save(path)
    loaded = QuiltClassifier.load(path)
    assert loaded.hidden_units == 6
    assert np.array_equal(loaded.predict_proba(NEW), clf.predict_proba(NEW))


def test_rows_that_are_not_encoded_come_back(path: Path) -> None:
    clf = QuiltClassifier(hidden_units=4, max_epochs=2, encode=False).fit(X, Y)
    clf.save(path)
    loaded = QuiltClassifier.load(path)
    assert loaded.encoder_ is None
    assert np.array_equal(loaded.predict_proba(X), clf.predict_proba(X))
    with pytest.raises(InputError, match=r"shape \(3,\).*shape \(2,\)"):
        loaded.predict(np.ones((1, 3)))


def test_a_torch_model_needs_its_learner(path: Path) -> None:
    images = rng.normal(size=(90, 1, 8, 8))
    learner = TorchLearner(conv)
    clf = QuiltClassifier(learner=learner, encode=False, max_epochs=2, n_folds=1).fit(images, Y)
    clf.save(path)
    with pytest.raises(InputError, match=r"'module': 'conv'.*load\(path, learner="):
        QuiltClassifier.load(path)
    loaded = QuiltClassifier.load(path, learner=learner)
    assert loaded.learner is learner
    assert np.array_equal(loaded.predict_proba(images), clf.predict_proba(images))


def test_another_learner_than_the_one_that_trained_is_refused(path: Path) -> None:
    fitted(learner=TorchLearner(nn.Linear)).save(path)
    with pytest.raises(ModelFileError):
        QuiltClassifier.load(path, learner=MLP(4))


def test_saving_again_replaces_the_file(saved: Path) -> None:
    other = fitted(random_state=1)
    other.save(str(saved))
    assert np.array_equal(
        QuiltClassifier.load(str(saved)).predict_proba(NEW), other.predict_proba(NEW)
    )
    assert [file.name for file in saved.parent.iterdir()] == [saved.name]


def test_the_file_is_plain_safetensors(saved: Path) -> None:
    data = saved.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    assert set(header) == {"__metadata__", *(f"{fold}.theta" for fold in range(4))}
    assert set(header["__metadata__"]) == {"driftquilt", "format", "sha256"}
    assert sum(len(tensor.tobytes()) for tensor in read_model(saved)[0].values()) == (
        len(data) - 8 - size
    )


def test_an_unfitted_model_cannot_be_saved(path: Path) -> None:
    with pytest.raises(NotFittedError):
        QuiltClassifier().save(path)


# Damage


def refused(path: Path) -> str:
    with pytest.raises(ModelFileError) as caught:
        QuiltClassifier.load(path)
    return str(caught.value)


def test_a_folder_is_refused_with_the_model_in_it(saved: Path, tmp_path: Path) -> None:
    assert refused(saved.parent) == f"{saved.parent} is a folder; name its model, {saved}"
    (tmp_path / "empty").mkdir()
    assert refused(tmp_path / "empty").endswith("name a model file; it holds none")


@pytest.mark.parametrize("text", ['{"label": "churned"}', '[{"age": 31}]', "age,label\n31,buys\n"])
def test_a_file_that_begins_like_no_model_is_said_to_be_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(text)
    assert refused(tmp_path / "a").startswith(f"{tmp_path / 'a'} is not a model file; name one")


@pytest.mark.parametrize("twentieth", range(20))
def test_a_file_cut_short_is_refused(saved: Path, twentieth: int) -> None:
    data = saved.read_bytes()
    saved.write_bytes(data[: len(data) * twentieth // 20])
    refused(saved)


def flips(data: bytes) -> Iterator[tuple[int, int]]:
    """Positions and bits: all of the first bytes, and a fifth of the others, in turn."""
    for position in [*range(64), *range(64, len(data), 5)]:
        yield position, 1 << position % 8
    for position in range(8, len(data), 97):
        yield position, 0xFF


def test_no_flipped_byte_changes_a_prediction(saved: Path) -> None:
    data, expected = saved.read_bytes(), QuiltClassifier.load(saved).predict_proba(NEW)
    for position, mask in flips(data):
        broken = bytearray(data)
        broken[position] ^= mask
        saved.write_bytes(broken)
        try:
            loaded = QuiltClassifier.load(saved)
        except ModelFileError:
            continue
        assert np.array_equal(loaded.predict_proba(NEW), expected), position


@pytest.mark.parametrize(
    "content", [b"", b"hello, world\n" * 20, b"\x80\x04\x95", b"{}", bytes(64)]
)
def test_a_file_of_another_kind_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert str(path) in refused(path)


def test_a_safetensors_file_of_others_is_refused(path: Path) -> None:
    save_file({"0.theta": np.zeros(30, np.float32)}, path)
    assert "not one that driftquilt wrote" in refused(path)


def test_a_directory_is_refused(tmp_path: Path) -> None:
    refused(tmp_path)


def test_a_missing_file_is_named(path: Path) -> None:
    assert refused(path) == f"there is no model file at {path}"


def test_another_format_is_refused_with_both_versions(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("driftquilt.quilt.model_file.FORMAT", 2)
    assert "has format 1, this version reads 2" in refused(saved)


KEYS = ["settings", "learner", "classes", "encoder", "selection", "search"]


@pytest.mark.parametrize("key", KEYS)
def test_a_record_without_one_of_its_keys_is_refused(saved: Path, key: str) -> None:
    tensors, record = read_model(saved)
    del record[key]
    write_model(saved, tensors, record)
    assert key in refused(saved)


@pytest.mark.parametrize("value", [None, 3, "text", [], {}, [[1]], {"a": 1}])
@pytest.mark.parametrize("key", ["settings", "classes", "encoder", "selection"])
def test_a_record_with_something_else_in_its_place_is_refused(
    saved: Path, key: str, value: Any
) -> None:
    tensors, record = read_model(saved)
    record[key] = value
    write_model(saved, tensors, record)
    refused(saved)


def test_weights_for_other_columns_than_the_encoders_are_refused(saved: Path) -> None:
    tensors, record = read_model(saved)
    record["encoder"]["columns"].pop()
    write_model(saved, tensors, record)
    assert "not those of a net for the rows" in refused(saved)


def test_a_file_of_an_earlier_version_encodes_as_it_did(saved: Path) -> None:
    expected = QuiltClassifier.load(saved).predict_proba(NEW)
    tensors, record = read_model(saved)
    record["settings"]["encode"] = True
    for column in record["encoder"]["columns"]:
        column.pop("n_values", None)
    write_model(saved, tensors, record)
    loaded = QuiltClassifier.load(saved)
    assert loaded.encode == "standard"
    assert np.array_equal(loaded.predict_proba(NEW), expected)


def test_columns_encoded_by_rank_come_back(path: Path) -> None:
    money = {"amount": np.random.default_rng(0).lognormal(3, 2, 300)}
    clf = QuiltClassifier(hidden_units=4, max_epochs=3, random_state=0)
    clf.fit(money, money["amount"] > 20)
    clf.save(path)
    loaded = QuiltClassifier.load(path)
    assert clf.encoder_ is not None
    assert clf.encoder_.describe() == {"amount": "numbers, heavy tails: by rank"}
    assert loaded.encoder_ == clf.encoder_
    assert np.array_equal(loaded.predict_proba(money), clf.predict_proba(money))


def test_a_fold_without_weights_is_refused(saved: Path) -> None:
    tensors, record = read_model(saved)
    for changed in [{"0.theta": tensors["0.theta"]}, {**tensors, "4.theta": tensors["0.theta"]}]:
        write_model(saved, changed, record)
        refused(saved)


# Failing writes


def test_a_failing_write_leaves_the_old_file_as_it_was(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = saved.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        fitted(random_state=1).save(saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_saving_onto_a_folder_is_refused_and_leaves_no_draft(tmp_path: Path) -> None:
    target = tmp_path / "model"
    target.mkdir()
    with pytest.raises(ModelFileError, match="is a folder"):
        fitted().save(target)
    assert list(tmp_path.iterdir()) == [target]
    assert list(target.iterdir()) == []


def test_saving_into_a_folder_that_is_gone_says_so(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="gone"):
        fitted().save(tmp_path / "gone" / "model")
