"""Histories in files give the same bits on every executor, and what `fit` gives where it can."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from torch import nn

from driftquilt import QuiltClassifier, QuiltStream, TorchLearner
from driftquilt.core import gradients
from driftquilt.core.sampling import spread_out
from driftquilt.errors import InputError
from driftquilt.integrations.ray import shards as module
from driftquilt.integrations.ray.executor import Ray
from driftquilt.integrations.ray.files import fit_files
from driftquilt.quilt.executor import Executor, Processes, Threads
from driftquilt.stream.columns import LABEL
from tests.integrations.ray.histories import COLUMNS, month, quilt, write
from tests.integrations.ray.processes import killed_workers

UNHELD = 11  # a row of 9,000 that no training draws from
ASKED = {"a": [0.3, -1.0], "b": [1.0, 0.5], "c": [0.2, 2.0], "city": ["Rome", "Kyiv"]}


def outcome(clf: QuiltClassifier) -> tuple[list[bool], str, bytes]:
    selection = clf.selection_
    kept = [use.used for use in selection]
    return kept, json.dumps(selection.to_json()), clf.predict_proba(ASKED).tobytes()


def net(n_features: int, n_classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(n_features, 8), nn.Tanh(), nn.Linear(8, n_classes))


@pytest.fixture(params=[256, None], ids=["sampled", "whole"])
def score_rows(request: pytest.FixtureRequest) -> int | None:
    return request.param  # type: ignore[no-any-return]


@pytest.mark.usefixtures("cluster")
def test_every_executor_gives_the_same_bits(
    tmp_path: Path, score_rows: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK_ROWS", 2_500)  # so that there are several works
    paths = write(tmp_path, n_rows=2_000)
    engines: list[Executor] = [Threads(1), Threads(2), Processes(2), Ray()]
    found = [
        outcome(fit_files(quilt(engine=engine, score_rows=score_rows), paths, "buys"))
        for engine in engines
    ]
    assert found == found[:1] * 4
    assert found[0][0] == [False, True, False, True, False]


@pytest.mark.usefixtures("cluster")
def test_lost_workers_change_no_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK_ROWS", 20_000)
    paths = write(tmp_path, n_rows=40_000)
    expected = outcome(fit_files(quilt(score_rows=None), paths, "buys"))
    with killed_workers(3) as killed:
        for _ in range(20):
            found = outcome(fit_files(quilt(engine=Ray(), score_rows=None), paths, "buys"))
            assert found == expected
            if len(killed) == 3:
                break
    assert len(killed) == 3


def test_a_torch_net_is_never_on_several_threads(tmp_path: Path) -> None:
    paths = write(tmp_path, n_rows=2_000, n_months=3)
    found = [
        outcome(
            fit_files(
                quilt(learner=TorchLearner(net), engine=engine, score_rows=None), paths, "buys"
            )
        )
        for engine in ("local", Threads(3))
    ]
    assert found[0] == found[1]


def test_it_is_what_fit_gives_on_one_table(tmp_path: Path) -> None:
    paths = write(tmp_path, n_rows=10_000)  # more than a training holds
    tables = [pq.read_table(path) for path in paths]
    whole = pa.concat_tables(tables)
    names = np.repeat([Path(path).stem for path in paths], [len(table) for table in tables])
    expected = quilt().fit(whole.select(COLUMNS), whole["buys"], segments=names)
    found = fit_files(quilt(), paths, "buys")
    assert outcome(found) == outcome(expected)
    assert [use.n_rows for use in found.selection_] == [10_000] * 5


def test_heavy_tails_and_ids_are_encoded_as_in_memory(tmp_path: Path) -> None:
    tables, paths = [], [str(tmp_path / f"month {number}.parquet") for number in range(3)]
    for number, path in enumerate(paths):
        n_rows = 9_000 if number < 2 else 300  # more than a training holds, and the current ones
        rng = np.random.default_rng(number)
        amounts = rng.lognormal(3, 2, n_rows) * np.where(rng.random(n_rows) < 0.002, 1000, 1)
        ids = [f"{number} {row}" for row in range(n_rows)]
        tables.append(month(number, n_rows).append_column("amount", pa.array(amounts)))
        tables[-1] = tables[-1].append_column("id", pa.array(ids))
        pq.write_table(tables[-1], path, row_group_size=2_500)
    whole, columns = pa.concat_tables(tables), [*COLUMNS, "amount", "id"]
    names = np.repeat([Path(path).stem for path in paths], [len(table) for table in tables])
    in_place = quilt().fit(whole.select(columns), whole["buys"], segments=names)
    in_memory = quilt().fit(whole.select(columns).to_pandas(), whole["buys"], segments=names)
    found = fit_files(quilt(), paths, "buys").encoder_
    assert found is not None
    assert found == in_place.encoder_ == in_memory.encoder_
    described = found.describe()
    assert described["amount"] == "numbers, heavy tails: by rank"
    assert described["id"].startswith("text: 1 of ")


def test_whole_segments_are_scored_by_every_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gradients, "SHARD_ROWS", 700)
    paths = write(tmp_path, n_rows=2_000)
    tables = [pq.read_table(path) for path in paths]
    names = np.repeat([Path(path).stem for path in paths], [len(table) for table in tables])
    whole = pa.concat_tables(tables)
    settings: dict[str, Any] = {"score_rows": None, "epoch_rows": 10**6}  # every row trains too
    expected = quilt(**settings).fit(whole.select(COLUMNS), whole["buys"], segments=names)
    found = fit_files(quilt(**settings), paths, "buys")
    np.testing.assert_allclose(found.predict_proba(ASKED), expected.predict_proba(ASKED), rtol=1e-4)
    for use, other in zip(found.selection_, expected.selection_, strict=True):
        np.testing.assert_allclose(use.disparity.median, other.disparity.median, rtol=1e-4)


def test_the_sealed_segments_of_a_store_can_be_fitted_as_they_lie(tmp_path: Path) -> None:
    with QuiltStream(quilt(), "hddm_a", n_wait=60, store=tmp_path / "state", wait=True) as stream:
        for turned in (False, True):
            table = month(int(turned), 400, turned=turned)
            stream.learn_many(table.select(COLUMNS).to_pylist(), table["buys"].to_pylist())
    sealed = sorted((tmp_path / "state").rglob("*.arrow"))
    assert sealed
    now = tmp_path / "now.parquet"
    pq.write_table(month(7, 200).rename_columns([*COLUMNS, LABEL]), now)
    found = fit_files(quilt(score_rows=None), [*sealed, now], LABEL)
    assert len(found.selection_) == len(sealed)
    assert found.score(month(8, 500).select(COLUMNS), month(8, 500)["buys"]) > 0.8


def test_files_may_differ_in_columns_order_and_kinds(tmp_path: Path) -> None:
    paths = write(tmp_path, n_rows=500, n_months=4)
    first, *_ = (pq.read_table(path) for path in paths)
    plain = first.set_column(3, "city", first["city"].cast(pa.string())).drop(["c"])
    pq.write_table(plain.select(["buys", "city", "b", "a"]), paths[0])
    clf = fit_files(quilt(score_rows=None, class_weight="balanced"), paths, "buys", drop="b")
    assert list(clf.feature_names_in_) == ["city", "a", "c"]
    assert np.isfinite(clf.predict_proba(ASKED)).all()


def test_files_that_do_not_fit_together_are_told(tmp_path: Path) -> None:
    paths = write(tmp_path, n_rows=100, n_months=3)
    table = pq.read_table(paths[0])
    pq.write_table(table.set_column(0, "a", table["city"]), paths[1])
    with pytest.raises(InputError, match=r"month 1.parquet does not fit to the files .*Field a"):
        fit_files(quilt(), paths, "buys")


@pytest.mark.parametrize("score_rows", [256, None])
@pytest.mark.parametrize("row", [0, UNHELD])
def test_a_value_that_cannot_be_learned_from_is_told_with_its_file(
    tmp_path: Path, score_rows: int | None, row: int
) -> None:
    paths = write(tmp_path, n_rows=9_000, n_months=3)
    table = pq.read_table(paths[1])
    values = table["a"].to_numpy().copy()
    values[row] = np.inf
    pq.write_table(table.set_column(0, "a", pa.array(values)), paths[1])
    clf = quilt(score_rows=score_rows)
    if row == UNHELD and score_rows:  # nothing looks at it
        assert fit_files(clf, paths, "buys").selection_
        return
    with pytest.raises(InputError, match=rf"month 1.parquet, .*column 'a', row {row} holds inf"):
        fit_files(clf, paths, "buys")


def test_the_row_that_is_not_held_is_not() -> None:
    assert UNHELD not in spread_out(9_000, 8_192)


def test_a_class_that_only_rows_far_apart_have_is_known(tmp_path: Path) -> None:
    paths = write(tmp_path, n_rows=9_000, n_months=3)
    table = pq.read_table(paths[0])
    labels = table["buys"].to_pylist()
    labels[UNHELD] = "perhaps"
    pq.write_table(table.set_column(4, "buys", pa.array(labels)), paths[0])
    clf = fit_files(quilt(score_rows=None), paths, "buys")
    assert clf.classes_.tolist() == ["no", "perhaps", "yes"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"epoch_rows": None}, "epoch_rows is None"),
        ({"encode": False}, "encode is False"),
        ({"class_weight": {"yes": 0}}, "give no class 0"),
        ({"n_folds": 0}, "n_folds must be"),
    ],
)
def test_settings_that_files_cannot_have_are_refused(
    tmp_path: Path, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        fit_files(quilt(**settings), write(tmp_path, 100), "buys")


def test_the_row_numbers_of_pandas_are_not_learned_from(tmp_path: Path) -> None:
    paths = write(tmp_path, n_rows=200, n_months=2)
    for path in paths:
        pq.read_table(path).to_pandas().sample(frac=0.9, random_state=0).to_parquet(path)
    assert "__index_level_0__" in pq.read_schema(paths[0]).names
    assert list(fit_files(quilt(), paths, "buys").feature_names_in_) == COLUMNS


def test_columns_that_are_not_there_are_told(tmp_path: Path) -> None:
    paths = write(tmp_path, n_rows=100, n_months=2)
    with pytest.raises(InputError, match=r"no file has the columns to drop \['z'\]"):
        fit_files(quilt(), paths, "buys", drop=["z", "a"])
    with pytest.raises(InputError, match="no column to learn from"):
        fit_files(quilt(), paths, "buys", drop=COLUMNS)


def test_labels_of_any_kind_are_known_and_others_are_told(tmp_path: Path) -> None:
    paths = write(tmp_path, n_rows=200, n_months=3)
    kinds = (pa.int8(), pa.int64(), pa.int16())
    for path, yes, kind in zip(paths, (7, 300, 7), kinds, strict=True):
        table = pq.read_table(path)
        labels = [yes if label == "yes" else 3 for label in table["buys"].to_pylist()]
        pq.write_table(table.set_column(4, "buys", pa.array(labels, kind)), path)
    clf = fit_files(quilt(score_rows=None), paths, "buys")
    assert clf.classes_.tolist() == [3, 7, 300]
    nested = pq.read_table(paths[0]).append_column("list", pa.array([[1]] * 200))
    pq.write_table(nested, paths[0])
    with pytest.raises(InputError, match="the labels in 'list' are list"):
        fit_files(quilt(), paths[:1], "list")


def test_categories_that_are_numbers_are_numbers(tmp_path: Path) -> None:
    paths = write(tmp_path, n_rows=300, n_months=3)
    for path in paths:
        table = pq.read_table(path)
        codes = pa.array([number % 4 for number in range(len(table))]).dictionary_encode()
        with (
            pa.OSFile(path, "wb") as sink,
            pa.ipc.new_file(sink, table.append_column("d", codes).schema) as writer,
        ):
            writer.write_table(table.append_column("d", codes))
    clf = fit_files(quilt(score_rows=None), paths, "buys")
    assert clf.encoder_ is not None
    assert "d" in clf.encoder_.feature_names_out


def test_a_shard_that_cannot_be_used_names_its_file(tmp_path: Path) -> None:
    paths = write(tmp_path, n_rows=9_000, n_months=3)
    table = pq.read_table(paths[1])
    numbers = table["a"].to_pylist()
    numbers[UNHELD] = 1e300
    pq.write_table(table.set_column(0, "a", pa.array(numbers)), paths[1])
    with pytest.raises(InputError, match=r"month 1.parquet, rows 0 to 8999: column 'a', row 11"):
        fit_files(quilt(score_rows=None), paths, "buys")


def test_more_rows_cannot_be_added_to_those_of_files(tmp_path: Path) -> None:
    clf = fit_files(quilt(), write(tmp_path, n_rows=200, n_months=2), "buys")
    with pytest.raises(InputError, match="has forgotten its rows"):
        clf.partial_fit(month(3, 20).select(COLUMNS), month(3, 20)["buys"])


def test_no_files_are_refused_and_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    wrong: list[Any] = [[], "may.parquet", Path("may.parquet")]
    for files in wrong:
        with pytest.raises(InputError, match="got no list of files"):
            fit_files(quilt(), files, "buys")
    with pytest.raises(InputError, match=r"may\.parquet more than once"):
        fit_files(quilt(), ["may.parquet", "june.parquet", "may.parquet"], "buys")
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
    paths = [*write(tmp_path / "x", 200, n_months=1), *write(tmp_path / "y", 200, n_months=1)]
    names = [use.name for use in fit_files(quilt(), paths, "buys").selection_]
    assert names == [paths[0]]


def test_paths_may_be_those_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, 100, n_months=2)
    monkeypatch.chdir(tmp_path)
    clf = fit_files(quilt(), ["month 0.parquet", Path("month 1.parquet")], "buys")
    assert [use.name for use in clf.selection_] == ["month 0"]
