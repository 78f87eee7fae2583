"""Fit a classifier to a history that lies in files, one per segment, on any executor.

Nothing but these comes to the caller: how many rows each file has and which classes, the rows
that a training may draw from (`Sampling.count_rows_to_keep`: some thousand of each segment, at even
distances), and the scores. With `score_rows=None` every row of the history counts for the scores:
its shards are encoded and placed where the executor works, each made by a task that reads its part
of the file, and only their mean head gradients travel, C·(H+1) numbers of each.

The outcome is the same, bit for bit, on every executor. With `score_rows` set, which is the
default, it is also that of `QuiltClassifier.fit` on one table of all rows, if there are no class
weights, every column has a value among the rows that are drawn, and there are at most 256 once
encoded.

>>> import tempfile, numpy as np, pyarrow.parquet as pq
>>> rng, folder, paths = np.random.default_rng(0), tempfile.mkdtemp(), []
>>> for month, turned in (("april", True), ("may", False), ("june", False)):
...     X = rng.normal(size=(300, 2))
...     rows = {"a": X[:, 0], "b": X[:, 1], "buys": (X[:, 0] > 0) ^ turned}
...     paths.append(f"{folder}/{month}.parquet")
...     pq.write_table(pa.table(rows), paths[-1])
>>> clf = QuiltClassifier(hidden_units=32, score_rows=None, random_state=0)
>>> {use.name: use.used for use in fit_files(clf, paths, label="buys").selection_}
{'april': False, 'may': True}
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftquilt.core.sampling import Sampling, spread_out
from driftquilt.data.arrow import read_in_place
from driftquilt.data.encoder import Encoder
from driftquilt.data.rows import Rows
from driftquilt.errors import InputError
from driftquilt.integrations.ray.shards import (
    FileSummary,
    Reading,
    place_shards,
    read_rows,
    scan_file,
)
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.quilt.estimator import check_parameters
from driftquilt.quilt.executor import Executor, Threads
from driftquilt.quilt.method import Quilt

__all__ = ["fit_files", "local_paths"]

_PANDAS_INDEX = re.compile(r"__index_level_\d+__")  # the numbers of rows, if pandas wrote a file

A = TypeVar("A")
S = TypeVar("S")
T = TypeVar("T")


def fit_files(
    classifier: QuiltClassifier,
    files: Iterable[str | os.PathLike[str]],
    label: str,
    *,
    drop: str | Iterable[str] = (),
) -> QuiltClassifier:
    """Fit `classifier` to segments in Parquet or Arrow files, the last of which is current.

    A segment has the name of its file without folder and suffix. `label` is the column with the
    class, which every row needs to have; columns named in `drop` are not learned from.
    `classifier.engine` decides where tasks run; the files have to be visible there.
    """
    check_parameters(classifier.get_params(deep=False))
    _expect_rows_to_train(classifier)
    paths = local_paths(files)
    names = _names(paths)
    summaries = _in_order(classifier.choose_executor(effort=0), scan_file, label, paths)
    dropped = {drop} if isinstance(drop, str) else set(drop)
    columns = _Columns(label, _features(summaries, label, dropped))
    n_rows = [one.n_rows for one in summaries]
    n_scored = 0 if classifier.score_rows else sum(n_rows)  # of samples there are few
    executor = classifier.choose_executor(effort=float(n_scored) * len(columns.features))
    drawn = _draw(executor, columns, paths, summaries, classifier.sampling)
    remote = _InFiles(executor, classifier.n_threads, paths[:-1], summaries[:-1], label, n_rows)
    _expect_one_schema(paths, drawn)
    # The rows drawn are not all, so `partial_fit` could not add to them.
    return classifier.fit_rows(_read(drawn, columns, names, summaries), remote).forget_rows()


class _Columns(NamedTuple):
    """The columns that are read."""

    label: str
    features: list[str]


def _expect_rows_to_train(classifier: QuiltClassifier) -> None:
    if classifier.epoch_rows is None:
        raise InputError(
            "epoch_rows is None, so every epoch would bring every row of the history here; set "
            "it, to 2048 as by default or more"
        )
    if not classifier.encode:
        raise InputError("encode is False, but files hold columns, which have to be encoded")
    weights = classifier.class_weight
    if isinstance(weights, Mapping) and not all(weights.values()):
        raise InputError(f"class_weight is {weights}; give no class 0, but files without its rows")


def local_paths(files: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Return the paths as every process knows them; InputError if there are none, or one twice."""
    names = [] if isinstance(files, str | os.PathLike) else [os.fspath(path) for path in files]
    paths = [path if "://" in path else str(Path(path).absolute()) for path in names]
    if not paths:
        raise InputError("got no list of files; give one per segment, the current one last")
    twice = [path for path, n_times in Counter(paths).items() if n_times > 1]
    if twice:
        raise InputError(f"got {twice[0]} more than once; a segment is one file")
    return paths


