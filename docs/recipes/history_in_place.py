"""Train on a history that is larger than memory: map an Arrow file and give it to `fit`.

An Arrow table is read where it lies. What `fit` holds in memory is the labels, the segment ids
and the rows of the current segment; of the past it reads one column at a time, to learn its
scale, and then the few thousand rows that an epoch looks at. Leave the file as it is for as long
as the classifier is to take more rows with `partial_fit`; a saved model does not need it.

Run it as a script; the model is then in `month.safetensors`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from driftquilt import QuiltClassifier

MONTHS = ["january", "february", "march", "april", "may", "june"]


def month_of_rows(number: int, n_rows: int) -> pa.Table:
    """Made-up rows; in march and april customers decide the other way round."""
    rng = np.random.default_rng(number)
    columns = {f"x{j}": rng.standard_normal(n_rows, dtype=np.float32) for j in range(8)}
    buys = (columns["x0"] + columns["x1"] > 0) ^ (MONTHS[number] in ("march", "april"))
    return pa.table({**columns, "buys": buys, "month": [MONTHS[number]] * n_rows})


def write_months(path: Path) -> None:
    """One month after the other, so that no more than one is ever in memory."""
    with pa.ipc.new_file(path, month_of_rows(0, 1).schema) as file:
        for number in range(len(MONTHS)):
            is_current = number == len(MONTHS) - 1
            file.write_table(month_of_rows(number, 1_000 if is_current else 60_000))


def main() -> None:
    """Write the file, map it, train, and keep the model."""
    write_months(Path("months.arrow"))
    with pa.memory_map("months.arrow") as file:
        table = pa.ipc.open_file(file).read_all()  # reads nothing but where the columns are
        rows = table.drop_columns(["buys", "month"])
        clf = QuiltClassifier(random_state=0).fit(rows, table["buys"], segments=table["month"])
    assert not any(use.used for use in clf.selection_ if use.name in ("march", "april"))  # noqa: S101
    clf.save("month.safetensors")


if __name__ == "__main__":
    main()
