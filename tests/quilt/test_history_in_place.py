"""An Arrow table gives the model of the same pandas frame, to the bit, and is not loaded."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from driftquilt import QuiltClassifier
from driftquilt.data import arrow
from driftquilt.data.arrow import ArrowFrame
from driftquilt.data.encoder import Encoder
from driftquilt.data.frame import Frame

pd = pytest.importorskip("pandas")

QUICK: dict[str, Any] = {
    "hidden_units": 8,
    "max_epochs": 5,
    "score_rows": 32,
    "epoch_rows": 128,
    "n_folds": 2,
    "random_state": 0,
}
N = 1200


@pytest.fixture
def _unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables stay in their chunks, as large ones do."""
    monkeypatch.setattr(arrow, "SMALLEST_PIECE", 1)


pytestmark = pytest.mark.usefixtures("_unloaded")


def frame(seed: int = 0, n_rows: int = N) -> Any:
    """A shop's rows: numbers, text, gaps, whole numbers and yes or no."""
    rng = np.random.default_rng(seed)
    price = rng.normal(size=n_rows)
    price[::9] = np.nan
    channel = np.array(["web", "shop", "app", None], dtype=object)[rng.integers(4, size=n_rows)]
    plan = pd.Categorical.from_codes(rng.integers(-1, 2, size=n_rows), ["basic", "pro"])
    return pd.DataFrame(
        {
            "price": price,
            "visits": rng.integers(0, 9, size=n_rows),
            "channel": channel,
            "plan": plan,
            "member": rng.random(n_rows) < 0.5,
            "age": rng.normal(40, 9, size=n_rows).astype(np.float32),
        }
    )


def labels(rows: Any, months: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    usual = rows["visits"].to_numpy() + np.nan_to_num(rows["price"].to_numpy()) > 4
    return np.where(usual ^ (months == "march"), "buys", "leaves")


ROWS = frame()
MONTHS = np.repeat(["march", "april", "may", "june", "a day"], [400, 300, 400, 80, 20])
LABELS = labels(ROWS, MONTHS)
SHUFFLED = np.random.default_rng(5).permutation(N)
WEIGHT = np.random.default_rng(6).integers(0, 3, size=N).astype(float)


def to_arrow(rows: Any, n_chunks: int = 3) -> Any:
    table = pa.Table.from_pandas(rows, preserve_index=False)
    size = -(-len(rows) // n_chunks)
    return pa.concat_tables([table[start : start + size] for start in range(0, len(rows), size)])


def assert_same(one: QuiltClassifier, other: QuiltClassifier) -> None:
    assert one.encoder_ == other.encoder_
    assert one.classes_.tolist() == other.classes_.tolist()
    assert one.search_ == other.search_
    for model, twin in zip(one.model_.models, other.model_.models, strict=True):
        for name, tensor in model.tensors().items():
            assert tensor.tobytes() == twin.tensors()[name].tobytes()
    assert [(use.name, use.used) for use in one.selection_] == [
        (use.name, use.used) for use in other.selection_
    ]
    unseen = frame(seed=9, n_rows=50)
    expected = one.predict_proba(unseen)
    assert other.predict_proba(unseen).tobytes() == expected.tobytes()
    assert other.predict_proba(to_arrow(unseen)).tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"n_folds": 1},
        {"class_weight": "balanced"},
        {"class_weight": {"buys": 3.0}},
        {"score_rows": None},
        {"epoch_rows": None},
        {"score_rows": 350},
        {"search": "bayes"},
    ],
    ids=str,
)
def test_the_model_is_that_of_a_pandas_frame(settings: dict[str, Any]) -> None:
    clf, twin = (QuiltClassifier(**{**QUICK, **settings}) for _ in range(2))
    clf.fit(ROWS, LABELS, segments=MONTHS)
    twin.fit(to_arrow(ROWS), pa.array(LABELS), segments=pa.array(MONTHS).dictionary_encode())
    assert_same(clf, twin)


def test_the_model_is_that_of_a_pandas_frame_with_the_papers_settings() -> None:
    clf, twin = (
        QuiltClassifier.paper(hidden_units=8, max_epochs=4, random_state=0) for _ in range(2)
    )
    assert_same(
        clf.fit(ROWS, LABELS, segments=MONTHS), twin.fit(to_arrow(ROWS), LABELS, segments=MONTHS)
    )


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["no weight", "weight"])
def test_rows_of_a_segment_need_not_be_neighbours(weight: Any) -> None:
    rows, months = ROWS.iloc[SHUFFLED], MONTHS[SHUFFLED]
    clf, twin = QuiltClassifier(**QUICK), QuiltClassifier(**QUICK)
    clf.fit(rows, LABELS[SHUFFLED], segments=months, sample_weight=weight)
    twin.fit(to_arrow(rows), LABELS[SHUFFLED], segments=months, sample_weight=weight)
    assert_same(clf, twin)


def test_numbers_alone_give_the_model_of_a_pandas_frame() -> None:
    rows = ROWS[["visits", "age"]]
    clf = QuiltClassifier(**QUICK).fit(rows, LABELS, segments=MONTHS)
    twin = QuiltClassifier(**QUICK).fit(to_arrow(rows), LABELS, segments=MONTHS)
    for model, other in zip(clf.model_.models, twin.model_.models, strict=True):
        assert model.tensors()["theta"].tobytes() == other.tensors()["theta"].tobytes()


