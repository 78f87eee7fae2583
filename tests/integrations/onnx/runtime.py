"""A model in onnxruntime, which shares no code with driftquilt, and raw tables as it takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pandas as pd  # type: ignore[import-untyped]
from numpy.typing import NDArray

from driftquilt import QuiltClassifier

#: How far the graph's probabilities may be from the classifier's.
NEAR = 1e-5


def feed(table: pd.DataFrame, missing: str = "") -> dict[str, NDArray[Any]]:
    """Each column as the graph takes it, (n, 1)."""
    return {name: _column(table[name], missing)[:, None] for name in table.columns}


def _column(column: pd.Series[Any], missing: str) -> NDArray[Any]:
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind in ("string", "categorical", "empty"):
        texts = [missing if pd.isna(value) else value for value in column]
        return np.array(texts, dtype=object)
    if kind in ("datetime64", "datetime", "date"):
        return np.asarray(column.to_numpy("M8[us]").astype(np.int64))
    if kind == "time":
        micros = [np.iinfo(np.int64).min if pd.isna(t) else _micros(t) for t in column]
        return np.array(micros, dtype=np.int64)
    return np.asarray(column.to_numpy(np.float64, na_value=np.nan))


def _micros(time: Any) -> int:
    seconds = (time.hour * 60 + time.minute) * 60 + time.second
    return int(seconds * 10**6 + time.microsecond)


def run(content: bytes, inputs: dict[str, NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Labels and probabilities; the graph is checked first."""
    onnx.checker.check_model(onnx.load_from_string(content), full_check=True)
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    label, probabilities = session.run(["label", "probabilities"], inputs)
    return label, probabilities


def assert_alike(
    clf: QuiltClassifier, table: Any, inputs: dict[str, NDArray[Any]], missing: str = ""
) -> None:
    """The graph answers as the classifier does; labels too, where two are not as good as equal."""
    label, probabilities = run(clf.to_onnx(missing=missing), inputs)
    expected = clf.predict_proba(table)
    assert probabilities.dtype == np.float32
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=NEAR)
    best = np.sort(expected, axis=1)
    clear = best[:, -1] - best[:, -2] > 2 * NEAR
    assert label.shape == (len(expected),)
    assert label[clear].tolist() == clf.predict(table)[clear].tolist()
