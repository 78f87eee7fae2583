r"""Rows of a CSV file, whose column types are detected while reading.

The header is the first line that is not blank; unless `TextFormat` names the delimiter, it is the
one of `,` `;` tab and `|` that the header has most of, outside quotes. Empty fields and NA, NaN,
null, NULL, N/A are missing, quoted or not; blank lines are skipped. Types are guessed from the
first block: integers, floats, booleans, ISO dates and timestamps (in microseconds), else text.
Where a later value does not fit, the type is widened and reading has to restart: `TypesChanged`.

Amounts as people write them, such as `1,234.50`, `$9`, `(3.20)` or `12 %`, are read as numbers if
all values of their column are amounts; a note says so. A comma in `3,14` makes text of a number
where a point is expected, and in `17.05.2021` nothing says which is the month. Such columns stay
text; a note says how to have them read.

What is wrong with a file is found a second time by a slow, plain reader, which knows the line.

>>> from driftquilt.data.source import spool
>>> rows = CsvRows(spool("a.csv", io.BytesIO(b"age;day\n31;2024-05-01\nNA;\n")))
>>> [batch.to_pydict() for batch in rows.batches()]
[{'age': [31, None], 'day': [datetime.date(2024, 5, 1), None]}]
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from driftquilt.data.column_types import common_type, is_number
from driftquilt.data.source import BLOCK, ByteSource, TextFormat, reading
from driftquilt.errors import InputError
from driftquilt.text import is_numeral, listing, one_line

_BLOCK = 1 << 20  # bytes; pyarrow reads many such blocks ahead
_DELIMITERS = (",", ";", "\t", "|")
_END = "\x1a end of data \x1a"  # read as a row of its own, unless a quote is open
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

# What pyarrow says of a value that does not fit; it has no other way to name the column. The row is
# named where it has one thread alone.
_MISFIT = re.compile(
    r"In CSV column #(\d+): (?:Row #\d+: )?CSV conversion error to [^:]*: [^']*'(.*)'", re.S
)
_SHOWN = 40  # characters of a value in a note
_CURRENCY = "([$€£¥₹]|AUD|CAD|CHF|EUR|GBP|INR|JPY|USD)"

# Dates as they are written elsewhere.
_DAY_FIRST = r"\d{1,2}\.\d{1,2}\.\d{4}|\d{1,2}/\d{1,2}/(\d{4}|\d{2})|\d{1,2}-\d{1,2}-\d{4}"
_YEAR_FIRST = r"\d{4}/\d{1,2}/\d{1,2}|\d{4}\.\d{1,2}\.\d{1,2}"
_TIME = r"[ T]+\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[AaPp][Mm])?"


class TypesChanged(Exception):  # noqa: N818  not an error: it never leaves `data`
    """The column types of an input have changed; rows read so far do not fit them."""


@dataclass(frozen=True)
class _Header:
    """The names as written and as used, the delimiter, and the number of blank lines above."""

    written: list[str]
    names: list[str]
    delimiter: str
    n_blank: int


class CsvRows:
    """The rows of one file; `notes` says which columns were widened or look odd, and why."""

    def __init__(self, source: ByteSource, form: TextFormat = TextFormat()) -> None:  # noqa: B008
        self.source = source
        self._decimal = form.decimal
        self._header = _read_header(source, form.delimiter)
        self.notes = unnamed_notes(source.name, self._header.written)
        self._amounts = Amounts(form.decimal)
        self._types = self._guess_types()

    @property
    def schema(self) -> Any:
        is_amount = self._amounts.columns.__contains__
        return pa.schema({n: pa.float64() if is_amount(n) else t for n, t in self._types.items()})

    def batches(self) -> Iterator[Any]:
        """Yield all rows, in order; raise `TypesChanged` after a type was widened."""
        hints = DecimalHints(self._decimal), DateHints()
        last = None
        with self._open(self._types) as reader:
            for read in reader:
                batch = self._amounts.parse(read)
                if batch is None:
                    raise TypesChanged
                for each in hints:
                    each.add(batch)
                yield batch
                last = batch if batch.num_rows else last
        if last is not None and _ends_with_lines(last):  # so does a quote that is never closed
            _refuse_bad_row(self.source, self._header)
        # Beside other files this one may be read again, and would repeat its notes.
        notes = [note for each in (self._amounts, *hints) for note in each.notes(self.source.name)]
        self.notes += [note for note in notes if note not in self.notes]

    def _guess_types(self) -> dict[str, Any]:
        with self._open() as reader:
            schema = reader.schema
            first = next(iter(reader), None)
        if first is not None:
            self._amounts.find(first)
        if any(pa.types.is_binary(kind) for kind in schema.types):
            refuse_bad_byte(self.source)
        return {field.name: _in_microseconds(field.type) for field in schema}

    @contextmanager
    def _open(self, column_types: dict[str, Any] | None = None) -> Iterator[Any]:
        """Open the file for pyarrow, and explain what it does not understand."""
        header = self._header
        options = (
            arrow_csv.ReadOptions(
                block_size=_BLOCK,
                column_names=header.names,
                skip_rows=header.n_blank,
                skip_rows_after_names=1,
            ),
            arrow_csv.ParseOptions(delimiter=header.delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                column_types=column_types, strings_can_be_null=True, decimal_point=self._decimal
            ),
        )
        try:
            with self.source.text() as file, arrow_csv.open_csv(file, *options) as reader:
                yield reader
        except InputError as error:
            if isinstance(error.__cause__, pa.ArrowInvalid):
                self._explain(str(error.__cause__))
            raise

    def _explain(self, message: str) -> None:
        """Widen a type and restart, or raise what is wrong; return if neither is known."""
        misfit = _MISFIT.search(message)
        if misfit is not None:
            self._widen(self._header.names[int(misfit[1])], misfit[2])
            raise TypesChanged
        if "UTF8" in message:
            refuse_bad_byte(self.source)
        _refuse_bad_row(self.source, self._header)
        if "straddling" in message or "out of sync" in message:
            raise InputError(
                f"{self.source.name}: a row is longer than {_BLOCK >> 20} MB; shorten or drop its "
                "long texts"
            )

    def _widen(self, name: str, value: str) -> None:
        before, needed = self._types[name], _type_of(value, self._decimal)
        is_text = pa.types.is_string(needed) and (is_number(before) or pa.types.is_null(before))
        if is_text and self._amounts.add(name, value):
            self._types[name] = pa.string()
            return
        after = common_type(before, needed)
        if after is None or after == before:
            after = pa.string()
        elif not pa.types.is_timestamp(before):
            after = _in_microseconds(after)
        self._types[name] = after
        if not pa.types.is_null(before):
            self.notes.append(
                f"{self.source.name}: column {name!r} is read as {after}, not {before}, because it "
                f"holds {_shortened(value)!r}"
            )


class Amounts:
    """Columns of text in which every value is an amount; they become numbers.

    >>> amounts = Amounts(".")
    >>> rows = pa.record_batch({"paid": ["$1,234.50", None, "(7)"], "city": ["Oslo", "3", "4"]})
    >>> amounts.find(rows)
    >>> amounts.parse(rows)["paid"].to_pylist()
    [1234.5, None, -7.0]
    >>> amounts.notes("a.csv")
    ["a.csv: column 'paid' is read as numbers, since its values look like '$1,234.50'"]
    """

    def __init__(self, decimal: str) -> None:
        group = "," if decimal == "." else "."
        mark = re.escape(decimal)
        fraction = rf"({mark}\d*)?"
        groups = rf"[1-9]\d{{0,2}}([{group}'\x{{2019}}\x{{a0}}\x{{202f}}]\d{{3}})+{fraction}"
        spaced = rf"[1-9]\d{{0,2}}( \d{{3}})+{mark}\d+"  # without a fraction, a phone number
        plain = rf"\d+{fraction}([eE][+-]?\d+)?|{mark}\d+"
        number = rf"[+-]?\s*{_CURRENCY}?\s*[+-]?({groups}|{spaced}|{plain})\s*({_CURRENCY}|%)?"
        self._pattern = rf"^\s*({number}|\(\s*{number}\s*\))\s*$"
        self._marks = rf"{_CURRENCY}|[%()+\s{group}'\x{{2019}}\x{{a0}}\x{{202f}}]"
        self._decimal = decimal
        self._ruled_out: dict[str, str] = {}  # and a value that rules it out
        self.columns: dict[str, str] = {}  # an example of each

    def find(self, batch: Any) -> None:
        """Look for such columns in the first rows."""
        for field in batch.schema:
            if pa.types.is_string(field.type):
                values = batch.column(field.name).drop_null()
                if len(values) and self._are_amounts(values):
                    marked = values.filter(pc.match_substring_regex(values, self._marks))
                    if len(marked):
                        self.columns[field.name] = marked[0].as_py()

    def add(self, name: str, value: str) -> bool:
        """Take a column of numbers for one of amounts because of this value, if it is one."""
        if name in self._ruled_out or not self._are_amounts(pa.array([value])):
            return False
        self.columns[name] = value
        return True

    def parse(self, batch: Any) -> Any:
        """Return the rows with amounts as numbers; None if a value is none, so that it is text."""
        for name in list(self.columns):
            values = batch.column(name)
            if not self._are_amounts(values):
                del self.columns[name]
                fits = pc.match_substring_regex(values, self._pattern)
                self._ruled_out[name] = values.filter(pc.invert(fits))[0].as_py()
                return None
            place = batch.schema.get_field_index(name)
            batch = batch.set_column(place, name, self._numbers(values))
        return batch

    def notes(self, where: str) -> list[str]:
        """Return a note for each of the columns."""
        return [
            f"{where}: column {name!r} is read as numbers, since its values look like {example!r}"
            for name, example in self.columns.items()
        ] + [
            f"{where}: column {name!r} is read as text, not numbers, because it holds "
            f"{_shortened(value)!r}"
            for name, value in self._ruled_out.items()
        ]

    def _are_amounts(self, values: Any) -> bool:
        matches = pc.all(pc.match_substring_regex(values, self._pattern), min_count=0)
        return bool(matches.as_py())

    def _numbers(self, values: Any) -> Any:
        is_negative = pc.starts_with(pc.utf8_ltrim_whitespace(values), "(")
        digits = pc.replace_substring_regex(values, self._marks, "")
        numbers = pc.replace_substring(digits, self._decimal, ".").cast(pa.float64())
        return pc.if_else(is_negative, pc.negate(numbers), numbers)


class _Hints:
    """Text columns whose values all match `pattern`, with an example of each.

    Only a value that contains `required` can be an example. A column is dropped at its first value
    that does not match, so nearly all text is looked at only once.
    """

    def __init__(self, pattern: str, advice: str, required: str = "") -> None:
        self._pattern, self._advice, self._required = pattern, advice, required
        self._examples: dict[str, str] = {}
        self._ruled_out: set[str] = set()

    def add(self, batch: Any) -> None:
        """Look at some more rows."""
        for field in batch.schema:
            if pa.types.is_string(field.type) and field.name not in self._ruled_out:
                self._add(field.name, batch.column(field.name))

    def notes(self, where: str) -> list[str]:
        """Return a note for each column that matches to the last value."""
        return [
            f"{where}: column {name!r} is read as text, but {self._advice.format(repr(example))}"
            for name, example in self._examples.items()
        ]

    def _add(self, name: str, column: Any) -> None:
        if not pc.all(pc.match_substring_regex(column, self._pattern), min_count=0).as_py():
            self._ruled_out.add(name)
            self._examples.pop(name, None)
        elif name not in self._examples:
            examples = column.filter(pc.match_substring(column, self._required))
            if len(examples):
                self._examples[name] = examples[0].as_py()


class DecimalHints(_Hints):
    """Columns of numbers with the decimal mark that is not `decimal`.

    >>> hints = DecimalHints(".")
    >>> hints.add(pa.record_batch({"size": ["3,14", None, "7"], "city": ["Oslo", "3,1", "4"]}))
    >>> hints.notes("a.csv")[0].partition("; ")[2]
    'read it as numbers with --decimal ,'
    """

    def __init__(self, decimal: str) -> None:
        mark, word, regex = (",", "comma", ",") if decimal == "." else (".", "point", r"\.")
        grouped = rf"\d{{1,3}}([{decimal} ]\d{{3}})+{regex}\d+"
        number = rf"{grouped}|\d+({regex}\d*)?|{regex}\d+"
        super().__init__(
            rf"^\s*[+-]?({number})([eE][+-]?\d+)?\s*$",
            f"looks like numbers with a decimal {word}, such as {{}}; read it as numbers with "
            f"--decimal {mark}",
            required=mark,
        )


class DateHints(_Hints):
    """Columns of dates that are not written as 2021-05-17.

    >>> hints = DateHints()
    >>> hints.add(pa.record_batch({"signup": ["17.05.2021", None], "version": ["1.2.2021", "3"]}))
    >>> hints.notes("a.csv")
    ["a.csv: column 'signup' is read as text, but looks like dates, such as '17.05.2021'; --time \
may take them so, but to have them read as dates, write them as 2021-05-17"]
    """

    def __init__(self) -> None:
        super().__init__(
            rf"^\s*({_DAY_FIRST}|{_YEAR_FIRST})({_TIME})?\s*$",
            "looks like dates, such as {}; --time may take them so, but to have them read as "
            "dates, write them as 2021-05-17",
        )


def name_columns(where: str, names: Sequence[str]) -> list[str]:
    """Return the names of columns, an empty one replaced by its position, counted from 1.

    >>> name_columns("a.csv", ["", "age"])
    ['column_1', 'age']
    """
    named = [name or f"column_{number}" for number, name in enumerate(names, start=1)]
    repeated = [name for name, count in Counter(named).items() if count > 1]
    if repeated:
        raise InputError(
            f"{where} has several columns named {listing(repeated)}; rename or drop all but one"
        )
    return named


def unnamed_notes(where: str, names: Sequence[str]) -> list[str]:
    """Return a note for each column without a name: what `name_columns` calls it."""
    pairs = zip(names, name_columns(where, names), strict=True)
    made_up = [name for written, name in pairs if not written]
    return [f"{where}: the column without a name is called {name!r}" for name in made_up]


def refuse_bad_byte(source: ByteSource) -> None:
    """Raise `InputError` with the line of the first byte that is not UTF-8, if there is one."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line = 1
    with source.text() as file:
        while True:
            block = file.read(BLOCK)
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                line += error.object[: error.start].count(b"\n")
                encoding = "utf-16" if source.head(2) in _UTF16 else "latin-1"
                raise InputError(
                    f"{source.name}, line {line}: byte 0x{error.object[error.start]:02x} is not "
                    f"UTF-8; give the right encoding, such as --encoding {encoding}, or save it as "
                    "UTF-8"
                ) from error
            if not block:
                return
            line += block.count(b"\n")


