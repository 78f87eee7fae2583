"""Follow a CSV file as a stream: predict each row, learn its label, hear of every drift.

Text of a file has to become numbers where it means numbers; an empty field is None, a gap. A
column that is text stays text. Detectors have names: hddm_a, as here, soon notices that errors
have become more frequent. `wait=True` lets `learn_one` wait for a training, which suits a file,
where the next row is there at once; on a live stream leave it out, and predictions go on while a
thread trains.

Run it as a script; it writes its own file of made-up loans first.
"""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from driftquilt import QuiltClassifier, QuiltStream

N_ROWS, TURNED = 900, range(350, 650)


def write_loans(path: Path) -> None:
    """Loans whose rule turns round for some hundred rows; the debt is not always known."""
    rng = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["income", "debt", "channel", "repaid"])
        for row in range(N_ROWS):
            income, debt = rng.uniform(10, 100, 2).round(1).tolist()
            repaid = (income > debt) != (row in TURNED)
            debt_cell = rng.choice([str(debt), ""], p=[0.98, 0.02])
            writer.writerow([income, debt_cell, rng.choice(["web", "branch"]), repaid])


def read_loans(path: Path) -> Iterator[tuple[dict[str, float | str | None], bool]]:
    """Rows with their labels, one at a time; the file is never loaded as a whole."""
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            x: dict[str, float | str | None] = {"channel": line["channel"]}
            for name in ("income", "debt"):
                x[name] = float(line[name]) if line[name] else None
            yield x, line["repaid"] == "True"


def main() -> None:
    """Write the file, follow it, and tell what happened."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "loans.csv"
        write_loans(path)
        stream = QuiltStream(QuiltClassifier(random_state=0), "hddm_a", n_wait=50, wait=True)
        for event in stream.run(read_loans(path)):
            print(event)  # noqa: T201
    print(f"{stream.accuracy:.1%} of {stream.n_rows} loans were foreseen")  # noqa: T201


if __name__ == "__main__":
    main()
