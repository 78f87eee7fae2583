"""The benchmark of live numbers: same rows for every model, and what its table says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
from benchmarks.prequential_numbers import NumberStream, conditions, load_stream, main, measure

from benchmarks import prequential_numbers
from driftquilt.errors import InputError


def small(n_rows: int = 80, name: str = "abrupt") -> NumberStream:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n_rows, 2)), columns=["a", "b"])
    return NumberStream(name, X, 50 + 8 * X["a"].to_numpy() - X["b"].to_numpy())


def line(stream: str, model: str, error: float) -> dict[str, Any]:
    return {"dataset": stream, "model": model, "seed": 0, "mae": error, "mae_second_half": error}


def test_errors_are_those_of_all_rows_but_the_first() -> None:
    stream = small()
    off = np.abs(np.diff(stream.y))
    found = measure(stream, "last", 0)
    assert found["mae"] == pytest.approx(off.mean())
    assert found["mae_second_half"] == pytest.approx(off[len(off) // 2 :].mean())
    assert found["n_rows"] == 80


@pytest.mark.parametrize("model", ["ours", "rows", "online", "arf"])
def test_a_model_learns_as_it_goes(model: str) -> None:
    stream = small(200)
    spread = float(np.abs(stream.y - stream.y.mean()).mean())
    assert measure(stream, model, 0)["mae_second_half"] < 0.8 * spread


def test_of_a_table_text_is_columns_and_the_day_and_the_segment_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tables").mkdir()
    n_rows = 20_005
    table = pd.DataFrame({"sky": ["clear", "rain", "rain"], "label": [1, 2, 3]})
    table = pd.concat([table] * (n_rows // 3 + 1))[:n_rows]
    table = table.assign(segment=0, dteday="2011-01-01", temp=0.5)
    monkeypatch.setenv("DRIFTQUILT_DATA", str(tmp_path))
    for name, n_read in (("bike", n_rows), ("traffic", 20_000)):
        table.to_parquet(tmp_path / "tables" / f"{name}.parquet")
        stream = load_stream(name, 0)
        assert list(stream.X.columns) == ["temp", "sky_clear", "sky_rain"]
        assert (len(stream.X), len(stream.y)) == (n_read, n_read)
        assert next(stream.rows()) == ({"temp": 0.5, "sky_clear": 1.0, "sky_rain": 0.0}, 1.0)


def test_ours_is_best_where_no_peer_is_nearer_and_all_were_run() -> None:
    peers = prequential_numbers.PEERS
    lines = [line("bike", model, 2.0) for model in peers] + [line("bike", "ours", 1.0)]
    lines += [line("traffic", model, 2.0) for model in peers] + [line("traffic", "ours", 2.5)]
    lines += [line("abrupt", "ours", 1.0)]
    assert conditions(lines, "mae") == (1, 2)


def test_what_was_run_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "prequential_numbers.jsonl"
    path.write_text(json.dumps(line("abrupt", "last", 7.25)) + "\n")
    monkeypatch.setattr(prequential_numbers, "load_stream", lambda name, _: small(80, name))
    main(["--streams", "abrupt,gradual", "--models", "last", "--out", str(tmp_path)])
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    assert [found["mae"] == 7.25 for found in lines] == [True, False]
    assert "| abrupt | 7.25 |" in (tmp_path / "prequential_numbers.md").read_text()
    with pytest.raises(InputError, match="there is no model 'first'"):
        main(["--models", "first", "--out", str(tmp_path)])
