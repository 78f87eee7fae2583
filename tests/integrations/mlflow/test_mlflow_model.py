"""A classifier in MLflow is loaded elsewhere and answers to the bit as it did."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
from sklearn.exceptions import NotFittedError

from driftquilt import QuiltClassifier
from driftquilt.errors import InputError, LearnerError
from driftquilt.integrations.mlflow import log_model, save_model
from driftquilt.learners.mlp import MLP

mlflow = pytest.importorskip("mlflow", reason="needs MLflow: make test-mlflow")
pytestmark = pytest.mark.filterwarnings("default")  # MLflow's own, of its own calls

ELSEWHERE = """
import sys, mlflow, pandas
mlflow.set_tracking_uri(sys.argv[1])
model = mlflow.pyfunc.load_model(sys.argv[2])
model.predict(pandas.read_parquet(sys.argv[3])).to_parquet(sys.argv[4])
"""


def shop() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "price": pd.Series(rng.normal(50, 9, 90)).mask(rng.random(90) < 0.1),
            "city": rng.choice(["Oslo", "Rome"], 90),
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(90), unit="D"),
            "member": rng.random(90) < 0.5,
        }
    )


def fitted() -> QuiltClassifier:
    table = shop()
    labels = np.where(table["price"] > 50, "buys", "leaves")
    months = table["when"].dt.month.to_numpy()
    return QuiltClassifier(hidden_units=8, max_epochs=6, random_state=0).fit(
        table, labels, segments=months
    )


def answer_elsewhere(uri: str, tracking_uri: str, folder: Path) -> pd.DataFrame:
    """In a process of its own, in an empty folder."""
    shop().to_parquet(folder / "shop.parquet")
    empty = folder / "empty"
    empty.mkdir()
    places = [str(folder / name) for name in ("shop.parquet", "answers.parquet")]
    command = [sys.executable, "-c", ELSEWHERE, tracking_uri, uri, *places]
    done = subprocess.run(command, cwd=empty, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return pd.read_parquet(folder / "answers.parquet")


def assert_answers(answers: pd.DataFrame, clf: QuiltClassifier) -> None:
    assert list(answers.columns) == ["prediction", "p(buys)", "p(leaves)"]
    assert answers["prediction"].tolist() == clf.predict(shop()).tolist()
    chances = answers[["p(buys)", "p(leaves)"]].to_numpy()
    assert chances.tobytes() == clf.predict_proba(shop()).tobytes()


def files_under(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_logged_model_answers_to_the_bit_in_another_process(
    tracking_uri: str, tmp_path: Path
) -> None:
    clf = fitted()
    with mlflow.start_run():
        told = log_model(clf)
    assert_answers(answer_elsewhere(told.model_uri, tracking_uri, tmp_path), clf)


def test_a_saved_model_needs_no_server_and_holds_no_pickle(
    tracking_uri: str, tmp_path: Path
) -> None:
    clf = fitted()
    save_model(clf, tmp_path / "saved")
    assert files_under(tmp_path / "saved") == [
        "MLmodel", "conda.yaml", "model.safetensors", "python_env.yaml", "requirements.txt",
    ]  # fmt: skip
    assert "pickle" not in (tmp_path / "saved" / "MLmodel").read_text()
    assert_answers(answer_elsewhere(str(tmp_path / "saved"), tracking_uri, tmp_path), clf)


def test_answers_keep_the_index_of_the_table(tmp_path: Path) -> None:
    save_model(fitted(), tmp_path / "saved")
    some = shop().iloc[[7, 3]]
    assert mlflow.pyfunc.load_model(str(tmp_path / "saved")).predict(some).index.tolist() == [7, 3]


@pytest.mark.parametrize(
    "given",
    [[[0.1, 0.9]], np.array([[0.1, 0.9]]), {"x0": [0.1], "x1": [0.9]}],
    ids=["list", "array", "dict"],
)
def test_what_the_classifier_takes_the_model_takes(given: Any, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    clf = QuiltClassifier(hidden_units=4, max_epochs=3, random_state=0).fit(X, X[:, 0] > 0)
    save_model(clf, tmp_path / "saved")
    answers = mlflow.pyfunc.load_model(str(tmp_path / "saved")).predict(given)
    assert answers["prediction"].tolist() == clf.predict(given).tolist()
    assert answers.index.tolist() == [0]


def test_a_model_that_is_not_fitted_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        save_model(QuiltClassifier(), tmp_path / "saved")
    with pytest.raises(NotFittedError):
        log_model(QuiltClassifier())


def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"saving the model .*not empty"):
        save_model(fitted(), tmp_path)
    assert files_under(tmp_path) == ["notes.txt"]


def test_settings_go_to_mlflow(tmp_path: Path) -> None:
    signature = mlflow.models.infer_signature(shop()[["city"]], np.array(["buys"]))
    save_model(fitted(), tmp_path / "saved", signature=signature, metadata={"team": "loans"})
    told = mlflow.models.get_model_info(str(tmp_path / "saved"))
    assert told.metadata == {"team": "loans"}
    assert told.signature.inputs.input_names() == ["city"]


def test_a_learner_of_ones_own_is_refused(tmp_path: Path) -> None:
    class Mine:
        """The default learner in a class that MLflow could not find."""

        def __init__(self) -> None:
            self._mlp = MLP(hidden_units=4)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._mlp, name)

    clf = QuiltClassifier(learner=Mine(), max_epochs=2).fit(shop(), np.arange(90) % 2)
    with pytest.raises(LearnerError, match=r"trained by a Mine of your own"):
        save_model(clf, tmp_path / "saved")
    assert not (tmp_path / "saved").exists()