def _read_header(source: ByteSource, delimiter: str | None) -> _Header:
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(source.text_head())
    except UnicodeDecodeError:
        refuse_bad_byte(source)
        raise
    body = text.lstrip("\r\n")
    if not body.strip():
        raise InputError(f"{source.name} is empty; give a file with a header and rows")
    if delimiter is None:
        prefer_tabs = ".tsv" in source.name.lower()
        delimiter = _find_delimiter(body.splitlines()[0], prefer_tabs=prefer_tabs)
    try:
        fields = next(csv.reader(io.StringIO(body, newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise InputError(f"{source.name} has no usable header: {one_line(error)}") from error
    if all(is_numeral(field) for field in fields if field.strip()):
        raise InputError(
            f"{source.name} has no header: its first line is {listing(fields)}; write the names of "
            "the columns above it"
        )
    n_blank = len(text[: len(text) - len(body)].splitlines())
    return _Header(fields, name_columns(source.name, fields), delimiter, n_blank)


def _find_delimiter(line: str, *, prefer_tabs: bool) -> str:
    if prefer_tabs and "\t" in line:
        return "\t"
    return max(_DELIMITERS, key=re.sub(r'"[^"]*"', "", line).count)


def _refuse_bad_row(source: ByteSource, header: _Header) -> None:
    """Raise `InputError` with the line of the first row that is malformed, if there is one.

    It has another number of fields than the header, or a quote in it is never closed, so that all
    lines below belong to it.
    """
    with source.text() as file:
        lines = io.TextIOWrapper(
            cast(io.BufferedReader, file), "utf-8-sig", errors="replace", newline=""
        )
        rows = csv.reader(itertools.chain(lines, [_END]), delimiter=header.delimiter)
        line = 0
        try:
            for fields in rows:
                _check_row(f"{source.name}, line {line + 1}", fields, header)
                line = rows.line_num
        except csv.Error as error:
            raise InputError(
                f"{source.name}, line {line + 1}: {one_line(error)}; look for a quote that is "
                "never closed"
            ) from error


def _check_row(where: str, fields: list[str], header: _Header) -> None:
    if fields and fields[-1].endswith(_END):
        if fields == [_END]:
            return
        raise InputError(
            f"{where}: a quote is never closed; close it, or write it twice inside quotes if it is "
            "part of the text"
        )
    if fields and len(fields) != len(header.names):
        raise InputError(
            f"{where} has {len(fields)} fields, but the header has {len(header.names)} "
            f"(separated by {header.delimiter!r}); correct that line, or name the delimiter with "
            "--delimiter"
        )


def _ends_with_lines(batch: Any) -> bool:
    """Return whether text in the last row has more than one line."""
    values = (column[-1].as_py() for column in batch.columns)
    return any(isinstance(value, str) and "\n" in value for value in values)


def _shortened(value: str) -> str:
    return value if len(value) <= _SHOWN else value[:_SHOWN] + "…"


def _type_of(value: str, decimal: str) -> Any:
    """Return the type of a column that holds this value alone."""
    quoted = value.replace('"', '""')
    text = io.BytesIO(f'x,y\n"{quoted}",\n'.encode(errors="replace"))
    parse = arrow_csv.ParseOptions(newlines_in_values=True)
    convert = arrow_csv.ConvertOptions(decimal_point=decimal)
    with reading("a value"):
        table = arrow_csv.read_csv(text, parse_options=parse, convert_options=convert)
    return table.schema.field(0).type


def _in_microseconds(kind: Any) -> Any:
    """Return timestamps in microseconds, the finest that Python has; other types as they are."""
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else kind
