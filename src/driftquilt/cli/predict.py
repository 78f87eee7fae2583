"""`driftquilt predict`, and `driftquilt export` to predict elsewhere."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
import pyarrow as pa
import typer
from numpy.typing import NDArray
from pyarrow import csv
from sklearn.base import is_regressor

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
from driftquilt.errors import InputError
from driftquilt.integrations.onnx import NUMBER_OUTPUTS, OUTPUTS, describe_inputs
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.quilt.explanation import percent
from driftquilt.quilt.metrics import (
    Metric,
    NumberMetric,
    Predictions,
    find_number_metric,
    is_one_sided,
    metric_words,
    shown_score,
)
from driftquilt.quilt.model_file import REGRESSION
from driftquilt.quilt.models import Model, kind_of_model, load_model
from driftquilt.quilt.regressor import QuiltRegressor
from driftquilt.text import plural

_ROWS = 65_536  # at a time
_ROW = "row"  # the column with a row's number
_NUMBER, _ENDS = "prediction", ("low", "high")  # of a model of numbers
_COVERAGE = 0.8  # of its intervals

AnyModel: TypeAlias = Model | QuiltRegressor


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
    compared with the true labels: by accuracy, and by --metric or --cost. A model of numbers gives
    a number, and of a net the ends of an interval that holds 80 % of them.

    Example: driftquilt predict out/model.safetensors new.csv --keep id --out predictions.parquet
    """
    kept = list(dict.fromkeys(keep or []))
    form = TextFormat(delimiter, decimal, encoding)
    if out is not None:
        check_writable(out)
    classifier = load_model(model)
    if not hasattr(classifier, "predict_proba") and not is_regressor(classifier):
        raise InputError(f"{model} gives no probabilities; predict with QuiltSelector.load")
    _refuse_label(classifier, label)
    tally = _make_tally(classifier, label, metric, cost)
    with read_data(data, form, needed=[label, *kept, *_known(classifier)]) as rows:
        say_notes(rows.notes)
        _refuse_names(classifier, kept)
        _refuse_nested(rows.table, kept)
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


def _make_tally(
    model: AnyModel, label: str | None, metric: str | None, costs: list[str] | None
) -> _Tally | _NumberTally:
    """Return what compares answers with labels."""
    if not is_regressor(model):
        return _Tally(label, model.classes_, _read_metric(model, label, metric, costs))
    if costs:
        raise InputError("--cost is for classes, but this model predicts numbers; use --metric")
    if metric is not None and label is None:
        raise InputError(
            "--metric compares answers with true numbers; name their column with --label"
        )
    return _NumberTally(label, None if metric is None else find_number_metric(metric))


