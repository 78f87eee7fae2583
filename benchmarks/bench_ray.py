"""What Ray brings and costs: `python -m benchmarks.bench_ray`, from the top of a checkout.

Every figure is wall time, because it is the wait that several workers shorten; each cluster is
started in a process of its own. Compared are

- one worker and two: looking at a history of five million rows once, and a whole drift on it,
  from reading its files to the model, when the workers have been started
- Ray and the local process pool: a search whose bounds are tried on their own
- Ray and the local engine: a drift on a small history, where Ray only costs
- a drift on three nodes, of which one is lost in the middle, and one that loses none
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

N_SEGMENTS, N_COLUMNS, N_CURRENT = 50, 10, 400
SYSTEM = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 2,
}


def write_history(folder: Path, n_rows: int) -> list[str]:
    """Segments of two concepts that take turns, and a short current one."""
    rng, paths = np.random.default_rng(0), []
    for number in range(N_SEGMENTS + 1):
        n = N_CURRENT if number == N_SEGMENTS else n_rows // N_SEGMENTS
        X = rng.normal(size=(n, N_COLUMNS)).astype(np.float32)
        y = (X[:, 0] + X[:, 1] * X[:, 2] > 0) ^ (number % 2 == 1)
        columns = {f"x{j}": X[:, j] for j in range(N_COLUMNS)} | {"y": y.astype(np.int8)}
        paths.append(str(folder / f"{number:03}.parquet"))
        pq.write_table(pa.table(columns), paths[-1])
    return paths


def classifier(engine: Any) -> Any:
    """Every row of the past counts for its score, as in the paper; an epoch trains on 2,048."""
    from driftquilt import QuiltClassifier  # noqa: PLC0415

    return QuiltClassifier(score_rows=None, n_folds=1, max_epochs=24, engine=engine, random_state=0)


def timed(work: Callable[[], Any]) -> float:
    """Seconds that it takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def start(n_workers: int) -> Any:
    """Return a cluster of this process's own; with no worker, this process alone."""
    if not n_workers:
        from driftquilt.quilt.executor import Threads  # noqa: PLC0415

        return Threads(1)
    import ray  # noqa: PLC0415

    from driftquilt.integrations.ray.executor import Ray  # noqa: PLC0415

    ray.init(address="local", num_cpus=n_workers, include_dashboard=False, log_to_driver=False)
    return Ray()


def watch(owner: Any, name: str) -> list[float]:
    """Seconds of each call of a function from now on."""
    found, call = list[float](), getattr(owner, name)

    def watched(*given: Any) -> Any:
        started = time.perf_counter()
        answer = call(*given)
        found.append(time.perf_counter() - started)
        return answer

    setattr(owner, name, watched)
    return found


def history(n_workers: int, paths: list[str]) -> dict[str, float]:
    """Seconds of a whole drift, from reading files to the model, and of its parts."""
    from driftquilt.integrations.ray import files, shards  # noqa: PLC0415

    engine = start(n_workers)
    files.fit_files(classifier(engine), [*paths[:8], paths[-1]], "y")  # workers start, and compile
    finding, looks = watch(files, "_in_order"), watch(shards.Scorer, "__call__")
    drift = timed(lambda: files.fit_files(classifier(engine), paths, "y"))
    return {
        "drift": drift,
        "finding": sum(finding),
        "first_look": looks[0],  # waits for the shards to be read
        "look": median(looks[1:]),
        "looks": len(looks),
    }


def crowd(n_workers: int, paths: list[str]) -> float:
    """How many times as long a look takes in each of so many processes at once, without Ray."""
    alone = apart("history", "0", paths)
    with ThreadPoolExecutor(n_workers) as pool:
        together = list(
            pool.map(apart, ["history"] * n_workers, "0" * n_workers, [paths] * n_workers)
        )
    return round(median(one["look"] for one in together) / alone["look"], 3)


def search(engine: str) -> dict[str, float]:
    """Seconds of a search in which every bound is a training of its own."""
    from driftquilt import QuiltClassifier  # noqa: PLC0415
    from driftquilt.paper.datasets.catalog import load  # noqa: PLC0415
    from driftquilt.search.shared import Shared  # noqa: PLC0415

    stream = load("sea")
    seen = len(stream.labels) - int(np.sum(stream.segments == stream.segments[-1])) + 400
    made = start(2) if engine == "ray" else engine
    bounds = Shared(tuple(round(0.125 * k, 3) for k in range(1, 17)))
    clf = QuiltClassifier.paper(search=bounds, engine=made, n_jobs=2, random_state=0)
    rows = stream.features[:seen], stream.labels[:seen], stream.segments[:seen]
    found = [timed(lambda: clf.fit(rows[0], rows[1], segments=rows[2])) for _ in range(3)]
    return {"search": median(found), "first": found[0]}


