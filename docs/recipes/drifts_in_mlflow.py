"""Keep every training of a stream in MLflow: each one a run, with its reasons and its figures.

`DriftRuns` makes a run of each training: settings, validation loss, how many past segments it used,
the explanation, and whether the new model took over. If it did, the run has the quilt as a picture
and the model, which MLflow loads without driftquilt's name being spoken. Nothing in it is a pickle.

A process may die before it has logged what it learned, and MLflow may be away. The stream knows
what happened: `runs.log(stream, stream.events)` logs what has no run yet, and nothing twice.

Run it as a script; it takes `pip install 'driftquilt[mlflow]'`, and leaves `mlflow.db` and the
runs' files in the folder it is run in. `mlflow ui --backend-store-uri sqlite:///mlflow.db` shows
them.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator

import mlflow
import pandas as pd  # type: ignore[import-untyped]

from driftquilt import QuiltClassifier, QuiltStream
from driftquilt.integrations.mlflow import DriftRuns

URI = "sqlite:///mlflow.db"
N_ROWS, N_BEFORE_THE_CRASH = 600, 320


def loans(after: int) -> Iterator[tuple[dict[str, float], bool]]:
    """Yield a source that can be read from any row on; the concept turns round and back."""
    draw = random.Random(0).random  # noqa: S311
    for turn in range(N_ROWS):
        x = {"income": draw(), "debt": draw()}
        if turn >= after:
            yield x, (x["income"] > x["debt"]) == (turn // 200 != 1)


def begin_and_crash(folder: str) -> None:
    """Learn, and be gone before anything is logged."""
    estimator = QuiltClassifier(random_state=0)
    stream = QuiltStream(estimator, n_wait=50, wait=True, store=folder)
    for x, repaid in loans(after=0):
        stream.learn_one(x, repaid)
        if stream.n_rows == N_BEFORE_THE_CRASH:
            stream.close(discard=True)  # as a crash would
            return


def main() -> None:
    """Log what a dead process could not, go on, and ask MLflow what became of it."""
    runs = DriftRuns("loans", tracking_uri=URI)
    with tempfile.TemporaryDirectory() as folder:
        begin_and_crash(folder)
        with QuiltStream.open(folder) as stream:
            n_late = len(runs.log(stream, stream.events))
            print(f"{n_late} trainings were not logged before the crash")  # noqa: T201
            for x, repaid in loans(after=stream.n_rows):
                runs.log(stream, stream.learn_one(x, repaid))

    mlflow.set_tracking_uri(URI)
    logged = mlflow.search_runs(
        [runs.experiment_id], order_by=["attributes.start_time"], output_format="list"
    )
    for run in logged:
        outcome, metrics = run.data.tags["driftquilt.outcome"], run.data.metrics
        result = f"loss {metrics['validation_loss']:.3f}" if outcome != "failed" else "no model"
        print(f"{run.info.run_name}: {outcome}, {result}")  # noqa: T201
    last = [run for run in logged if run.data.tags["driftquilt.outcome"] == "promoted"][-1]
    print(f"{last.data.metrics['n_segments_used']:.0f} past segments used")  # noqa: T201
    model = mlflow.pyfunc.load_model(f"runs:/{last.info.run_id}/model")
    print(model.predict(pd.DataFrame({"income": [0.9, 0.1], "debt": [0.1, 0.9]})))  # noqa: T201


if __name__ == "__main__":
    main()