def _read_metric(
    classifier: Any, label: str | None, metric: str | None, costs: list[str] | None
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
        if is_missing(label):
            return -1
        spellings = (label, str(label), str(label).strip())
        return next((self._places[text] for text in spellings if text in self._places), -1)

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


class _NumberTally:
    """Compares predicted numbers with true ones as they pass by; rows without one do not count."""

    def __init__(self, label: str | None, metric: NumberMetric | None) -> None:
        self.label, self._metric = label, metric
        self.n_rows = 0
        self.predicted: list[dict[str, Any]] | None = None
        self._y: list[NDArray[np.float64]] = []
        self._answers: list[NDArray[np.float64]] = []

    def watch(self, table: Any, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            names = [name for name in (_NUMBER, *_ENDS) if name in batch.schema.names]
            answers = np.column_stack([batch.column(name).to_numpy() for name in names])
            if self.label is not None:
                truth = table.column(self.label).slice(self.n_rows, len(answers))
                y = _read_numbers(self.label, truth)
                self._y.append(y[~np.isnan(y)])
                self._answers.append(answers[~np.isnan(y)])
            self.n_rows += len(answers)
            yield batch

    def notes(self) -> Iterator[str]:
        """Yield nothing: numbers are not one-sided, and none is unknown."""
        return iter(())

    def lines(self) -> Iterator[str]:
        """Yield what the answers are worth."""
        if self.label is None:
            return
        figures = self._figures()
        n_missing = self.n_rows - figures["n_labelled"]
        missing = f"; {plural(n_missing, 'row')} without {self.label!r}" if n_missing else ""
        if not figures["n_labelled"]:
            yield f"no row has a {self.label!r}"
            return
        yield (
            f"mean absolute error {figures['mae']:.4g} over {plural(figures['n_labelled'], 'row')}"
            f" (R2 {figures['r2']:.3f}){missing}"
        )
        if figures["coverage"] is not None:
            share = percent(figures["coverage"])
            yield f"{share} lie in the interval, which is for {_COVERAGE:.0%}"
        if "score" in figures:
            value, words = figures["score"]["value"], metric_words(figures["score"]["metric"])
            yield f"{words}: {value:.4g}"

    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = {"task": REGRESSION, "n_rows": self.n_rows}
        if self.label is not None:
            document |= self._figures()
        if self.predicted is not None:
            document["predictions"] = self.predicted
        return document

    def _figures(self) -> dict[str, Any]:
        y, answers = np.concatenate(self._y), np.concatenate(self._answers)
        found: dict[str, Any] = dict.fromkeys(("mae", "r2", "coverage"))
        if len(y):
            found["mae"] = float(np.abs(answers[:, 0] - y).mean())
            found["r2"] = find_number_metric("r2").score(y, answers[:, 0])
        if len(y) and answers.shape[1] > 1:
            found["coverage"] = float(((answers[:, 1] <= y) & (y <= answers[:, 2])).mean())
        if self._metric is not None:
            value = self._metric.score(y, answers[:, 0])
            found["score"] = {
                "metric": self._metric.name, "value": -value if self._metric.is_loss else value,
                "n_rows": len(y), "lower_is_better": self._metric.is_loss,
            }  # fmt: skip
        return {"n_labelled": len(y), **found}


def _read_numbers(name: str, column: Any) -> NDArray[np.float64]:
    """Return true numbers, NaN where missing; a file may have them as text."""
    try:
        numbers = column.cast(pa.float64())
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{name!r} is compared with numbers, but holds something else: {error}"
        ) from error
    read: NDArray[np.float64] = numbers.to_numpy()
    return read


def _known(classifier: AnyModel) -> list[str]:
    """Return the columns that the model predicts from; none if it goes by their order."""
    return list(getattr(classifier, "feature_names_in_", ()))


def _refuse_label(classifier: AnyModel, label: str | None) -> None:
    if label is not None and label in _known(classifier):
        raise InputError(
            f"{label!r} is a column that the model predicts from, not the label; give --label the "
            "column with the true labels, or leave it out"
        )


def _refuse_names(classifier: AnyModel, kept: Sequence[str]) -> None:
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


def _answer_names(classifier: AnyModel) -> list[str]:
    if is_regressor(classifier):
        return [_NUMBER, *(_ENDS if isinstance(classifier, QuiltRegressor) else ())]
    return ["prediction", *(f"p({name})" for name in classifier.classes_.tolist())]


def _predictions(
    classifier: AnyModel, table: Any, label: str | None, kept: Sequence[str]
) -> Iterator[Any]:
    """Yield a batch for each block of rows: numbers, columns kept, and answers."""
    known = _known(classifier) or [name for name in table.column_names if name != label]
    features = table.select(known)  # other columns need not be usable
    names = [_ROW, *kept, *_answer_names(classifier)]
    for start in range(0, table.num_rows, _ROWS):
        answers = _answer(classifier, features.slice(start, _ROWS))
        numbers = pa.array(range(start, start + len(answers[0])), pa.int64())
        copied = [table[name].slice(start, _ROWS).combine_chunks() for name in kept]
        columns = [numbers, *copied, *map(pa.array, answers)]
        yield pa.record_batch(columns, names=names)
        note_read(table.slice(start, _ROWS).nbytes)


def _answer(model: Any, rows: Any) -> list[Any]:
    """Return the columns that `_answer_names` names."""
    if isinstance(model, QuiltRegressor):
        return [model.predict(rows), *model.predict_interval(rows, _COVERAGE).T]
    if is_regressor(model):
        return [model.predict(rows)]
    probabilities = model.predict_proba(rows)
    return [model.answers(probabilities).tolist(), *probabilities.T]


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
    """Write a model as ONNX, for runtimes without driftquilt: columns in, answers out.

    Example: driftquilt export out/model.safetensors --to model.onnx
    """
    if to.suffix.lower() != ".onnx":
        raise InputError(f"cannot write {to}: its name must end in .onnx")
    classifier = load_model(model)
    if not isinstance(classifier, QuiltClassifier | QuiltRegressor):
        raise InputError(
            f"{model} holds a model of the kind {kind_of_model(classifier)}, and only a net can be "
            "written as ONNX: select with --model net, or convert `estimators_` of "
            "QuiltSelector.load with onnxmltools or skl2onnx"
        )
    content = classifier.to_onnx(missing=missing)
    write_whole(to, content)
    inputs = describe_inputs(classifier, missing)
    is_regression = isinstance(classifier, QuiltRegressor)
    outputs = list(NUMBER_OUTPUTS if is_regression else OUTPUTS)
    classes = [] if isinstance(classifier, QuiltRegressor) else classifier.classes_.tolist()
    if as_json:
        document = {"out": str(to), "n_bytes": len(content), "inputs": inputs, "outputs": outputs}
        print_json("export", document | {"classes": classes})
        return
    typer.echo(f"{to}: {len(content):,} bytes")
    for one in inputs:
        typer.echo(f"  in   {one['name']}: {one['type']}, {one['holds']}")
    if classifier.encoder_ is not None:
        typer.echo("       each as a column, of the shape (rows, 1)")
    what = f"for {_COVERAGE:.0%} of the targets"
    if classes:
        what = f"of {', '.join(map(str, classes))}"
    typer.echo(f"  out  {', '.join(outputs)}: {what}")
