"""Metrics for Prometheus: requests as they are counted, streams as they are when it asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from driftquilt.server.worker import StreamWorker
from driftquilt.stream.events import ModelTrained

__all__ = ["Metrics"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
#: Name, whether it only grows, help, and the field of the stream's status, or of its feed's.
_OF_STREAMS: tuple[tuple[str, bool, str, str], ...] = (
    ("rows", True, "Rows learned.", "n_rows"),
    ("drifts", True, "Drifts found.", "n_drifts"),
    ("segments", False, "Past segments in the store.", "n_segments"),
    ("segments_damaged", False, "Past segments left out as damaged.", "n_damaged"),
    ("waiting_rows", False, "Predicted rows that wait for their label.", "n_waiting"),
    ("accuracy", False, "Share of rows predicted right just before they were learned.", "accuracy"),
    ("recent_accuracy", False, "The same over the last thousand rows.", "recent_accuracy"),
    (
        "mean_absolute_error",
        False,
        "Mean error of numbers, each answered before it was learned.",
        "mean_absolute_error",
    ),
    (
        "recent_mean_absolute_error",
        False,
        "The same over the last thousand rows.",
        "recent_mean_absolute_error",
    ),
    ("model", False, "Version of the model in use; 0 before the first.", "model"),
    ("training", False, "Whether a training is under way.", "training"),
)
_OF_FEEDS = (
    ("feed_messages", True, "Messages received from a broker.", "n_messages"),
    ("feed_refused", True, "Messages that could not be read or learned.", "n_refused"),
    ("feed_trouble", False, "Whether the broker's feed is interrupted.", "trouble"),
)


class Metrics:
    """One registry for one service."""

    def __init__(self, streams: Callable[[], Iterable[StreamWorker]]) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "driftquilt_requests", "Requests answered.", ["method", "route", "status"],
            registry=self._registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "driftquilt_request_seconds", "Time to an answer.", ["route"], buckets=_SECONDS,
            registry=self._registry,
        )  # fmt: skip
        self._counts: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._registry.register(_Streams(streams))

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer; routes are our own words, never the caller's."""
        key = (method, route, status)
        if key not in self._counts:  # looking them up takes longer than counting
            of_route = self._seconds.labels(route)
            self._counts[key] = self._requests.labels(method, route, str(status)), of_route
        count, histogram = self._counts[key]
        count.inc()
        histogram.observe(seconds)

    def text(self) -> bytes:
        """Return everything in the text format of Prometheus."""
        return generate_latest(self._registry)


class _Streams(Collector):
    def __init__(self, streams: Callable[[], Iterable[StreamWorker]]) -> None:
        self._streams = streams

    def collect(self) -> Iterator[Metric]:
        """Return the metrics of all streams as they are now."""
        workers = list(self._streams())
        statuses = {worker.name: worker.status() for worker in workers}
        for name, grows, text, field in _OF_STREAMS:
            values = {stream: getattr(status, field) for stream, status in statuses.items()}
            yield _family(
                CounterMetricFamily if grows else GaugeMetricFamily, name, text,
                {s: float(v or 0) for s, v in values.items() if v is not None or field == "model"},
            )  # fmt: skip
        score = GaugeMetricFamily(
            "driftquilt_recent_score", "Score by the stream's metric, over the last thousand rows.",
            labels=["stream", "metric"],
        )  # fmt: skip
        for stream, status in statuses.items():
            if status.metric is not None and status.score is not None:
                score.add_metric([stream, status.metric], status.score)
        yield score
        experts = GaugeMetricFamily(
            "driftquilt_expert_share", "Share of the answer that each kind of expert has.",
            labels=["stream", "expert"],
        )  # fmt: skip
        for stream, status in statuses.items():
            for expert, share in _by_kind(status.experts).items():
                experts.add_metric([stream, expert], share)
        yield experts
        feeds = {name: status.feed for name, status in statuses.items() if status.feed is not None}
        for name, grows, text, field in _OF_FEEDS:
            values = {stream: getattr(feed, field) for stream, feed in feeds.items()}
            yield _family(
                CounterMetricFamily if grows else GaugeMetricFamily, name, text,
                {s: float(v if grows else v is not None) for s, v in values.items()},
            )  # fmt: skip
        late = {name: feed.n_late for name, feed in feeds.items()}
        forgotten = {name: feed.n_forgotten for name, feed in feeds.items()}
        yield _family(
            CounterMetricFamily, "training_seconds", "Seconds spent in trainings.",
            {worker.name: worker.training_seconds for worker in workers},
        )  # fmt: skip
        yield _family(
            CounterMetricFamily, "labels", "Labels of rows that had waited.",
            {w.name: w.ingestion.n_labels + late.get(w.name, 0) for w in workers},
        )  # fmt: skip
        yield _family(
            CounterMetricFamily, "forgotten_rows",
            "Predicted rows that were dropped before their label came.",
            {w.name: w.ingestion.n_forgotten + forgotten.get(w.name, 0) for w in workers},
        )  # fmt: skip
        yield _family(
            GaugeMetricFamily, "segments_used", "Past segments that the last training used.",
            {worker.name: _n_used(worker) for worker in workers},
        )  # fmt: skip
        delays = HistogramMetricFamily(
            "driftquilt_label_delay_seconds", "From a prediction to its label.", labels=["stream"]
        )
        for worker in workers:
            own = worker.ingestion.delays
            delays.add_metric([worker.name], own.buckets(), own.total)
        yield delays


def _family(kind: Any, name: str, text: str, values: Mapping[str, float]) -> Metric:
    family: Metric = kind(f"driftquilt_{name}", text, labels=["stream"])
    for stream, value in values.items():
        family.add_metric([stream], value)  # type: ignore[attr-defined]
    return family


def _n_used(worker: StreamWorker) -> int:
    trainings = [event for event in worker.view.events if isinstance(event, ModelTrained)]
    return len(trainings[-1].used) if trainings else 0


def _by_kind(experts: Mapping[str, float]) -> dict[str, float]:
    """Shares by kind of expert; models as they were trained, which come and go, are one."""
    shares: dict[str, float] = {}
    for name, share in experts.items():
        kind = "archived" if name.startswith("model ") else name
        shares[kind] = shares.get(kind, 0.0) + share
    return shares