def _names(paths: Sequence[str]) -> list[str]:
    """Return what segments are called, which no two may share."""
    plain = [urlsplit(path).path if "://" in path else path for path in paths]
    names = [PurePosixPath(path).stem for path in plain]
    return names if len(set(names)) == len(names) else list(paths)


def _features(summaries: Sequence[FileSummary], label: str, drop: set[str]) -> list[str]:
    """Return the columns to learn from, in the order in which files have them first."""
    known = list(dict.fromkeys(name for one in summaries for name in one.columns))
    if strangers := drop.difference(known):
        raise InputError(f"no file has the columns to drop {sorted(strangers)}; they have {known}")
    drop |= {label, *filter(_PANDAS_INDEX.fullmatch, known)}
    features = [name for name in known if name not in drop]
    if not features:
        raise InputError(f"beside {label!r} the files have no column to learn from")
    return features


def _draw(
    executor: Executor,
    columns: _Columns,
    paths: Sequence[str],
    summaries: Sequence[FileSummary],
    sampling: Sampling,
) -> list[pa.Table]:
    """Return the rows of each file that a training may draw from."""
    sampled = sampling if sampling.score_rows is not None else replace(sampling, score_rows=1)
    counts = np.array([one.n_rows for one in summaries], dtype=np.intp)
    taken = sampled.count_rows_to_keep(counts, len(columns.features))
    wanted = counts if taken is None else taken
    items = [
        (path, one.blocks, spread_out(one.n_rows, n))
        for path, one, n in zip(paths, summaries, wanted.tolist(), strict=True)
    ]
    return _in_order(executor, _take, columns, items)


def _take(columns: _Columns, item: tuple[str, tuple[int, ...], NDArray[np.intp]]) -> pa.Table:
    """Return some rows; values stand in place of codes, which one file may have and another not."""
    path, blocks, rows = item
    table = read_rows(path, blocks, rows, [columns.label, *columns.features])
    fields = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    taken = table.cast(pa.schema(fields)).combine_chunks()
    try:
        read_in_place(taken.select(columns.features))
    except InputError as error:
        raise InputError(f"{path}, of {len(rows)} rows at even distances: {error}") from error
    return taken


def _expect_one_schema(paths: Sequence[str], drawn: Sequence[pa.Table]) -> None:
    known = drawn[0].schema
    for path, part in zip(paths, drawn, strict=True):
        try:
            known = pa.unify_schemas([known, part.schema], promote_options="permissive")
        except pa.ArrowTypeError as error:
            raise InputError(
                f"{path} does not fit to the files before it: {error}; make them alike"
            ) from error


def _read(
    drawn: Sequence[pa.Table],
    columns: _Columns,
    names: Sequence[str],
    summaries: Sequence[FileSummary],
) -> Rows:
    """Return rows as `QuiltClassifier` keeps them, with every class, also one without a row."""
    table = pa.concat_tables(drawn, promote_options="permissive")
    codes = np.repeat(np.arange(len(drawn), dtype=np.int32), [len(part) for part in drawn])
    known = [name for name in columns.features if table[name].null_count < len(table)]
    segments = pa.DictionaryArray.from_arrays(codes, names)
    rows = Rows.read(table.select(known), table[columns.label], segments)
    return rows.declare(list(dict.fromkeys(name for one in summaries for name in one.labels)))


@dataclass(frozen=True, eq=False)
class _InFiles:
    """The past segments, all rows of them, for `QuiltClassifier`."""

    executor: Executor
    n_threads: int
    paths: Sequence[str]
    summaries: Sequence[FileSummary]
    label: str
    n_rows: Sequence[int]

    def attach(
        self,
        quilt: Quilt,
        encoder: Encoder,
        classes: NDArray[Any],
        weights: NDArray[np.float64] | None,
    ) -> Quilt:
        """Return the method; without sampling it scores all rows, where they are placed."""
        if quilt.sampling.score_rows is not None or not self.paths:
            return quilt
        weights = np.ones(len(classes)) if weights is None else weights
        reading = Reading(encoder, self.label, classes, weights)
        scorer = place_shards(self.executor, reading, self.paths, self.summaries)
        # Trainings are here, where the scores come together, and wait for them side by side.
        here = Threads(self.n_threads)
        return replace(quilt, remote_scorer=scorer, executor=here)


def _in_order(
    executor: Executor, task: Callable[[S, A], T], shared: S, items: Sequence[A]
) -> list[T]:
    return executor.place(task, shared, items).map(_as_it_is, None)


def _as_it_is(_: None, value: T) -> T:
    return value
