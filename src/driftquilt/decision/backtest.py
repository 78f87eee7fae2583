"""Around a replay: the stream it runs through, what it is compared with, and what is kept of it.

For each training of the stream two baselines are trained on the rows that it had, one on all of
them and one on those of its current segment. They predict the rows up to the next training, and
do not learn in between, as the stream does. Rows are sampled, in training as `QuiltClassifier`
does and here in predicting, so a training costs about the same however long the stream is.

`run.json` keeps what a report needs beside `events.jsonl`.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sklearn.base import clone

from driftquilt.data.column_types import (
    ColumnFacts,
    check_table,
    describe,
    features,
    leave_out,
    present,
    unused_warning,
)
from driftquilt.decision.deciding import LabelledTable
from driftquilt.decision.decision import REPORT, Origin
from driftquilt.decision.journal import COUNT, Replayed, TrainedAt
from driftquilt.decision.labels import clean_labels, read_labels
from driftquilt.decision.layout import Rows
from driftquilt.decision.leakage import (
    find_leaking_columns_in_stream,
    leakage_warning,
    note_leakage,
)
from driftquilt.decision.streaming import LabelledPositions
from driftquilt.errors import InputError
from driftquilt.files import atomic_write
from driftquilt.quilt.classifier import QuiltClassifier, refuse_unknown_classes
from driftquilt.quilt.metrics import Metric, find_metric, is_one_sided, scoring_from_json
from driftquilt.quilt.model_file import NET, settings_from_json
from driftquilt.quilt.models import parameter_names
from driftquilt.store.disk import DiskStore
from driftquilt.stream import QuiltStream
from driftquilt.text import plural

RUN = "run.json"
BASELINES = ("all data", "current only")

_PREDICTED = 40  # rows of each count
_MAX_TRAININGS = 200

Accuracies = dict[str, dict[int, float]]  # by method and row, over the COUNT rows before


@dataclass(frozen=True)
class StreamSetup:
    """How to set up a new stream; `chosen` are the settings that the user asked for explicitly."""

    detector: str
    n_wait: int
    seed: int
    engine: str
    class_weight: Mapping[str, float] | str | None = None
    chosen: Collection[str] = ()
    scoring: Metric | None = None
    param: Mapping[str, Any] = field(default_factory=dict)  # of the net

    @property
    def metric(self) -> str | None:
        """The name of the metric."""
        return None if self.scoring is None else self.scoring.name


def check_class_weight(setup: StreamSetup, table: pa.Table, label: str) -> None:
    """Refuse a weight of a label that no row has, before the stream learns the first."""
    if isinstance(setup.class_weight, Mapping):
        labels = clean_labels(table, label).drop_null().unique().to_pylist()
        refuse_unknown_classes(setup.class_weight, labels)


@contextmanager
def open_stream(
    store: Path | None, setup: StreamSetup
) -> Iterator[tuple[QuiltStream, tuple[str, ...]]]:
    """Open the stream in a folder, or make a new one, there or in memory.

    With it come messages if it is continued: with which settings, and which of those asked for
    it does not have. A new folder is removed if no row was learned, so that it binds nobody.
    """
    is_new = store is not None and not store.exists()
    disk = None if store is None else DiskStore(store)
    if disk is not None and "stream" in disk.state:
        known = _known_settings(disk.state["stream"])
        stream = QuiltStream.open(disk, wait=True)
        messages = (_continuing(store, stream.n_rows, known), *_unchanged(known, setup))
    else:
        own: dict[str, Any] = {"engine": setup.engine, "class_weight": setup.class_weight}
        estimator = QuiltClassifier(random_state=setup.seed, **own, **setup.param)
        stream = QuiltStream(
            estimator, setup.detector, setup.n_wait, store=disk, wait=True, scoring=setup.scoring
        )
        messages = ()
    try:
        yield stream, messages
    finally:
        stream.close()
        if store is not None and is_new and stream.n_rows == 0:
            shutil.rmtree(store)


def _known_settings(state: Any) -> dict[str, Any]:
    """Return the settings of a stored stream that a `StreamSetup` has, by its names."""
    scoring = scoring_from_json(state.get("scoring"))
    return {
        "detector": state["detector"]["kind"],
        "n_wait": state["settings"]["n_wait"],
        "seed": state["estimator"]["random_state"],
        "engine": state["estimator"].get("engine", "local"),
        "class_weight": settings_from_json(state["estimator"])["class_weight"],
        "metric": scoring and find_metric(scoring).name,
        "param": params_of(QuiltClassifier(**settings_from_json(state["estimator"]))),
    }


def params_of(estimator: Any) -> dict[str, Any]:
    """Return the parameters of a net that are not the default, but those with their own option."""
    plain = type(estimator)().get_params(deep=False)
    known = parameter_names(NET, is_regression=False)
    values = estimator.get_params(deep=False).items()
    return {name: value for name, value in values if name in known and value != plain[name]}


def _continuing(store: Path | None, n_rows: int, known: Mapping[str, Any]) -> str:
    settings = ", ".join(
        f"{_option(name)} {_text(value)}"
        for name, value in known.items()
        if value not in (None, {})
    )
    return (
        f"Continuing the stream in {store} after {plural(n_rows, 'row')} with its settings: "
        f"{settings}"
    )


def _unchanged(known: Mapping[str, Any], setup: StreamSetup) -> Iterator[str]:
    for name, value in known.items():
        wanted = getattr(setup, name)
        if name in setup.chosen and wanted != value:
            yield (
                f"Note: a stream keeps its settings, so {_option(name)} stays {_text(value)}; for "
                f"{_text(wanted)} start a new one, with another --store and --out"
            )


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _text(value: Any) -> str:
    """Return a setting as it is typed."""
    if value is None or value == {}:
        return "unset"
    if isinstance(value, Mapping):
        words = (f"{one:g}" if isinstance(one, float) else one for one in value.values())
        return " ".join(f"{name}={word}" for name, word in zip(value, words, strict=True))
    return str(value)


def note_unlabelled_end(table: pa.Table, label: str, n_learned: int) -> list[str]:
    """Return a note on rows without a label after the last one learned, if there are any."""
    n_left = table.num_rows - LabelledPositions(table, label).after(n_learned)
    rows = f"the last {n_left:,} of {plural(table.num_rows, 'row')}"
    return [f"no {label!r} in {rows}, not replayed"] if n_left else []


def note_one_sided(table: pa.Table, label: str) -> list[str]:
    """Return a note on labels that are mostly the same, so that accuracy says little."""
    column = clean_labels(table, label)
    counts = pc.value_counts(column.filter(pa.array(present(column))))
    n_rows = np.array(counts.field("counts"))
    if not is_one_sided(n_rows):
        return []
    answer = counts.field("values")[int(n_rows.argmax())].as_py()
    return [
        f"always answering {answer} gets {n_rows.max():,} of {n_rows.sum():,} rows right, so "
        "accuracy says little, and balanced accuracy or the metric of your choice says more"
    ]


def examine_columns(
    table: pa.Table, label: str, drop: Sequence[str], replayed: Replayed
) -> tuple[tuple[ColumnFacts, ...], list[str]]:
    """Return facts of the columns, and notes: which were left out, which reveal the segment."""
    leaking = find_leaking_columns_in_stream(table, label, replayed.seals, drop)
    facts = note_leakage(describe(table), leaking)
    notes = unused_warning(fact for fact in facts if fact.name not in (label, *drop))
    return leave_out(facts, label, drop), notes + ([leakage_warning(leaking)] if leaking else [])


def baselines(
    table: pa.Table,
    label: str,
    trainings: Sequence[TrainedAt],
    *,
    drop: Iterable[str] = (),
    seed: int = 0,
    class_weight: Mapping[Any, float] | str | None = None,
    params: Mapping[str, Any] | None = None,
    watch: Callable[[int, int], None] | None = None,
) -> Accuracies:
    """Return by method the accuracy over the `COUNT` rows before a row, by that row.

    Seed, class weights and parameters are the stream's. Of very many trainings only the last ones
    count. `watch` gets the trainings done, and all.
    """
    settings: dict[str, Any] = {"use_disparity": False, "use_gain": False}
    settings = {**(params or {}), **settings}
    plain = QuiltClassifier(random_state=seed, class_weight=class_weight, **settings)
    check_table(table)
    labels = read_labels(table, label)
    learned = np.flatnonzero(labels.codes >= 0)  # the stream's rows, by their number
    columns = features(table, label, drop, facts=describe(table))
    one = pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), ["all"])])
    rows, shown = LabelledTable.of(columns, labels, one), trainings[-_MAX_TRAININGS:]
    correct: dict[str, dict[int, list[float]]] = {name: defaultdict(list) for name in BASELINES}
    ends = [*(training.row for training in shown[1:]), len(learned)]
    for number, (training, end) in enumerate(zip(shown, ends, strict=True)):
        if watch is not None:
            watch(number, len(shown))
        predicted = np.arange(training.row, end)
        predicted = predicted[predicted % (COUNT // _PREDICTED) == 0]
        for name, clf in _train(rows, learned, training, plain).items():
            is_correct = rows.correct(clf, learned[predicted])
            for row, value in zip(predicted.tolist(), is_correct.tolist(), strict=True):
                correct[name][(row // COUNT + 1) * COUNT].append(value)
    return {
        name: {row: float(np.mean(values)) for row, values in by_row.items()}
        for name, by_row in correct.items()
    }


def _train(
    rows: LabelledTable, learned: Rows, training: TrainedAt, plain: QuiltClassifier
) -> dict[str, QuiltClassifier]:
    """Train both baselines, each if its rows are enough and of more than one class."""
    end = training.first + training.n_current
    current, past = learned[training.first : end], learned[: training.first]
    codes = np.zeros(rows.features.num_rows, dtype=np.int32)
    codes[current] = 1
    segments = pa.DictionaryArray.from_arrays(pa.array(codes), ["past", "current"])
    rows = replace(rows, segments=pa.chunked_array([segments]))
    trained = {}
    for name, used in zip(BASELINES, (np.concatenate([past, current]), current), strict=True):
        if len(current) >= plain.n_folds and rows.are_enough(used):
            trained[name] = rows.fit(clone(plain), used)
    return trained


@dataclass(frozen=True, eq=False)
class RunRecord:
    """What a report says beside the events: origin, warnings, baselines, facts of columns."""

    origin: Origin | None = None
    warnings: Sequence[str] = ()
    baselines: Accuracies = field(default_factory=dict)
    columns: Sequence[ColumnFacts] = ()

    def write(self, out: str | os.PathLike[str]) -> None:
        """Write `run.json` in a folder."""
        record = {
            "origin": None if self.origin is None else self.origin.to_json(),
            "warnings": list(self.warnings),
            "baselines": self.baselines,
            "columns": [asdict(column) for column in self.columns],
        }
        with atomic_write(Path(out) / RUN) as file:
            file.write(json.dumps(record, indent=1).encode())

    @classmethod
    def read(cls, out: str | os.PathLike[str]) -> RunRecord:
        """Read `run.json` in a folder; without it nothing is known."""
        path = Path(out) / RUN
        if not path.exists():
            return cls()
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            origin = record["origin"]
            return cls(
                None if origin is None else Origin.from_json(origin),
                record.get("warnings", []),
                {
                    name: {int(row): float(share) for row, share in counts.items()}
                    for name, counts in record.get("baselines", {}).items()
                },
                [ColumnFacts(**column) for column in record.get("columns", [])],
            )
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise InputError(f"{path} is damaged: {error!r}; remove it or run again") from error

    @staticmethod
    def remove(out: str | os.PathLike[str]) -> None:
        """Remove the record and report of an earlier run, so that no two runs are mixed."""
        for name in (RUN, REPORT):
            (Path(out) / name).unlink(missing_ok=True)
