r"""Rows of a CSV file, whose columns' kinds are found on the way.

Empty fields and NA, NaN, null, NULL, N/A are missing, quoted or not; blank lines are skipped.
Kinds are guessed from the first block: whole numbers, fractions, booleans, ISO dates and time
stamps (of microseconds), else text. `TextForm` says what stands between fields and which decimal
mark numbers have; text that looks like numbers with the other mark, or like dates in another form,
is noted. Where a later value does not fit, the kind is widened and reading has to begin anew:
`BeginAnew`.

>>> from driftquilt.data.raw import spool
>>> rows = CsvRows(spool("a.csv", io.BytesIO(b"age,day\n31,2024-05-01\nNA,\n")))
>>> [batch.to_pydict() for batch in rows.batches()]
[{'age': [31, None], 'day': [datetime.date(2024, 5, 1), None]}]
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyarrow import csv

from driftquilt.data.decimal_marks import MarkWatch
from driftquilt.data.kinds import join
from driftquilt.data.lines import read_header, refuse_bad_byte, refuse_bad_row
from driftquilt.data.names import unnamed
from driftquilt.data.raw import Source, reading
from driftquilt.data.text_form import USUAL, TextForm
from driftquilt.data.written_dates import DateWatch
from driftquilt.errors import InputError

__all__ = ["BeginAnew", "CsvRows"]

BLOCK = 1 << 20  # bytes; pyarrow reads many such blocks ahead

# What pyarrow says of a value that does not fit; it has no other way to tell the column.
_MISFIT = re.compile(r"In CSV column #(\d+): CSV conversion error to [^:]*: [^']*'(.*)'", re.S)
_SHOWN = 40  # characters of a value in a note


class BeginAnew(Exception):  # noqa: N818  not an error: it never leaves `sources`
    """The kinds of an input's columns have changed; rows read so far do not fit them."""


class CsvRows:
    """The rows of one file; `notes` tells which columns were widened or look odd, and why."""

    def __init__(self, source: Source, form: TextForm = USUAL) -> None:
        self.source = source
        self._decimal = form.decimal
        tabs = ".tsv" in source.name.lower()
        self._header = read_header(source, separator=form.delimiter, tabs=tabs)
        self.notes = unnamed(source.name, self._header.given)
        self._kinds = self._guess()

    @property
    def schema(self) -> Any:
        return pa.schema(self._kinds)

    def batches(self) -> Iterator[Any]:
        """All rows, in order; raises `BeginAnew` after a kind was widened."""
        watches = MarkWatch(self._decimal), DateWatch()
        last = None
        try:
            with self.source.text() as file, self._open(file, self._kinds) as reader:
                for batch in reader:
                    for watch in watches:
                        watch.look(batch)
                    yield batch
                    last = batch if batch.num_rows else last
        except InputError as error:
            if isinstance(error.__cause__, pa.ArrowInvalid):
                self._explain(str(error.__cause__))
            raise
        if last is not None and _ends_with_lines(last):  # so does a quote that is never closed
            refuse_bad_row(self.source, self._header)
        # Beside other files this one may be read anew, and says the same again.
        found = [note for watch in watches for note in watch.notes(self.source.name)]
        self.notes += [note for note in found if note not in self.notes]

    def _open(self, file: Any, kinds: dict[str, Any] | None = None) -> Any:
        header = self._header
        return csv.open_csv(
            file,
            csv.ReadOptions(
                block_size=BLOCK,
                column_names=header.names,
                skip_rows=header.n_blank,
                skip_rows_after_names=1,
            ),
            csv.ParseOptions(delimiter=header.separator, newlines_in_values=True),
            csv.ConvertOptions(
                column_types=kinds, strings_can_be_null=True, decimal_point=self._decimal
            ),
        )

    def _guess(self) -> dict[str, Any]:
        try:
            with self.source.text() as file, self._open(file) as reader:
                schema = reader.schema
        except InputError as error:
            if isinstance(error.__cause__, pa.ArrowInvalid):
                self._explain(str(error.__cause__))
            raise
        if any(pa.types.is_binary(kind) for kind in schema.types):
            refuse_bad_byte(self.source)
        return {field.name: _usual(field.type) for field in schema}

    def _explain(self, message: str) -> None:
        """Widen and begin anew, or raise what is wrong in words; return if neither is known."""
        misfit = _MISFIT.search(message)
        if misfit is not None:
            self._widen(self._header.names[int(misfit[1])], misfit[2])
            raise BeginAnew
        if "UTF8" in message:
            refuse_bad_byte(self.source)
        refuse_bad_row(self.source, self._header)
        if "straddling" in message or "out of sync" in message:
            raise InputError(
                f"{self.source.name}: a row is longer than {BLOCK >> 20} MB; shorten or drop its "
                "long texts"
            )

    def _widen(self, name: str, value: str) -> None:
        before = self._kinds[name]
        after = join(before, _kind_of(value, self._decimal))
        if after is None or after == before:
            after = pa.string()
        elif not pa.types.is_timestamp(before):
            after = _usual(after)
        self._kinds[name] = after
        if not pa.types.is_null(before):
            shown = value if len(value) <= _SHOWN else value[:_SHOWN] + "…"
            self.notes.append(
                f"{self.source.name}: column {name!r} is read as {after}, not {before}, because it "
                f"holds {shown!r}"
            )


def _ends_with_lines(batch: Any) -> bool:
    """Whether text in the last row has more than one line."""
    values = (column[-1].as_py() for column in batch.columns)
    return any(isinstance(value, str) and "\n" in value for value in values)


def _kind_of(value: str, decimal: str) -> Any:
    """The kind of a column that holds this value alone."""
    quoted = value.replace('"', '""')
    text = io.BytesIO(f'x,y\n"{quoted}",\n'.encode(errors="replace"))
    parse = csv.ParseOptions(newlines_in_values=True)
    convert = csv.ConvertOptions(decimal_point=decimal)
    with reading("a value"):
        return csv.read_csv(text, parse_options=parse, convert_options=convert).schema.field(0).type


def _usual(kind: Any) -> Any:
    """Time stamps in microseconds, the finest that Python has; other kinds as they are."""
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else kind
