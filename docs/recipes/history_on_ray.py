"""Train on a history that lies in files, one per month, where the files lie.

Every row counts for the scores of its month, as in the paper (`score_rows=None`); the months are
read, encoded and kept by the workers of a Ray cluster, and only some hundred numbers of each come
back. Started without an address, Ray makes a cluster of the cores of this machine; with
`RAY_ADDRESS` set, or `Ray("host:6379")` as the engine, it joins yours, whose machines have to see
the files: a shared folder, or s3:// and gs:// addresses.

Run it as a script; the model is then in `june.safetensors`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from driftquilt import QuiltClassifier
from driftquilt.integrations.ray.files import fit_files

MONTHS = ["january", "february", "march", "april", "may", "june"]


def write_month(number: int, n_rows: int) -> str:
    """Made-up rows; in march and april customers decide the other way round."""
    rng = np.random.default_rng(number)
    columns = {f"x{j}": rng.standard_normal(n_rows, dtype=np.float32) for j in range(8)}
    buys = (columns["x0"] + columns["x1"] > 0) ^ (MONTHS[number] in ("march", "april"))
    path = f"{MONTHS[number]}.parquet"
    pq.write_table(pa.table({**columns, "buys": buys}), path)
    return path


def main() -> None:
    """Write the files, train on them, and keep the model."""
    paths = [write_month(number, 60_000) for number in range(5)] + [write_month(5, 500)]
    clf = QuiltClassifier(engine="ray", score_rows=None, n_folds=1, random_state=0)
    fit_files(clf, paths, label="buys")
    used = [use.name for use in clf.selection_ if use.used]
    assert "march" not in used  # noqa: S101
    assert "april" not in used  # noqa: S101
    clf.save("june.safetensors")


if __name__ == "__main__":
    main()
