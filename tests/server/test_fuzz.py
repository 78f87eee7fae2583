"""Bodies with bytes changed at random: none brings the service down, and none makes it grow."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

from tests.server.attacked import ARROW, JSON
from tests.server.running import Running
from tests.server.test_bad_arrow import stream

QUICK, MANY = 1_000, 25_000  # of each form and operation
MOST_GROWTH = 64 << 20  # bytes, after the first tenth
STRANGE = [
    b"NaN", b"1e999", b"-0", b"[", b"]", b"{", b"}", b'"', b":", b",", b"null", b"true", b"\\u0000",
    b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80", b"\\ud800",
]  # fmt: skip

TABLE = pa.table(
    {
        "age": pa.array([31.0, None, 2.5]),
        "n": pa.array([1, 2, 3], pa.int16()),
        "city": ["Rome", "Oslo", None],
        "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
        "is": [True, False, None],
    }
)
ROWS = [{"age": 31.5, "n": 1, "city": "Rome"}, {"age": None, "n": 2, "city": "Oslo \u00e9"}]
LABELLED = {"rows": ROWS, "labels": ["yes", "no"]}
SCHEMA = {  # what is made up is not learned, so memory has no reason to grow
    "columns": {"age": "number", "n": "number", "city": "text", "kind": "text", "is": "number"},
    "labels": ["no", "yes"],
}
SEEDS: dict[str, tuple[str, list[bytes]]] = {
    "predict JSON": (
        JSON,
        [
            json.dumps({"rows": ROWS, "keep": False}).encode(),
            json.dumps({"columns": ["age", "city"], "rows": [[1, "a"], [None, "b"]]}).encode(),
        ],
    ),
    "labels JSON": (
        JSON,
        [
            json.dumps(LABELLED).encode(),
            json.dumps({"columns": ["age"], "rows": [[1]], "labels": ["yes"]}).encode(),
            json.dumps({"labels": [{"id": "1-0", "label": "yes"}]}).encode(),
        ],
    ),
    "predict Arrow": (ARROW, [stream(TABLE), stream(TABLE, n_rows=1)]),
    "labels Arrow": (
        ARROW,
        [
            stream(TABLE.append_column("label", [["yes", "no", "yes"]])),
            stream(pa.table({"id": ["1-0"], "label": ["no"]})),
        ],
    ),
}


def mutated(seed: bytes, draw: random.Random) -> bytes:
    """The seed with one to four changes."""
    body = bytearray(seed)
    for _ in range(draw.randint(1, 4)):
        at, end = sorted(draw.choices(range(len(body) + 1), k=2))
        kind = draw.randrange(6)
        if kind == 0 and at < len(body):
            body[at] ^= 1 << draw.randrange(8)
        elif kind == 1:
            body[at : at + draw.randint(0, 4)] = draw.choice(STRANGE)
        elif kind == 2:
            del body[at : min(end, at + 16)]
        elif kind == 3:
            body[at:at] = body[at : min(end, at + 64)]
        elif kind == 4 and len(body) >= at + 4:
            body[at : at + 4] = draw.getrandbits(32).to_bytes(4, "little")
        elif draw.random() < 0.1:
            del body[end:]
    return bytes(body)


def rss(pid: int) -> int:
    """Bytes of memory that a process holds."""
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * 4096


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("fuzz"), rate=1e9, log_level="warning") as running:
        with running.client() as client:
            client.create_stream("s", schema=SCHEMA)
            client.stream("s").learn(ROWS, ["yes", "no"])
        yield running
        running.end()
        assert "Traceback" not in running.log


def fuzz(running: Running, name: str, n_requests: int) -> None:
    """Send so many changed bodies; each is answered, and memory stays."""
    draw = random.Random(name)  # noqa: S311 - the same every time
    kind, seeds = SEEDS[name]
    path = f"/v1/streams/s/{name.partition(' ')[0]}"
    statuses, before = set(), 0
    with httpx.Client(base_url=running.url, trust_env=False, timeout=60) as client:
        for number in range(n_requests):
            body = mutated(draw.choice(seeds), draw)
            answer = client.post(path, content=body, headers={"Content-Type": kind})
            assert answer.status_code in {200, 400, 404, 413, 422}, (answer.text, body)
            json.loads(answer.content, parse_constant=pytest.fail)  # no NaN, no Infinity
            statuses.add(answer.status_code)
            if number == n_requests // 10:
                before = rss(running.pid)
    assert rss(running.pid) - before < MOST_GROWTH
    assert statuses >= {200, 400, 422}


@pytest.mark.parametrize("name", SEEDS)
def test_a_thousand_changed_bodies_of_each_form_are_answered(running: Running, name: str) -> None:
    fuzz(running, name, QUICK)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", SEEDS)
def test_a_hundred_thousand_changed_bodies_are_answered(running: Running, name: str) -> None:
    fuzz(running, name, MANY)
