"""Metrics for Prometheus: requests as they are counted, streams as they are when it asks."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from driftquilt.quilt.explanation import KEPT_FROM
from driftquilt.server.schemas import Delays
from driftquilt.stream.events import ModelTrained

if TYPE_CHECKING:
    from driftquilt.server.worker import StreamWorker

__all__ = ["LabelDelays", "Metrics"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
_DELAY_BOUNDS = (1, 10, 60, 600, 3_600, 21_600, 86_400, 604_800, 2_592_000)
_LAST_DELAYS = 1_000
#: Name, whether it only grows, help, and the field of the stream's status, or of its feed's.
_OF_STREAMS: tuple[tuple[str, bool, str, str], ...] = (
    ("rows", True, "Rows learned.", "n_rows"),
    ("drifts", True, "Drifts found.", "n_drifts"),
    ("segments", False, "Past segments kept.", "n_segments"),
    ("waiting_rows", False, "Predicted rows that wait for their label.", "n_waiting"),
    ("accuracy", False, "Share of rows predicted right just before they were learned.", "accuracy"),
    ("recent_accuracy", False, "The same over the last thousand rows.", "recent_accuracy"),
    ("model", False, "Version of the model in use; 0 before the first.", "model"),
    ("training", False, "Whether a training is under way.", "training"),
)
_OF_FEEDS = (
    ("feed_messages", True, "Messages received from a broker.", "n_messages"),
    ("feed_refused", True, "Messages that could not be read or learned.", "n_refused"),
    ("feed_trouble", False, "Whether the broker's feed is interrupted.", "trouble"),
)


class LabelDelays:
    """Seconds from a prediction to its label: the last of them for people, all for Prometheus.

    >>> delays = LabelDelays()
    >>> delays.add([0.5, 5.0, 30.0])
    >>> delays.recent(), delays.buckets()[:2]
    (Delays(n=3, median=5.0, p90=5.0), [('1', 1), ('10', 2)])
    """

    def __init__(self) -> None:
        self._last: deque[float] = deque(maxlen=_LAST_DELAYS)
        self._counts = [0] * (len(_DELAY_BOUNDS) + 1)
        self.total = 0.0

    def add(self, seconds: Sequence[float]) -> None:
        """Count some; a clock that was set back makes none negative."""
        for delay in seconds:
            self._last.append(max(delay, 0.0))
            self._counts[bisect_left(_DELAY_BOUNDS, delay)] += 1
            self.total += max(delay, 0.0)

    def recent(self) -> Delays | None:
        """Return the last thousand in three numbers; None before the first."""
        last = sorted([*self._last])
        if not last:
            return None
        median, p90 = (last[int(share * (len(last) - 1))] for share in (0.5, 0.9))
        return Delays(len(last), round(median, 3), round(p90, 3))

    def buckets(self) -> list[tuple[str, float]]:
        """Return how many were at most so long, by bound."""
        bounds = [*map(str, _DELAY_BOUNDS), "+Inf"]
        return list(zip(bounds, accumulate(self._counts), strict=True))


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
            GaugeMetricFamily, "segments_used", "Segments in the last training.",
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
    shares = trainings[-1].shares.values() if trainings else ()
    return sum(share >= KEPT_FROM for share in shares)
