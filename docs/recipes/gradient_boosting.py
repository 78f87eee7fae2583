"""Train LightGBM, XGBoost or CatBoost on the past months that still hold.

`QuiltSelector` takes any classifier of scikit-learn's shape. Quilt ranks the past months, your own
model judges how many of them to use, and the answer is a blend of its best fits. Text columns
become categories for LightGBM, CatBoost, and XGBoost with `enable_categorical`.

Run it as a script; it needs lightgbm, xgboost and catboost.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from xgboost import XGBClassifier

from driftquilt import QuiltSelector

MODELS = {
    "LightGBM": LGBMClassifier(n_estimators=40, n_jobs=1, verbose=-1),
    "XGBoost": XGBClassifier(n_estimators=40, n_jobs=1, enable_categorical=True),
    "CatBoost": CatBoostClassifier(
        iterations=40, thread_count=1, verbose=0, allow_writing_files=False
    ),
}
N_ROWS, N_LABELLED, BUDGET = 1500, 1280, 85  # of the last month, 80 rows have a label


def main() -> None:
    """Make five months up, two of another world, and fit each model for the last."""
    rng = np.random.default_rng(0)
    months = np.repeat(["2024-01", "2024-02", "2024-03", "2024-04", "2024-05"], N_ROWS // 5)
    frame = pd.DataFrame({"price": rng.uniform(1, 100, N_ROWS), "visits": rng.poisson(3, N_ROWS)})
    frame["channel"] = rng.choice(["web", "shop", "phone"], N_ROWS)
    would_buy = frame["price"] + 10 * frame["visits"] + 20 * (frame["channel"] == "web") < BUDGET
    labels = np.where(would_buy ^ np.isin(months, ["2024-02", "2024-04"]), 1, 0)
    seen = np.arange(N_ROWS) < N_LABELLED
    for name, model in MODELS.items():
        selector = QuiltSelector(model, random_state=0)
        selector.fit(frame[seen], labels[seen], segments=months[seen])
        used = [use.name for use in selector.selection_ if use.used]
        accuracy = selector.score(frame[~seen], labels[~seen])
        print(f"{name}: trained on {', '.join(used)}; accuracy {accuracy:.3f}")  # noqa: T201


if __name__ == "__main__":
    main()
