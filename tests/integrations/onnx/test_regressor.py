"""The ONNX graph of a regressor answers as the regressor does, in another runtime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pandas as pd  # type: ignore[import-untyped]
import pytest

from driftquilt import InputError, QuiltRegressor
from driftquilt.core.loss import LOSSES, LossName
from tests.integrations.onnx.runtime import feed
from tests.integrations.onnx.test_classifier import N_ROWS, shop


def fitted(table: pd.DataFrame, loss: LossName) -> QuiltRegressor:
    model = QuiltRegressor(hidden_units=5, max_epochs=3, loss=loss, random_state=0, n_jobs=1)
    y = 5000 + 100 * np.random.default_rng(1).normal(size=N_ROWS)
    return model.fit(table, y, segments=np.arange(N_ROWS) // 20)


@pytest.mark.parametrize("loss", LOSSES)
def test_numbers_and_intervals_are_those_of_the_regressor(loss: LossName) -> None:
    table = shop()
    model = fitted(table, loss)
    content = model.to_onnx(coverage=0.7)
    onnx.checker.check_model(onnx.load_from_string(content), full_check=True)
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    prediction, interval = session.run(None, feed(table))
    assert names == ["prediction", "interval"]
    np.testing.assert_allclose(prediction, model.predict(table), rtol=1e-6)
    np.testing.assert_allclose(interval, model.predict_interval(table, 0.7), rtol=1e-6)


def test_a_column_with_the_name_of_an_output_is_refused() -> None:
    table = shop().rename(columns={"price": "interval"})
    with pytest.raises(InputError, match="interval"):
        fitted(table, "huber").to_onnx()