def small(engine: str) -> dict[str, float]:
    """Seconds of a drift on a small history, when everything is warm."""
    from driftquilt import QuiltClassifier  # noqa: PLC0415
    from driftquilt.paper.datasets.synthetic import sine  # noqa: PLC0415

    stream = sine(8, 400)
    clf = QuiltClassifier(engine=start(2) if engine == "ray" else "local", random_state=0)
    fit = lambda: clf.fit(stream.features, stream.labels, segments=stream.segments)  # noqa: E731
    found = [timed(fit) for _ in range(8)]
    return {"small": median(found[2:]), "first": found[0]}


def loss(lose: bool, paths: list[str]) -> dict[str, float]:
    """Seconds of a drift on a head and two nodes; one of them dies at the third look."""
    import ray  # noqa: PLC0415
    from ray.cluster_utils import Cluster  # noqa: PLC0415

    from driftquilt.integrations.ray import files, shards  # noqa: PLC0415
    from driftquilt.integrations.ray.executor import Ray  # noqa: PLC0415

    cluster = Cluster(True, head_node_args={"num_cpus": 0, "_system_config": SYSTEM})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    score, n_looks = shards.Scorer.__call__, 0

    def watched(self: Any, model: Any) -> Any:
        nonlocal n_looks
        n_looks += 1
        if lose and n_looks == 3:  # noqa: PLR2004
            cluster.remove_node(cluster.worker_nodes.copy().pop(), allow_graceful=False)
        return score(self, model)

    shards.Scorer.__call__ = watched  # type: ignore[method-assign]
    seconds = timed(lambda: files.fit_files(classifier(Ray()), paths, "y"))
    return {"drift": seconds, "looks": n_looks}


PARTS: dict[str, Callable[[str, list[str]], dict[str, float]]] = {
    "history": lambda how, paths: history(int(how), paths),
    "search": lambda how, _: search(how),
    "small": lambda how, _: small(how),
    "loss": lambda how, paths: loss(how == "lost", paths),
}


def apart(part: str, how: str, paths: list[str]) -> dict[str, float]:
    """One measurement in a process of its own."""
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": uuid4().hex}
    words = [sys.executable, "-m", "benchmarks.bench_ray", "--part", part, "--how", how, *paths]
    done = subprocess.run(  # noqa: S603
        words, env={**os.environ, **token}, stdout=subprocess.PIPE, text=True, check=True
    )
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("{"))  # Ray talks too
    found: dict[str, float] = json.loads(line)
    return {name: round(value, 3) for name, value in found.items()}


def predict(
    known: dict[str, float], share: float, n_workers: int, crowded: float
) -> dict[str, float]:
    """Return what a history so many times as long takes on so many workers, from one on one worker.

    Finding the rows to hold, reading and looking grow with the rows and are shared out, but
    workers on one machine slow each other down; training stays the same.
    """
    less = share / n_workers * crowded
    look, looks = known["look"], known["looks"]
    shared = known["finding"] + known["first_look"] + (looks - 1) * look
    drift = known["drift"] - shared + shared * less
    return {"look": round(look * less, 3), "drift": round(drift, 3)}


def measure(n_rows: int) -> dict[str, Any]:
    """All parts, and the ratios that count."""
    with tempfile.TemporaryDirectory() as folder:
        paths = write_history(Path(folder), n_rows)
        fifth = [*paths[: N_SEGMENTS // 5], paths[-1]]
        known, crowded = apart("history", "1", fifth), crowd(2, fifth)
        one, two = (apart("history", how, paths) for how in ("1", "2"))
        kept, lost = (apart("loss", how, fifth) for how in ("kept", "lost"))
    pool, cluster = (apart("search", how, []) for how in ("processes", "ray"))
    here, there = (apart("small", how, []) for how in ("local", "ray"))
    return {
        "n_rows": n_rows,
        "a fifth, one worker": known,
        "two processes without Ray, each / one alone": crowded,
        "one worker": one,
        "one worker, predicted": predict(known, 5, 1, 1.0),
        "two workers": two,
        "two workers, predicted": predict(known, 5, 2, crowded),
        "look, one / two": round(one["look"] / two["look"], 2),
        "drift, one / two": round(one["drift"] / two["drift"], 2),
        "process pool": pool,
        "search on Ray": cluster,
        "search, Ray / pool": round(cluster["search"] / pool["search"], 2),
        "small, local": here,
        "small, Ray": there,
        "no node lost": kept,
        "one node lost": lost,
        "seconds more when a node is lost": round(lost["drift"] - kept["drift"], 2),
    }


def main() -> None:
    """Measure everything, or one part in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--out", type=Path, help="where to keep the figures, as JSON")
    parser.add_argument("--part", choices=list(PARTS), help=argparse.SUPPRESS)
    parser.add_argument("--how", help=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        print(json.dumps(PARTS[given.part](given.how, given.paths)))  # noqa: T201
        return
    figures = json.dumps(measure(given.rows), indent=2)
    print(figures)  # noqa: T201
    if given.out:
        given.out.write_text(figures + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
