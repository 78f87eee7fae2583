"""`driftquilt predict`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftquilt.cli.data import (
    DataFiles,
    Decimal,
    Delimiter,
    Encoding,
    reading,
    tell_notes,
    text_form,
)
from driftquilt.cli.output import AsJson, check_place, print_json
from driftquilt.data.columns import is_missing
from driftquilt.data.mapped_memory import note_read
from driftquilt.errors import InputError
from driftquilt.text import plural

if TYPE_CHECKING:
    from driftquilt.quilt.classifier import QuiltClassifier

__all__ = ["predict"]

_ROWS = 65_536  # at a time
_ROW = "row"  # the column with a row's number


def predict(
    model: Annotated[Path, typer.Argument(help="A model that `select` or `save` wrote.")],
    data: DataFiles,
    out: Annotated[
        Path | None, typer.Option(help="A .parquet or .csv file; default: CSV to the screen.")
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="Column with the right answer; tells how many are right.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Column of DATA to carry along, such as an id; again for more."
        ),
    ] = None,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    as_json: AsJson = False,
) -> None:
    """Predict every row of a file, in order: the most probable label, and each one's probability.

    Rows are numbered from 0 on.

    Example: driftquilt predict out/model.safetensors new.csv --keep id --out predictions.parquet
    """
    from driftquilt.data.files import write_table  # noqa: PLC0415
    from driftquilt.quilt.classifier import QuiltClassifier  # noqa: PLC0415

    kept = list(dict.fromkeys(keep or []))
    form = text_form(delimiter, decimal, encoding)
    if out is not None:
        check_place(out)
    classifier = QuiltClassifier.load(model)
    _refuse_label(classifier, label)
    with reading(data, form, needed=[label, *kept, *_known(classifier)]) as rows:
        tell_notes(rows)
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
    told = tally.document() | {"out": None if out is None else str(out)}
    if tally.n_strange:
        strange = plural(tally.n_strange, "row")
        typer.echo(f"Note: {strange} with a {label!r} that the model never gives", err=True)
    if as_json:
        print_json("predict", told)
    elif label is not None:
        missing = told["n_rows"] - told["n_labelled"]
        beside = f"; {plural(missing, 'row')} without {label!r}" if missing else ""
        typer.echo(f"{told['n_right']} of {told['n_labelled']} right{beside}", err=True)


class _Tally:
    """What was predicted, plural as it goes by."""

    def __init__(self, label: str | None, classes: Sequence[Any]) -> None:
        self.label, self.counts = label, Counter[str]()
        self._classes, self._texts = {*classes}, {*map(str, classes)}
        self.n_right = self.n_labelled = self.n_strange = 0
        self.predicted: list[dict[str, Any]] | None = None

    def watch(self, table: Any, batches: Iterator[Any]) -> Iterator[Any]:
        start = 0
        for batch in batches:
            answers = batch.column("prediction").to_pylist()
            self.counts.update(map(str, answers))
            if self.label is not None:
                truth = table.column(self.label).slice(start, len(answers)).to_pylist()
                pairs = zip(truth, answers, strict=True)
                self._compare([pair for pair in pairs if not is_missing(pair[0])])
            start += len(answers)
            yield batch

    def _compare(self, known: Sequence[tuple[Any, Any]]) -> None:
        """Labels and answers; a file may have numbers as text, or whole ones as fractions."""
        self.n_labelled += len(known)
        for right, answer in known:
            self.n_right += right == answer or str(right) == str(answer)
            self.n_strange += right not in self._classes and str(right) not in self._texts

    def document(self) -> dict[str, Any]:
        told: dict[str, Any] = {"n_rows": self.counts.total(), "counts": dict(self.counts)}
        if self.label is not None:
            told |= {"n_labelled": self.n_labelled, "n_right": self.n_right}
        return told | ({} if self.predicted is None else {"predictions": self.predicted})


def _known(classifier: QuiltClassifier) -> list[str]:
    """The columns that the model predicts from; none if it goes by their places."""
    return list(getattr(classifier, "feature_names_in_", ()))


def _refuse_label(classifier: QuiltClassifier, label: str | None) -> None:
    if label is not None and label in _known(classifier):
        raise InputError(
            f"{label!r} is a column that the model predicts from, not the answer; give --label the "
            "column with the right answers, or leave it out"
        )


def _refuse_names(classifier: QuiltClassifier, kept: Sequence[str]) -> None:
    taken = [name for name in kept if name in (_ROW, *_answer_names(classifier))]
    if taken:
        raise InputError(
            f"column {taken[0]!r} cannot be kept: the answers have a column of that name; rename it"
        )


def _refuse_nested(table: Any, kept: Sequence[str]) -> None:
    from pyarrow.types import is_nested  # noqa: PLC0415

    for name in kept:
        if is_nested(kind := table.schema.field(name).type):
            raise InputError(
                f"column {name!r} cannot be kept: it holds {kind}; keep columns of single values"
            )


def _answer_names(classifier: QuiltClassifier) -> list[str]:
    return ["prediction", *(f"p({name})" for name in classifier.classes_.tolist())]


def _predictions(
    classifier: QuiltClassifier, table: Any, label: str | None, kept: Sequence[str]
) -> Iterator[Any]:
    """A batch for each block of rows: their numbers, what is kept of them, and the answers."""
    import pyarrow as pa  # noqa: PLC0415

    known = _known(classifier) or [name for name in table.column_names if name != label]
    features = table.select(known)  # what stands beside them need not be fit to predict from
    names = [_ROW, *kept, *_answer_names(classifier)]
    for start in range(0, table.num_rows, _ROWS):
        chances = classifier.predict_proba(features.slice(start, _ROWS))
        answers = classifier.classes_[chances.argmax(axis=1)].tolist()
        numbers = pa.array(range(start, start + len(answers)), pa.int64())
        carried = [table[name].slice(start, _ROWS).combine_chunks() for name in kept]
        columns = [numbers, *carried, pa.array(answers), *map(pa.array, chances.T)]
        yield pa.record_batch(columns, names=names)
        note_read(table.slice(start, _ROWS).nbytes)


def _print_csv(batches: Iterator[Any]) -> None:
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import csv  # noqa: PLC0415

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
