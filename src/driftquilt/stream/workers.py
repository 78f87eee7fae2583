"""Trainings in processes of their own, so that a stream's answers never wait for one.

A worker is `python -m driftquilt.stream.workers`: it reads a training from its standard input and
answers on its standard output, again and again, at a lower priority than the stream's process. It
ends when that process does, however that came about. Nothing is pickled:

    to the worker    a line of JSON (settings, seed, names), then each table as an Arrow stream
    and back         a line of JSON (the outcome), then the weights as safetensors

A worker that dies makes its training fail, and the next training gets a new one.

>>> workers = Workers(1)
>>> workers.close()
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any

import pyarrow as pa
from safetensors.numpy import load as read_tensors
from safetensors.numpy import save as to_bytes

from driftquilt.errors import InputError
from driftquilt.quilt.model_file import (
    CLASSIFICATION,
    settings_from_json,
    settings_to_json,
    unpack,
)
from driftquilt.stream.task import ESTIMATORS, Estimator, learner_of
from driftquilt.stream.training import Outcome, Training

__all__ = ["Workers"]

_NICE = 5
_RECORD = (
    "n_current", "record", "weights", "blend", "loss", "work", "explanation", "seconds", "failure",
)  # fmt: skip


class Workers:
    """At most so many trainings at a time, each in a process that the next one uses again."""

    def __init__(self, n_workers: int = 1) -> None:
        if type(n_workers) is not int or n_workers < 1:
            raise InputError(f"n_workers is {n_workers!r}; it takes a whole number of at least 1")
        self._threads = ThreadPoolExecutor(n_workers, thread_name_prefix="driftquilt-worker")
        self._idle: list[_Worker] = []
        self._busy: list[_Worker] = []
        self._lock = threading.Lock()
        self._closed = False

    def __call__(self, training: Training) -> Future[Outcome]:
        """Begin a training as soon as a worker is free; what comes of it."""
        self.expect(training.estimator)
        return self._threads.submit(self._run, training)

    @staticmethod
    def expect(estimator: Estimator) -> None:
        """Refuse what a worker cannot train."""
        if learner_of(estimator) is not None:
            raise InputError(
                "the estimator has a learner of its own, which is code and stays in this process; "
                "leave the trainer out"
            )

    def close(self) -> None:
        """End every worker at once; trainings that were under way fail."""
        with self._lock:
            self._closed = True
            while self._idle:
                self._idle.pop().end()
            for worker in self._busy:
                worker.kill()  # the thread that waits for it sees to the rest
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _run(self, training: Training) -> Outcome:
        n_current = len(training.tables[-1])
        try:
            worker = self._take()
        except OSError as error:
            return Outcome(n_current, failure=f"no training process could be started ({error})")
        if worker is None:
            return Outcome(n_current, failure="the training was stopped before it began")
        try:
            outcome = worker.train(training)
        except Exception as error:  # a pipe that broke, an answer that is cut short or no model
            with self._lock:
                self._busy.remove(worker)
            return Outcome(n_current, failure=f"the training process {worker.end()} ({error})")
        with self._lock:
            self._busy.remove(worker)
            self._idle.append(worker)
        return outcome

    def _take(self) -> _Worker | None:
        with self._lock:
            if self._closed:
                return None
            self._busy.append(self._idle.pop() if self._idle else _Worker())
            return self._busy[-1]


class _Worker:
    """One process."""

    def __init__(self) -> None:
        # Closed when this process is gone, whatever the worker is doing then.
        theirs, self._lifeline = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this very program
                [sys.executable, "-m", "driftquilt.stream.workers", str(theirs)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=[theirs],
                start_new_session=True,  # Ctrl-C is for the stream's process
            )
        except BaseException:
            os.close(self._lifeline)
            raise
        finally:
            os.close(theirs)

    def train(self, training: Training) -> Outcome:
        """Ask, and wait for the answer."""
        to_worker, from_worker = self._pipes()
        send_training(to_worker, training)
        return read_outcome(from_worker)

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> str:
        """Kill it and let go of all that was its; in words, how it ended."""
        self.kill()
        code = self._process.wait()
        os.close(self._lifeline)
        for pipe in self._pipes():
            with contextlib.suppress(BrokenPipeError):  # of what it was not read any more
                pipe.close()
        return f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        to_worker, from_worker = self._process.stdin, self._process.stdout
        assert to_worker is not None and from_worker is not None  # noqa: S101, PT018 - PIPE
        return to_worker, from_worker


def send_training(pipe: IO[bytes], training: Training) -> None:
    """Write a training down."""
    head = {
        "task": training.estimator.task,
        "estimator": settings_to_json(training.estimator.get_params(deep=False)),
        "seed": training.seed,
        "numbers": [list(some) for some in training.numbers],
        "names": list(training.names),
    }
    pipe.write(json.dumps(head).encode() + b"\n")
    for table in training.tables:
        with pa.ipc.new_stream(pipe, table.schema) as writer:
            writer.write_table(table)
    pipe.flush()


def read_training(pipe: IO[bytes]) -> Training | None:
    """Read the next training; None when there will be no more."""
    line = pipe.readline()
    if not line:
        return None
    head = json.loads(line)
    tables = [pa.ipc.open_stream(pipe).read_all() for _ in head["names"]]
    estimator = ESTIMATORS[head["task"]](**settings_from_json(head["estimator"]))
    return Training(estimator, head["seed"], head["numbers"], tables, head["names"])


def send_outcome(pipe: IO[bytes], outcome: Outcome) -> None:
    """Write down what came of a training."""
    tensors = to_bytes(outcome.tensors)
    head: dict[str, Any] = {name: getattr(outcome, name) for name in _RECORD}
    pipe.write(json.dumps(head | {"n_bytes": len(tensors)}).encode() + b"\n")
    pipe.write(tensors)
    pipe.flush()


def read_outcome(pipe: IO[bytes]) -> Outcome:
    """Read the outcome of a training; `ValueError` if the answer is cut short."""
    head = json.loads(pipe.readline() or b"no answer")
    content = pipe.read(head.pop("n_bytes"))
    head["weights"] = {int(number): weight for number, weight in head["weights"].items()}
    if head["failure"] is not None:
        return Outcome(**head)
    tensors = read_tensors(content)
    kind = ESTIMATORS[head["record"].get("task", CLASSIFICATION)]
    model = unpack(kind, tensors, head["record"], None, "the new model")
    return Outcome(**head, model=model, tensors=tensors)


def _end_with(lifeline: int) -> None:
    os.read(lifeline, 1)
    os._exit(1)


def main(lifeline: int) -> None:
    """Serve trainings until the pipe closes."""
    os.nice(_NICE)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is not an answer
    threading.Thread(target=_end_with, args=[lifeline], daemon=True).start()
    while (training := read_training(sys.stdin.buffer)) is not None:
        send_outcome(answers, training.run())


if __name__ == "__main__":
    main(int(sys.argv[1]))