@pytest.mark.parametrize("kinds", [("arrow", "arrow"), ("arrow", "pandas"), ("pandas", "arrow")])
def test_batches_add_up_to_the_model_of_all_rows(kinds: tuple[str, str]) -> None:
    given_as = {"arrow": to_arrow, "pandas": lambda rows: rows}
    clf, twin = QuiltClassifier(**QUICK), QuiltClassifier(**QUICK)
    clf.fit(ROWS, LABELS, segments=MONTHS)
    first, second = slice(None, 700), slice(700, None)
    for kind, rows in zip(kinds, (first, second), strict=True):
        batch = given_as[kind](ROWS[rows])
        twin.partial_fit(batch, LABELS[rows], segments=MONTHS[rows])
    assert_same(clf, twin)
    assert isinstance(twin._seen.features, ArrowFrame if kinds == ("arrow",) * 2 else Frame)


def test_a_batch_may_have_no_value_in_a_column_of_text() -> None:
    later = ROWS[700:].assign(channel=None)
    clf, twin = QuiltClassifier(**QUICK), QuiltClassifier(**QUICK)
    for rows, part in ((ROWS[:700], slice(None, 700)), (later, slice(700, None))):
        clf.partial_fit(rows, LABELS[part], segments=MONTHS[part])
        twin.partial_fit(to_arrow(rows), LABELS[part], segments=MONTHS[part])
    assert_same(clf, twin)


def test_the_previous_weights_are_gone_on_from_as_with_a_pandas_frame() -> None:
    clf, twin = (QuiltClassifier(**QUICK, init="previous") for _ in range(2))
    for rows, part in ((ROWS[:1180], slice(None, 1180)), (ROWS, slice(None))):
        clf.fit(rows, LABELS[part], segments=MONTHS[part])
        twin.fit(to_arrow(rows), LABELS[part], segments=MONTHS[part])
    assert_same(clf, twin)


def test_a_torch_module_is_trained_as_on_a_pandas_frame() -> None:
    torch = pytest.importorskip("torch")
    from driftquilt import TorchLearner  # noqa: PLC0415

    net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    settings = {**QUICK, "max_epochs": 2, "learner": TorchLearner(net)}
    rows = ROWS[["visits", "age"]]
    clf = QuiltClassifier(**settings).fit(rows, LABELS, segments=MONTHS)
    twin = QuiltClassifier(**settings).fit(to_arrow(rows), LABELS, segments=MONTHS)
    assert clf.predict_proba(rows).tobytes() == twin.predict_proba(rows).tobytes()


def test_a_fitted_classifier_can_be_copied_and_goes_on_from_there() -> None:
    clf = QuiltClassifier(**QUICK).fit(to_arrow(ROWS[:1180]), LABELS[:1180], segments=MONTHS[:1180])
    twin = copy.deepcopy(clf)
    for each in (clf, twin):
        each.partial_fit(to_arrow(ROWS[1180:]), LABELS[1180:], segments=MONTHS[1180:])
    assert_same(clf, twin)


def test_a_mapped_file_is_sampled_and_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # a table so large is left in place as things are
    n_past, n_rows = 6, 60_000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_past * n_rows + 500, 6)).astype(np.float32)
    months = np.minimum(np.arange(len(X)) // n_rows, n_past)
    table = pa.table({f"x{j}": X[:, j] for j in range(6)}).append_column("month", pa.array(months))
    with pa.ipc.new_file(tmp_path / "rows.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=50_000)
    encoded_at_once = list[int]()

    def encode(self: Encoder, rows: Frame, plain: Any = Encoder.encode) -> Any:
        encoded_at_once.append(len(rows))
        return plain(self, rows)

    monkeypatch.setattr(Encoder, "encode", encode)
    with pa.memory_map(str(tmp_path / "rows.arrow")) as source:
        mapped = pa.ipc.open_file(source).read_all()
        allocated = pa.total_allocated_bytes()
        clf = QuiltClassifier(max_epochs=3, n_folds=1, disparity_max=0.5, random_state=0)
        clf.fit(mapped.drop_columns(["month"]), X[:, 0] > 0, segments=mapped["month"])
        assert pa.total_allocated_bytes() - allocated < X.nbytes / 10
    # What samples are drawn from: 8,192 rows of each past segment, and the current one.
    assert sum(encoded_at_once) == n_past * 8192 + 500
    assert [use.n_rows for use in clf.selection_] == [n_rows] * n_past


def test_categories_may_differ_from_chunk_to_chunk() -> None:
    rows = ROWS.assign(plan=[f"{at // 400}-{at % 90}" for at in range(N)])
    chunks = [to_arrow(rows[at : at + 400], 1) for at in range(0, N, 400)]
    narrow, place = pa.dictionary(pa.int8(), pa.string()), chunks[0].column_names.index("plan")
    coded = [
        chunk.set_column(place, "plan", chunk["plan"].dictionary_encode().cast(narrow))
        for chunk in chunks
    ]
    expected = QuiltClassifier(**QUICK).fit(rows, LABELS, segments=MONTHS)
    found = QuiltClassifier(**QUICK).fit(pa.concat_tables(coded), LABELS, segments=MONTHS)
    assert_same(expected, found)
