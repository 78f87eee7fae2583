"""Train a scikit-learn pipeline on the past months that still hold.

The pipeline gets the rows as they are, with its own imputing and encoding, fitted again on each set
of months that is tried. `sample_weight` is not needed: a pipeline gets resampled rows instead.

Run it as a script.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from driftquilt import QuiltSelector

N_LABELLED = 1280  # of April, 80 rows have a label


def main() -> None:
    """Make four months up, one of another world, and fit the pipeline for the last."""
    rng = np.random.default_rng(0)
    months = np.repeat(["2024-01", "2024-02", "2024-03", "2024-04"], 400)
    frame = pd.DataFrame({"income": rng.normal(50, 9, 1600), "debt": rng.normal(40, 9, 1600)})
    frame["city"] = rng.choice(["Oslo", "Rome"], 1600)
    repays = (frame["income"] > frame["debt"] + 9 * (frame["city"] == "Rome")) ^ (
        months == "2024-02"
    )
    labels = np.where(repays, "yes", "no")
    columns = make_column_transformer(
        (StandardScaler(), ["income", "debt"]), (OneHotEncoder(), ["city"])
    )
    pipeline = make_pipeline(columns, LogisticRegression())
    seen = np.arange(1600) < N_LABELLED
    model = QuiltSelector(pipeline, scoring="roc_auc", random_state=0)
    model.fit(frame[seen], labels[seen], segments=months[seen])
    used = [use.name for use in model.selection_ if use.used]
    accuracy = model.score(frame[~seen], labels[~seen])
    print(f"trained on {', '.join(used)}; accuracy {accuracy:.3f}")  # noqa: T201


if __name__ == "__main__":
    main()
