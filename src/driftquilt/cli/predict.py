"""`driftquilt predict`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftquilt.cli.data import DataFiles, reading
from driftquilt.cli.output import AsJson, print_json

if TYPE_CHECKING:
    from driftquilt.estimator import QuiltClassifier

__all__ = ["predict"]

_ROWS = 65_536  # at a time


def predict(
    model: Annotated[Path, typer.Argument(help="A model that `select` or `save` wrote.")],
    data: DataFiles,
    out: Annotated[
        Path | None, typer.Option(help="A .parquet or .csv file; default: CSV to the screen.")
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="Column with the right answer; tells how many are right.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Predict every row of a file, in order: the most probable label, and each one's probability.

    Example: driftquilt predict out/model.safetensors new.csv --out predictions.parquet
    """
    from driftquilt.estimator import QuiltClassifier  # noqa: PLC0415
    from driftquilt.sources.writing import write_table  # noqa: PLC0415

    classifier = QuiltClassifier.load(model)
    with reading(data, needed=[label] if label else []) as rows:
        tally = _Tally(label)
        batches = tally.watch(rows.table, _predictions(classifier, rows.table, label))
        if out is not None:
            write_table(batches, out)
        elif as_json:
            tally.predicted = [row for batch in batches for row in batch.to_pylist()]
        else:
            _print_csv(batches)
    told = tally.document() | {"out": None if out is None else str(out)}
    if as_json:
        print_json("predict", told)
    elif label is not None:
        missing = told["n_rows"] - told["n_labelled"]
        beside = f"; {missing} rows have no {label!r}" if missing else ""
        typer.echo(f"{told['n_right']} of {told['n_labelled']} right{beside}", err=True)


class _Tally:
    """What was predicted, counted as it goes by."""

    def __init__(self, label: str | None) -> None:
        self.label, self.counts = label, Counter[str]()
        self.n_right = self.n_labelled = 0
        self.predicted: list[dict[str, Any]] | None = None

    def watch(self, table: Any, batches: Iterator[Any]) -> Iterator[Any]:
        start = 0
        for batch in batches:
            answers = batch.column("prediction").to_pylist()
            self.counts.update(map(str, answers))
            if self.label is not None:
                truth = table.column(self.label).slice(start, len(answers)).to_pylist()
                known = [pair for pair in zip(truth, answers, strict=True) if pair[0] is not None]
                self.n_labelled += len(known)
                self.n_right += sum(right == answer for right, answer in known)
            start += len(answers)
            yield batch

    def document(self) -> dict[str, Any]:
        told: dict[str, Any] = {"n_rows": self.counts.total(), "counts": dict(self.counts)}
        if self.label is not None:
            told |= {"n_labelled": self.n_labelled, "n_right": self.n_right}
        return told | ({} if self.predicted is None else {"predictions": self.predicted})


def _predictions(classifier: QuiltClassifier, table: Any, label: str | None) -> Iterator[Any]:
    """A batch of answers for each block of rows."""
    import pyarrow as pa  # noqa: PLC0415

    features = table.drop_columns([label]) if label else table
    names = [f"p({name})" for name in classifier.classes_.tolist()]
    for start in range(0, table.num_rows, _ROWS):
        chances = classifier.predict_proba(features.slice(start, _ROWS))
        answers = classifier.classes_[chances.argmax(axis=1)].tolist()
        columns = [pa.array(answers), *map(pa.array, chances.T)]
        yield pa.record_batch(columns, names=["prediction", *names])


def _print_csv(batches: Iterator[Any]) -> None:
    from pyarrow import csv  # noqa: PLC0415

    first = next(batches)
    with csv.CSVWriter(sys.stdout.buffer, first.schema) as writer:
        writer.write_batch(first)
        for batch in batches:
            writer.write_batch(batch)
