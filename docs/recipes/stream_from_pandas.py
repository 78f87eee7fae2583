"""Follow a stream that comes as pandas tables: predict a chunk, then learn its labels.

Anything that yields tables will do: `pandas.read_csv(..., chunksize=...)` as here, a database
cursor, a folder of Parquet files; polars and Arrow tables work alike. `learn_many` learns the
rows one after the other, exactly as `learn_one` would, so a drift inside of a chunk is found at
its row.

Run it as a script; it writes its own file of made-up clicks first.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from driftquilt import QuiltClassifier, QuiltStream

FEATURES = ["age", "hour", "device"]


def write_clicks(path: Path) -> None:
    """Clicks that go by age, from row 400 to 800 by the hour, and then by age again."""
    rng = np.random.default_rng(0)
    by_hour = np.repeat([False, True, False], 400)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 80, 1_200),
            "hour": rng.integers(0, 24, 1_200),
            "device": rng.choice(["phone", "laptop"], 1_200),
        }
    )
    table["clicks"] = np.where(by_hour, table["hour"].lt(8), table["age"].lt(40))
    table.to_csv(path, index=False)


def main() -> None:
    """Write the file, follow it in chunks, and tell how each was predicted."""
    stream = QuiltStream(QuiltClassifier(random_state=0), n_wait=50, wait=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clicks.csv"
        write_clicks(path)
        with pd.read_csv(path, chunksize=100) as chunks:
            for chunk in chunks:
                right = np.mean(stream.predict_many(chunk[FEATURES]) == chunk["clicks"])
                events = stream.learn_many(chunk[FEATURES], chunk["clicks"])
                drifts = ", ".join(str(event) for event in events if "drift" in str(event))
                print(f"rows from {chunk.index[0]:>4}: {right:4.0%} right  {drifts}")  # noqa: T201
    print(f"model {stream.model} in use:", stream.classifier().selection_.explain())  # noqa: T201


if __name__ == "__main__":
    main()
