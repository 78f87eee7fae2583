"""What Prometheus is told: requests as they are counted, streams as they are when it asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
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
from driftquilt.stream.events import ModelTrained

if TYPE_CHECKING:
    from driftquilt.server.served import Served

__all__ = ["Metrics"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
#: Name, whether it only grows, words, and what it is of a stream's status, or of its feed's.
_OF_STREAMS: tuple[tuple[str, bool, str, str], ...] = (
    ("rows", True, "Rows learned.", "n_rows"),
    ("drifts", True, "Drifts found.", "n_drifts"),
    ("segments", False, "Past segments kept.", "n_segments"),
    ("waiting_rows", False, "Predicted rows that wait for their label.", "n_waiting"),
    ("accuracy", False, "Share of rows predicted right just before they were learned.", "accuracy"),
    ("recent_accuracy", False, "The same of the last thousand rows.", "recent_accuracy"),
    ("model", False, "Version of the model in use; 0 before the first.", "model"),
    ("training", False, "Whether a training is under way.", "training"),
)
_OF_FEEDS = (
    ("feed_messages", True, "Messages that came from a broker.", "n_messages"),
    ("feed_refused", True, "Those that could not be read or learned.", "n_refused"),
    ("feed_trouble", False, "Whether something is in the way of the broker's feed.", "trouble"),
)


class Metrics:
    """One registry for one service."""

    def __init__(self, streams: Callable[[], Iterable[Served]]) -> None:
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
        """Note an answer; routes are our own words, never the caller's."""
        key = (method, route, status)
        if key not in self._counts:  # looking them up takes longer than counting
            of_route = self._seconds.labels(route)
            self._counts[key] = self._requests.labels(method, route, str(status)), of_route
        count, histogram = self._counts[key]
        count.inc()
        histogram.observe(seconds)

    def text(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return generate_latest(self._registry)


class _Streams(Collector):
    def __init__(self, streams: Callable[[], Iterable[Served]]) -> None:
        self._streams = streams

    def collect(self) -> Iterator[Metric]:
        streams = [(served, served.status()) for served in self._streams()]
        for name, grows, words, key in _OF_STREAMS:
            made = CounterMetricFamily if grows else GaugeMetricFamily
            values = {
                served.name: float(status[key] or 0)
                for served, status in streams
                if status[key] is not None or key == "model"
            }
            yield _family(made, name, words, values)
        yield from _of_feeds({served.name: status["feed"] for served, status in streams})
        yield _family(
            CounterMetricFamily,
            "training_seconds",
            "Seconds spent in trainings.",
            {served.name: served.training_seconds for served, _ in streams},
        )
        yield _family(
            CounterMetricFamily,
            "labels",
            "Labels of rows that had waited.",
            {s.name: s.intake.n_labels + _of_feed(status, "n_late") for s, status in streams},
        )
        yield _family(
            CounterMetricFamily,
            "forgotten_rows",
            "Predicted rows that were let go before their label came.",
            {
                served.name: served.intake.waiting.n_forgotten + _of_feed(status, "n_forgotten")
                for served, status in streams
            },
        )
        yield _family(
            GaugeMetricFamily,
            "segments_used",
            "Segments in the last training.",
            {served.name: _n_used(served) for served, _ in streams},
        )
        delays = HistogramMetricFamily(
            "driftquilt_label_delay_seconds", "From a prediction to its label.", labels=["stream"]
        )
        for served, _ in streams:
            delays.add_metric(
                [served.name], served.intake.delays.buckets(), served.intake.delays.total
            )
        yield delays


def _of_feed(status: Mapping[str, Any], key: str) -> int:
    """A count of the stream's feed, if it has one."""
    return int((status["feed"] or {}).get(key, 0))


def _of_feeds(feeds: Mapping[str, dict[str, Any] | None]) -> Iterator[Metric]:
    fed = {name: feed for name, feed in feeds.items() if feed is not None}
    for name, grows, words, key in _OF_FEEDS:
        made = CounterMetricFamily if grows else GaugeMetricFamily
        values = {
            stream: float(feed[key] if grows else feed[key] is not None)
            for stream, feed in fed.items()
        }
        yield _family(made, name, words, values)


def _family(made: Any, name: str, words: str, values: Mapping[str, float]) -> Metric:
    family: Metric = made(f"driftquilt_{name}", words, labels=["stream"])
    for stream, value in values.items():
        family.add_metric([stream], value)  # type: ignore[attr-defined]
    return family


def _n_used(served: Served) -> int:
    trained = [event for event in served.view.events if isinstance(event, ModelTrained)]
    return sum(share >= KEPT_FROM for share in trained[-1].shares.values()) if trained else 0
