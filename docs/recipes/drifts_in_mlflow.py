"""Keep every model of a stream in MLflow: each one a run, with its reasons and its figures.

`DriftRuns` makes a run of each model that takes over: settings, validation loss, how many past
segments it kept, the explanation, the quilt as a picture, and the model, which MLflow loads without
driftquilt's name being spoken. Nothing in it is a pickle.

Run it as a script; it takes `pip install 'driftquilt[mlflow]'`, and leaves `mlflow.db` and the
runs' files in the folder it is run in. `mlflow ui --backend-store-uri sqlite:///mlflow.db` shows
them.
"""

from __future__ import annotations

import random

import mlflow
import pandas as pd  # type: ignore[import-untyped]

from driftquilt import QuiltClassifier, QuiltStream
from driftquilt.tracking.mlflow_runs import DriftRuns

URI = "sqlite:///mlflow.db"


def main() -> None:
    """Let the concept turn round and back, and ask MLflow what became of it."""
    runs = DriftRuns("loans", tracking_uri=URI)
    stream = QuiltStream(QuiltClassifier(random_state=0), n_wait=50, wait=True)
    draw = random.Random(0).random  # noqa: S311
    logged = []
    for turn in range(600):
        x = {"income": draw(), "debt": draw()}
        repaid = (x["income"] > x["debt"]) == (turn // 200 != 1)
        logged += runs.log(stream, stream.learn_one(x, repaid))

    mlflow.set_tracking_uri(URI)
    for run_id in logged:
        run = mlflow.get_run(run_id)
        loss, n_kept = (run.data.metrics[name] for name in ("validation_loss", "n_segments_kept"))
        print(f"{run.info.run_name}: loss {loss:.3f}, {n_kept:.0f} past segments kept")  # noqa: T201
    model = mlflow.pyfunc.load_model(f"runs:/{logged[-1]}/model")
    print(model.predict(pd.DataFrame({"income": [0.9, 0.1], "debt": [0.1, 0.9]})))  # noqa: T201


if __name__ == "__main__":
    main()
