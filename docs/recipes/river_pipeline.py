"""Use Quilt inside of river: in a pipeline, under river's own evaluation, beside river's models.

`RiverQuilt` is a river classifier. Whatever stands before it in a pipeline may change the rows;
`progressive_val_score` predicts each one, then learns it. A detector of river's may be given as
it is. `.stream` has what the model has done, and why.

Run it as a script.
"""

from __future__ import annotations

from river import compose, drift, linear_model, metrics, preprocessing
from river.datasets import synth
from river.evaluate import progressive_val_score

from driftquilt import RiverQuilt


def recurring_drift() -> synth.ConceptDriftStream:
    """Two concepts of Agrawal's loans: the first until row 500, the other, the first again."""
    first, other = (synth.Agrawal(classification_function=f, seed=f) for f in (0, 2))
    change = synth.ConceptDriftStream(first, other, position=500, width=10, seed=0)
    return synth.ConceptDriftStream(
        change, synth.Agrawal(classification_function=0, seed=3), position=1_000, width=10, seed=0
    )


def main() -> None:
    """Let two models meet the same rows, and tell what Quilt has done."""
    detector = drift.ADWIN(delta=0.01)  # type: ignore[no-untyped-call]
    quilt = RiverQuilt(detector, n_wait=50, seed=0)
    logistic = linear_model.LogisticRegression()
    features = compose.Discard("zipcode", "car")
    for name, model in [("quilt", quilt), ("logistic regression", logistic)]:
        pipeline = features.clone() | preprocessing.StandardScaler() | model
        scores = metrics.Accuracy() + metrics.MacroF1()  # type: ignore[no-untyped-call]
        progressive_val_score(recurring_drift().take(1_500), pipeline, scores)
        print(f"{name}: {scores}")  # noqa: T201
    for event in quilt.stream.events:
        print(event)  # noqa: T201


if __name__ == "__main__":
    main()
