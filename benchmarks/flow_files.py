"""How many of our files a reader has to open to follow each of the four main flows.

    python -m benchmarks.flow_files [--src DIR ...] [--only fit ...] [--files]

Counts the distinct files of the package whose functions are called by `QuiltClassifier.fit`,
`QuiltStream.learn_one`, `POST /v1/streams/{name}/labels` and `driftquilt select`, as
`sys.setprofile` sees them, on every thread. Inputs are tiny and numba's JIT is off, so that
kernels count too. Each flow runs in a process of its own and once before it is counted, so that
imports do not count. `--src` names other source trees to compare with; `--files` lists the files.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import importlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

__all__ = ["FLOWS", "count", "main"]

_SRC = Path(__file__).parents[1] / "src"
_SECONDS = 120.0  # that a server may take to start


class Recorder:
    """The files of the package whose functions are called between `start` and `stop`.

    Threads count if they begin after `watch`, which makes everything slower.
    """

    def __init__(self) -> None:
        self._counting = False
        self._files: set[str] = set()

    def watch(self) -> None:
        """Look at every call of this thread and of those to come."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def start(self) -> None:
        """Count from here on."""
        self._counting = True

    def stop(self) -> None:
        """Count no longer."""
        self._counting = False

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if self._counting and event == "call" and frame.f_code.co_name != "<module>":
            self._files.add(frame.f_code.co_filename)

    def of_package(self) -> list[str]:
        """Return the files of the package, by their paths inside it."""
        import driftquilt  # noqa: PLC0415  from the source tree in question

        root = Path(str(driftquilt.__file__)).parent
        paths = (Path(name) for name in self._files if name.endswith(".py"))
        return sorted(str(p.relative_to(root)) for p in paths if p.is_relative_to(root))


def fit(recorder: Recorder, _: Path) -> None:
    """`QuiltClassifier().fit` on a data frame with numbers, text and three segments."""
    pd = importlib.import_module("pandas")  # which has no types

    from driftquilt import QuiltClassifier  # noqa: PLC0415

    rng = random.Random(0)  # noqa: S311
    rows = [(rng.random(), rng.random(), rng.choice("ab")) for _ in range(90)]
    frame = pd.DataFrame(rows, columns=["x", "y", "kind"])
    labels = ["yes" if x > y else "no" for x, y, _ in rows]
    segments = ["may"] * 30 + ["june"] * 30 + ["july"] * 30

    def run() -> None:
        model = QuiltClassifier(hidden_units=4, max_epochs=3, random_state=0)
        model.fit(frame, labels, segments=segments)

    _run_twice(recorder, run)


def learn_one(recorder: Recorder, folder: Path) -> None:
    """Learn an ordinary row of a stream in a folder that has a model: no drift, no late label."""
    from driftquilt import QuiltClassifier, QuiltStream  # noqa: PLC0415

    rng = random.Random(0)  # noqa: S311
    model = QuiltClassifier(hidden_units=4, max_epochs=2, random_state=0)
    with QuiltStream(model, n_wait=30, store=folder / "store", wait=True) as stream:

        def run() -> None:
            x = rng.random()
            stream.learn_one({"x": x, "kind": rng.choice("ab")}, "yes" if x > 0.5 else "no")  # noqa: PLR2004

        for _ in range(60):
            run()
        _run_twice(recorder, run)


def select(recorder: Recorder, folder: Path) -> None:
    """`driftquilt select` on a CSV of 45 rows, with everything it writes."""
    from driftquilt.cli.app import app  # noqa: PLC0415

    rng = random.Random(0)  # noqa: S311
    lines = ["x,y,kind,month,label"]
    for month in ("may", "june", "july"):
        for _ in range(15):
            x, y = rng.random(), rng.random()
            lines.append(f"{x},{y},{rng.choice('ab')},{month},{'yes' if x > y else 'no'}")
    data = folder / "rows.csv"
    data.write_text("\n".join(lines) + "\n", encoding="utf-8")
    asked = ["select", str(data), "--label", "label", "--segment-by", "month", "--out"]
    outs = (str(folder / name) for name in ("first", "second"))
    _run_twice(recorder, lambda: app([*asked, next(outs)], standalone_mode=False))


def serve(recorder: Recorder, folder: Path) -> None:
    """Serve on the port in `folder/port`, and count while standard input says so."""
    from driftquilt.cli.app import app  # noqa: PLC0415

    def obey() -> None:
        for line in sys.stdin:
            (recorder.start if line.strip() == "on" else recorder.stop)()
            sys.stdout.write(f"{line.strip()}\n")
            sys.stdout.flush()
        _print_files(recorder)
        os._exit(0)

    threading.Thread(target=obey, daemon=True).start()
    recorder.watch()
    port = (folder / "port").read_text()
    app(["serve", "--store", str(folder / "store"), "--port", port], standalone_mode=False)


