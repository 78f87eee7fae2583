"""`driftquilt predict`, and `driftquilt export` to predict elsewhere."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from pyarrow import csv

from driftquilt.cli.console import (
    AsJson,
    DataFiles,
    Decimal,
    Delimiter,
    Encoding,
    check_writable,
    print_json,
    read_data,
    say_notes,
    write_whole,
)
from driftquilt.data.arrow import note_read
from driftquilt.data.columns import is_missing
from driftquilt.data.files import write_table
from driftquilt.data.source import TextFormat
from driftquilt.errors import InputError
from driftquilt.integrations.onnx import OUTPUTS, describe_inputs
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.quilt.models import Model, kind_of_model, load_model
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
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    as_json: AsJson = False,
) -> None:
    """Predict every row of a file: the most probable label, and all probabilities.

    The answers are in the order of the rows, which are numbered from 0.

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
    with read_data(data, form, needed=[label, *kept, *_known(classifier)]) as rows:
        say_notes(rows.notes)
        _refuse_names(classifier, kept)
        _refuse_nested(rows.table, kept)
        tally = _Tally(label, classifier.classes_.tolist())
        batches = tally.watch(rows.table, _predictions(classifier, rows.table, label, kept))
        if out is not None:
            write_table(batches, out)
        elif as_json:
            tally.predicted = [row for batch in batches for row in batch.to_pylist()]
        else:
            _print_csv(batches)
    if tally.n_unknown:
        n_rows = plural(tally.n_unknown, "row")
        typer.echo(f"Note: {n_rows} with a {label!r} that the model does not know", err=True)
    if as_json:
        print_json("predict", tally.document() | {"out": None if out is None else str(out)})
    elif label is not None:
        n_missing = tally.n_rows - tally.n_labelled
        missing = f"; {plural(n_missing, 'row')} without {label!r}" if n_missing else ""
        typer.echo(f"{tally.n_right} of {tally.n_labelled} right{missing}", err=True)


class _Tally:
    """Counts predictions as they pass by."""

    def __init__(self, label: str | None, classes: Sequence[Any]) -> None:
        self.label, self.counts = label, Counter[str]()
        self._classes, self._texts = {*classes}, {*map(str, classes)}
        self.n_rows = self.n_right = self.n_labelled = self.n_unknown = 0
        self.predicted: list[dict[str, Any]] | None = None

    def watch(self, table: Any, batches: Iterator[Any]) -> Iterator[Any]:
        start = 0
        for batch in batches:
            answers = batch.column("prediction").to_pylist()
            self.counts.update(map(str, answers))
            self.n_rows += len(answers)
            if self.label is not None:
                truth = table.column(self.label).slice(start, len(answers)).to_pylist()
                pairs = zip(truth, answers, strict=True)
                self._compare([pair for pair in pairs if not is_missing(pair[0])])
            start += len(answers)
            yield batch

    def _compare(self, known: Sequence[tuple[Any, Any]]) -> None:
        """Compare labels and answers; a file may have numbers as text, or whole ones as floats."""
        self.n_labelled += len(known)
        for label, answer in known:
            self.n_right += label == answer or str(label) == str(answer)
            self.n_unknown += label not in self._classes and str(label) not in self._texts

    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = {"n_rows": self.n_rows, "counts": dict(self.counts)}
        if self.label is not None:
            document |= {"n_labelled": self.n_labelled, "n_right": self.n_right}
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
