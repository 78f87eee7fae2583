"""What a replayed stream is compared with: the models that no selection would have trained.

For each training of the stream two models are trained on the rows that it had, all of them and
those of its current segment, and asked about the rows up to the next training. They do not learn
in between, as the stream does. Rows are sampled, in training as `QuiltClassifier` does and here
in asking, so a training costs about as much however long the stream is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from driftquilt.decision.columns import check_table, describe, features
from driftquilt.decision.fitting import Case
from driftquilt.decision.labels import read_labels
from driftquilt.decision.layout import Rows
from driftquilt.decision.replay import COUNT
from driftquilt.decision.replayed import TrainedAt
from driftquilt.quilt.classifier import QuiltClassifier

__all__ = ["METHODS", "baselines"]

METHODS = ("all data", "current only")

_ASKED = 40  # rows of each count
_MOST = 200  # trainings


def baselines(
    table: pa.Table,
    label: str,
    trainings: Sequence[TrainedAt],
    *,
    drop: Iterable[str] = (),
    seed: int = 0,
    watch: Callable[[int, int], None] | None = None,
) -> dict[str, dict[int, float]]:
    """By method: accuracy over the `COUNT` rows before a row, by that row, as the stream's.

    Of very many trainings the last ones count. `watch` is told the trainings done, and all.
    """
    check_table(table)
    labels = read_labels(table, label)
    learned = np.flatnonzero(labels.codes >= 0)  # the stream's rows, by their number
    columns = features(table, label, drop, facts=describe(table))
    one = pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), ["all"])])
    case, shown = Case.of(columns, labels, one), trainings[-_MOST:]
    found: dict[str, dict[int, list[float]]] = {name: defaultdict(list) for name in METHODS}
    ends = [*(training.row for training in shown[1:]), len(learned)]
    for number, (training, end) in enumerate(zip(shown, ends, strict=True)):
        if watch is not None:
            watch(number, len(shown))
        asked = np.arange(training.row, end)
        asked = asked[asked % (COUNT // _ASKED) == 0]
        for name, clf in _train(case, learned, training, seed).items():
            right = case.right(clf, learned[asked])
            for row, is_right in zip(asked.tolist(), right.tolist(), strict=True):
                found[name][(row // COUNT + 1) * COUNT].append(is_right)
    return {n: {row: float(np.mean(v)) for row, v in by.items()} for n, by in found.items()}


def _train(case: Case, learned: Rows, training: TrainedAt, seed: int) -> dict[str, QuiltClassifier]:
    """Both models; none of rows that are too few or of one class."""
    end = training.first + training.n_current
    current, past = learned[training.first : end], learned[: training.first]
    everything = QuiltClassifier(random_state=seed, use_disparity=False, use_gain=False)
    codes = np.zeros(case.features.num_rows, dtype=np.int32)
    codes[current] = 1
    named = pa.DictionaryArray.from_arrays(pa.array(codes), ["past", "current"])
    case = replace(case, segments=pa.chunked_array([named]))
    made = {}
    for name, rows in zip(METHODS, (np.concatenate([past, current]), current), strict=True):
        if len(current) >= everything.n_folds and len(np.unique(case.labels.codes[rows])) > 1:
            made[name] = case.fit(QuiltClassifier(**everything.get_params()), rows)
    return made
