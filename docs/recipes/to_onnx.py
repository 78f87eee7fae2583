"""Take a model to where driftquilt is not: one ONNX file with the encoding inside.

The file takes the columns of the raw table, each under its own name and with shape (n, 1): numbers
as float64 (NaN is missing), text as strings ("" is missing), dates as int64 microseconds (what
numpy makes of a missing one is missing). What each holds stands in the file itself.

Run it as a script; it takes `pip install 'driftquilt[onnx]' onnxruntime`.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd  # type: ignore[import-untyped]

from driftquilt import QuiltClassifier

GAPS, DEAR, FEBRUARY = 0.1, 50, 2


def shop(n_rows: int) -> pd.DataFrame:
    """Visits of three months, with gaps."""
    rng = np.random.default_rng(0)
    begin = pd.Timestamp("2024-01-01")
    visits = {
        "price": pd.Series(rng.uniform(1, 100, n_rows)).mask(rng.random(n_rows) < GAPS),
        "channel": pd.Series(rng.choice(["web", "shop"], n_rows)).mask(rng.random(n_rows) < GAPS),
        "at": begin + pd.to_timedelta(np.sort(rng.uniform(0, 90, n_rows)), unit="D"),
        "member": rng.integers(0, 2, n_rows).astype(bool),
    }
    return pd.DataFrame(visits)


def feed(table: pd.DataFrame) -> dict[str, Any]:
    """Return the raw table as the file takes it."""
    return {
        "price": table[["price"]].to_numpy(np.float64),
        "channel": table[["channel"]].fillna("").to_numpy(object),
        "at": table[["at"]].to_numpy("datetime64[us]").astype(np.int64),
        "member": table[["member"]].to_numpy(np.float64),
    }


def main() -> None:
    """Train, write the file, and let onnxruntime answer in the classifier's place."""
    visits = shop(900)
    turned = visits["at"].dt.month == FEBRUARY  # a month of another world
    buys = np.where((visits["price"] < DEAR) ^ turned, "buys", "leaves")
    clf = QuiltClassifier(random_state=0)
    clf.fit(visits, buys, segments=visits["at"].dt.month)
    session = onnxruntime.InferenceSession(clf.to_onnx(), providers=["CPUExecutionProvider"])
    for column in json.loads(session.get_modelmeta().custom_metadata_map["inputs"]):
        print(f"{column['name']}: {column['type']}, {column['holds']}")  # noqa: T201
    labels, probabilities = session.run(["label", "probabilities"], feed(visits))
    expected = clf.predict_proba(visits)
    assert np.allclose(probabilities, expected, rtol=0, atol=1e-5)  # noqa: S101
    print(f"{(labels == clf.predict(visits)).mean():.1%} of labels the same")  # noqa: T201


if __name__ == "__main__":
    main()
