"""`driftquilt predict`, and `driftquilt export` to predict elsewhere."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray
from pyarrow import csv

from driftquilt.cli.console import (
    AsJson,
    Costs,
    DataFiles,
    Decimal,
    Delimiter,
    Encoding,
    MetricName,
    check_writable,
    print_json,
    read_data,
    read_scoring,
    say,
    say_notes,
    write_whole,
)
from driftquilt.data.arrow import note_read
from driftquilt.data.columns import is_missing
from driftquilt.data.files import write_table
from driftquilt.data.source import TextFormat
from driftquilt.decision.measure import metric_words
from driftquilt.errors import InputError
from driftquilt.integrations.onnx import OUTPUTS, describe_inputs
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.quilt.metrics import Metric
from driftquilt.quilt.models import Model, kind_of_model, load_model
from driftquilt.quilt.scores import Predictions, is_one_sided, shown_score
from driftquilt.text import plural

_ROWS = 65_536  # at a time
_ROW = "row"  # the column with a row's number


def predict(
    model: Annotated[Path, typer.Argument(help="A model written by `select` or `save`.")],
    data: DataFiles,
    out: Annotated[
        Path | None, typer.Option(help="A .parquet or .csv file; default: CSV to standard output.")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(help="Column with the true label; prints how many predictions are right."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Column of DATA to copy, such as an id; repeat for more."
        ),
    ] = None,
    metric: MetricName = None,
    cost: Costs = None,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    as_json: AsJson = False,
) -> None:
    """Predict every row of a file: the most probable label, and all probabilities.

    The answers are in the order of the rows, which are numbered from 0. With --label they are
    compared with the true labels: by accuracy, and by --metric or --cost.

    Example: driftquilt predict out/model.safetensors new.csv --keep id --out predictions.parquet
    """
    kept = list(dict.fromkeys(keep or []))
    form = TextFormat(delimiter, decimal, encoding)
    if out is not None:
        check_writable(out)
    classifier = load_model(model)
    if not hasattr(classifier, "predict_proba"):
        raise InputError(f"{model} gives no probabilities; predict with QuiltSelector.load")
    _refuse_label(classifier, label)
    scoring = _read_metric(classifier, label, metric, cost)
    with read_data(data, form, needed=[label, *kept, *_known(classifier)]) as rows:
        say_notes(rows.notes)
        _refuse_names(classifier, kept)
        _refuse_nested(rows.table, kept)
        tally = _Tally(label, classifier.classes_, scoring)
        batches = tally.watch(rows.table, _predictions(classifier, rows.table, label, kept))
        if out is not None:
            write_table(batches, out)
        elif as_json:
            tally.predicted = [row for batch in batches for row in batch.to_pylist()]
        else:
            _print_csv(batches)
    say_notes([*tally.notes()])
    if as_json:
        print_json("predict", tally.document() | {"out": None if out is None else str(out)})
    else:
        for line in tally.lines():
            say(line, err=True)


def _read_metric(
    classifier: QuiltClassifier, label: str | None, metric: str | None, costs: list[str] | None
) -> Metric | None:
    """Return the metric to score by, if one is named; refuse one that these classes do not have."""
    if metric is None and not costs:
        return None
    if label is None:
        raise InputError(
            "--metric and --cost compare answers with true labels; name their column with --label"
        )
    scoring, n_classes = read_scoring(metric, costs), len(classifier.classes_)
    if scoring.costs is not None:
        scoring.cost_matrix(classifier.classes_)  # refuses labels that are not classes
    if scoring.top is not None and n_classes != 2:  # noqa: PLR2004
        raise InputError(
            f"--metric {scoring.name} takes two classes, but the model has {n_classes}"
        )
    return scoring


class _Tally:
    """Compares predictions with labels as they pass by; rows without a label do not count.

    A metric does not count rows either whose label the model does not know.
    """

    def __init__(self, label: str | None, classes: NDArray[Any], metric: Metric | None) -> None:
        self.label, self.counts, self._truths = label, Counter[str](), Counter[str]()
        self.n_rows = self.n_right = self.n_unknown = 0
        self.predicted: list[dict[str, Any]] | None = None
        self._metric, self._classes = metric, classes
        self._places = {str(name): code for code, name in enumerate(classes.tolist())}
        self._places |= {name: code for code, name in enumerate(classes.tolist())}
        self._y: list[NDArray[np.intp]] = []
        self._chances: list[NDArray[np.float32]] = []
        self._codes: list[NDArray[np.intp]] = []

    @property
    def n_labelled(self) -> int:
        return self._truths.total()

    def watch(self, table: Any, batches: Iterator[Any]) -> Iterator[Any]:
        start = 0
        for batch in batches:
            answers = batch.column("prediction").to_pylist()
            self.counts.update(map(str, answers))
            self.n_rows += len(answers)
            if self.label is not None:
                truth = table.column(self.label).slice(start, len(answers)).to_pylist()
                self._compare(truth, answers, batch)
            start += len(answers)
            yield batch

    def _compare(self, truth: Sequence[Any], answers: Sequence[Any], batch: Any) -> None:
        """Compare labels and answers; a file may have numbers as text, or whole ones as floats."""
        y, codes = (np.array([self._code(v) for v in values]) for values in (truth, answers))
        self._truths.update(self._name(label) for label in truth if not is_missing(label))
        self.n_right += int((y == codes).sum())
        self.n_unknown += sum(
            code < 0 and not is_missing(label) for code, label in zip(y, truth, strict=True)
        )
        if self._metric is not None:
            p = np.column_stack(batch.columns[-len(self._classes) :])
            self._y.append(y[y >= 0])
            self._chances.append(p[y >= 0])
            self._codes.append(codes[y >= 0])

    def _code(self, label: Any) -> int:
        """Return the place of a label among the classes; -1 if it is missing or not known."""
        return (
            -1 if is_missing(label) else self._places.get(label, self._places.get(str(label), -1))
        )

    def _name(self, label: Any) -> str:
        code = self._code(label)
        return str(label if code < 0 else self._classes[code])

    def notes(self) -> Iterator[str]:
        """Yield what is strange about the labels."""
        if self.n_unknown:
            rows = plural(self.n_unknown, "row")
            yield f"{rows} with a {self.label!r} that the model does not know"
        if is_one_sided(np.array([*self._truths.values()])):
            ((label, n_alike),) = self._truths.most_common(1)
            instead = "" if self._metric else ", and --metric names one that does, such as roc_auc"
            yield (
                f"always answering {label} gets {n_alike:,} of {self.n_labelled:,} right, so "
                f"accuracy says little{instead}"
            )

    def lines(self) -> Iterator[str]:
        """Yield what the answers are worth."""
        if self.label is None:
            return
        n_missing = self.n_rows - self.n_labelled
        missing = f"; {plural(n_missing, 'row')} without {self.label!r}" if n_missing else ""
        yield f"{self.n_right} of {self.n_labelled} right{missing}"
        if self._metric is not None:
            score, words = self._score(self._metric), metric_words(self._metric.name)
            value = f"not defined, {self._why()}" if score["value"] is None else score["value"]
            figure = value if isinstance(value, str) else f"{value:.4f}"
            yield f"{words} of {plural(score['n_rows'], 'row')}: {figure}"

    def _why(self) -> str:
        """Return why a score is not defined."""
        seen = {*np.concatenate(self._y).tolist()}
        if len(seen) == 1:
            return f"because all have the label {self._classes[seen.pop()]}"
        return "because none has a label that the model knows" if not seen else "by these rows"

    def _score(self, metric: Metric) -> dict[str, Any]:
        y, codes = np.concatenate(self._y), np.concatenate(self._codes)
        chances = np.concatenate(self._chances).astype(np.float64)
        value = shown_score(metric, y, Predictions(chances, codes), self._classes)
        return {
            "metric": metric.name, "value": value, "n_rows": len(y),
            "lower_is_better": metric.is_loss,
        }  # fmt: skip

    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = {"n_rows": self.n_rows, "counts": dict(self.counts)}
        if self.label is not None:
            alike = [{"label": k, "n_right": n} for k, n in self._truths.most_common(1)]
            document |= {"n_labelled": self.n_labelled, "n_right": self.n_right}
            document["constant"] = alike[0] if alike else None
        if self._metric is not None:
            document["score"] = self._score(self._metric)
        if self.predicted is not None:
            document["predictions"] = self.predicted
        return document


def _known(classifier: Model) -> list[str]:
    """Return the columns that the model predicts from; none if it goes by their order."""
    return list(getattr(classifier, "feature_names_in_", ()))


def _refuse_label(classifier: Model, label: str | None) -> None:
    if label is not None and label in _known(classifier):
        raise InputError(
            f"{label!r} is a column that the model predicts from, not the label; give --label the "
            "column with the true labels, or leave it out"
        )


def _refuse_names(classifier: Model, kept: Sequence[str]) -> None:
    taken = [name for name in kept if name in (_ROW, *_answer_names(classifier))]
    if taken:
        raise InputError(
            f"column {taken[0]!r} cannot be kept: the output has a column of that name; rename it"
        )


def _refuse_nested(table: Any, kept: Sequence[str]) -> None:
    for name in kept:
        if pa.types.is_nested(kind := table.schema.field(name).type):
            raise InputError(
                f"column {name!r} cannot be kept: it holds {kind}; keep columns of single values"
            )


def _answer_names(classifier: Model) -> list[str]:
    return ["prediction", *(f"p({name})" for name in classifier.classes_.tolist())]


def _predictions(
    classifier: Model, table: Any, label: str | None, kept: Sequence[str]
) -> Iterator[Any]:
    """Yield a batch for each block of rows: numbers, columns kept, and answers."""
    known = _known(classifier) or [name for name in table.column_names if name != label]
    features = table.select(known)  # other columns need not be usable
    names = [_ROW, *kept, *_answer_names(classifier)]
    for start in range(0, table.num_rows, _ROWS):
        probabilities = classifier.predict_proba(features.slice(start, _ROWS))
        answers = classifier.answers(probabilities).tolist()
        numbers = pa.array(range(start, start + len(answers)), pa.int64())
        copied = [table[name].slice(start, _ROWS).combine_chunks() for name in kept]
        columns = [numbers, *copied, pa.array(answers), *map(pa.array, probabilities.T)]
        yield pa.record_batch(columns, names=names)
        note_read(table.slice(start, _ROWS).nbytes)


def _print_csv(batches: Iterator[Any]) -> None:
    first = next(batches)
    try:
        with csv.CSVWriter(sys.stdout.buffer, first.schema) as writer:
            writer.write_batch(first)
            for batch in batches:
                writer.write_batch(batch)
    except pa.ArrowException as error:
        raise InputError(
            f"CSV cannot hold a column of --keep: {error}; leave it out, or try --out with Parquet"
        ) from error


def export(
    model: Annotated[Path, typer.Argument(help="A model written by `select` or `save`.")],
    to: Annotated[Path, typer.Option(help="The .onnx file to write.")],
    missing: Annotated[str, typer.Option(help="Text that stands for a missing value.")] = "",
    as_json: AsJson = False,
) -> None:
    """Write a model as ONNX, for runtimes without driftquilt: raw columns in, labels out.

    Example: driftquilt export out/model.safetensors --to model.onnx
    """
    if to.suffix.lower() != ".onnx":
        raise InputError(f"cannot write {to}: its name must end in .onnx")
    classifier = load_model(model)
    if not isinstance(classifier, QuiltClassifier):
        raise InputError(
            f"{model} holds a model of the kind {kind_of_model(classifier)}, and only a net can be "
            "written as ONNX: select with --model net, or convert `estimators_` of "
            "QuiltSelector.load with onnxmltools or skl2onnx"
        )
    content = classifier.to_onnx(missing=missing)
    write_whole(to, content)
    inputs = describe_inputs(classifier, missing)
    if as_json:
        document = {"out": str(to), "n_bytes": len(content), "inputs": inputs}
        classes = classifier.classes_.tolist()
        print_json("export", document | {"outputs": list(OUTPUTS), "classes": classes})
        return
    typer.echo(f"{to}: {len(content):,} bytes")
    for one in inputs:
        typer.echo(f"  in   {one['name']}: {one['type']}, {one['holds']}")
    if classifier.encoder_ is not None:
        typer.echo("       each as a column, of the shape (rows, 1)")
    typer.echo(f"  out  {OUTPUTS[0]}, {OUTPUTS[1]}: of {', '.join(map(str, classifier.classes_))}")
