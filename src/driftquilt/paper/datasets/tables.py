r"""Tables on disk: CSV and Parquet in, Parquet out, numbers checked on the way.

Whatever is wrong with a file comes as an `InputError` that names the file. Rows count from 0,
without the header.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "toy.csv"
>>> _ = path.write_text("a,b\n1,x\n2,y\n")
>>> table = read_table(path)
>>> read_numbers(path, table, ["a"])
array([[1.],
       [2.]])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv
from pyarrow import parquet as pq

from driftquilt.errors import InputError
from driftquilt.files import atomic_write
from driftquilt.text import suggest

__all__ = ["is_numeric", "read_numbers", "read_table", "require_columns", "write_parquet"]

_MAGIC = b"PAR1"  # how every Parquet file begins
_MAX_BLOCK = 2**31 - 1  # bytes, what pyarrow's reader takes at once


def read_table(path: Path) -> Any:
    """The Arrow table in a CSV or Parquet file, with at least one row and no name twice."""
    try:
        with path.open("rb") as file:
            is_parquet = file.read(len(_MAGIC)) == _MAGIC or path.suffix in (".parquet", ".pq")
        table = pq.read_table(path, partitioning=None) if is_parquet else _read_csv(path)
        names = table.column_names
    except FileNotFoundError as error:
        raise InputError(f"there is no file {path}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8; save it as UTF-8: {error}") from error
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be read as a table: {_one_line(error)}") from error
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"{path} has several columns named {twice}; rename or drop them")
    if table.num_rows == 0:
        raise InputError(f"{path} holds no rows")
    return table


def require_columns(path: Path, table: Any, names: Sequence[str]) -> None:
    """Raise InputError if the table lacks one of the columns."""
    present = table.column_names
    lacking = [name for name in names if name not in present]
    if not lacking:
        return
    more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
    raise InputError(
        f"{path} lacks the column {lacking[0]!r}{more}; {suggest(lacking[0], present)}"
    )


def read_numbers(path: Path, table: Any, names: Sequence[str]) -> NDArray[np.float64]:
    """The named columns (n, k) as finite numbers; booleans are 0 and 1."""
    texts = [name for name in names if not is_numeric(table[name].type)]
    if texts:
        raise InputError(
            f"{path}: these columns are not numbers: {texts}; turn them into numbers, such as "
            "one 0/1 column per value, or drop them"
        )
    matrix = np.empty((table.num_rows, len(names)))
    for j, name in enumerate(names):
        matrix[:, j] = table[name].cast(pa.float64(), safe=False).to_numpy()  # null becomes NaN
    unusable = ~np.isfinite(matrix)
    if unusable.any():
        j, row = (int(place) for place in np.argwhere(unusable.T)[0])
        what = "infinite" if np.isinf(matrix[row, j]) else "missing"
        raise InputError(
            f"{path}: column {names[j]!r} is {what} in row {row} (rows count from 0); "
            "fill it in or drop the row"
        )
    return matrix


def is_numeric(kind: Any) -> bool:
    """Whether an Arrow type is numbers, booleans or nothing at all."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return pa.types.is_null(kind) or any(test(kind) for test in tests)


def write_parquet(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write a file that is there whole or not at all, replacing what stands at `path`."""
    with atomic_write(path) as file:
        pq.write_table(pa.table(dict(columns)), file, compression="zstd")


def _read_csv(path: Path) -> Any:
    with pa.input_stream(path) as file:
        text = file.read()
    # One block for all: pyarrow takes the types of the columns from the first block alone.
    block = min(max(len(text), 1), _MAX_BLOCK)
    return csv.read_csv(
        pa.BufferReader(text),
        read_options=csv.ReadOptions(block_size=block),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(strings_can_be_null=True),
    )


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