def _run_twice(recorder: Recorder, run: Callable[[], object]) -> None:
    run()
    recorder.watch()
    recorder.start()
    run()
    recorder.stop()


def count(flow: str, src: Path) -> list[str]:
    """Return the files of the package in `src` that a flow passes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = os.pathsep.join(map(str, (src.resolve(), _SRC.parent.resolve())))
        settings = {"PYTHONPATH": paths, "NUMBA_DISABLE_JIT": "1", "PYTHONWARNINGS": "ignore"}
        child = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "benchmarks.flow_files", "--child", flow, name],
            env={**os.environ, **settings},
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if flow == "POST labels":
            _ask_service(child, folder)
        out, errors = child.communicate()
        if child.returncode:
            raise RuntimeError(f"{flow} failed in {src}:\n{errors}")
        return list(json.loads(out.splitlines()[-1]))


def _ask_service(child: subprocess.Popen[str], folder: Path) -> None:
    """Predict rows and send the label of one, once before it is counted."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    (folder / "port.new").write_text(str(port))
    (folder / "port.new").rename(folder / "port")
    _await(port, child)
    _post(port, "/v1/streams", {"name": "s"})
    rows = [{"x": k / 20, "kind": "ab"[k % 2]} for k in range(20)]
    labels = ["yes" if k > 10 else "no" for k in range(20)]  # noqa: PLR2004
    _post(port, "/v1/streams/s/labels", {"rows": rows, "labels": labels})
    ids = _post(port, "/v1/streams/s/predict", {"rows": rows[:2]})["ids"]
    for number, word in enumerate(("off", "on")):
        _tell(child, word)
        _post(port, "/v1/streams/s/labels", {"labels": [{"id": ids[number], "label": "yes"}]})
        _tell(child, "off")


def _tell(child: subprocess.Popen[str], word: str) -> None:
    if child.stdin is None or child.stdout is None:
        raise RuntimeError("the service has no pipes")
    child.stdin.write(f"{word}\n")
    child.stdin.flush()
    while child.stdout.readline().strip() != word:
        pass


def _await(port: int, child: subprocess.Popen[str]) -> None:
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until and child.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise RuntimeError("the service did not start")


def _post(port: int, path: str, body: dict[str, Any]) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Content-Type": "application/json"}
    connection.request("POST", path, json.dumps(body), headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    if answer.status >= 400:  # noqa: PLR2004
        raise RuntimeError(f"{path} answered {answer.status}: {text.decode()}")
    return json.loads(text)


#: What each process of `count` runs.
FLOWS: dict[str, Callable[[Recorder, Path], None]] = {
    "fit": fit,
    "learn_one": learn_one,
    "POST labels": serve,
    "select": select,
}


def _run_child(flow: str, folder: Path) -> None:
    recorder = Recorder()
    while flow == "POST labels" and not (folder / "port").exists():
        time.sleep(0.05)
    FLOWS[flow](recorder, folder)
    _print_files(recorder)


def _print_files(recorder: Recorder) -> None:
    recorder.stop()
    sys.stdout.write(f"\n{json.dumps(recorder.of_package())}\n")
    sys.stdout.flush()


def to_text(counts: dict[str, dict[str, list[str]]]) -> str:
    """Return a Markdown table with a line for each flow and a column for each source tree."""
    trees = next(iter(counts.values()))
    lines = [f"| flow | {' | '.join(trees)} |", f"| --- |{' ---: |' * len(trees)}"]
    for flow, files in counts.items():
        lines.append(f"| `{flow}` | {' | '.join(str(len(some)) for some in files.values())} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Count, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flow_files")
    parser.add_argument("--src", type=Path, action="append", help="a source tree; default: ours")
    parser.add_argument("--only", choices=list(FLOWS), action="append")
    parser.add_argument("--files", action="store_true", help="list the files as well")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        _run_child(options.child[0], Path(options.child[1]))
        return
    trees = options.src or [_SRC]
    counts = {flow: {str(src): count(flow, src) for src in trees} for flow in options.only or FLOWS}
    sys.stdout.write(to_text(counts) + "\n")
    if options.files:
        for flow, files in counts.items():
            for src, some in files.items():
                sys.stdout.write(f"\n{flow}, {src}\n  " + "\n  ".join(some) + "\n")


if __name__ == "__main__":
    main()
