"""Real streams: found, fetched, kept, and never believed without their checksum."""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from driftquilt.errors import InputError
from driftquilt.paper.datasets import load
from driftquilt.paper.datasets.real import (
    REAL,
    SOURCE,
    FetchError,
    cache_folder,
    fetch,
    find_file,
    load_real,
)
from driftquilt.paper.datasets.stream import Stream
from tests.paper.datasets.conftest import Answer, Server, Toy, npy
from tests.processes import free_port
from tests.published import load_published


def write_toy(folder: Path, toy: Toy) -> Path:
    folder.mkdir(exist_ok=True)
    columns = dict(zip("ab", toy.features.T, strict=True))
    columns |= {"label": toy.labels, "segment": np.repeat([0, 1], 3)}
    path = folder / "toy.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def assert_is_toy(stream: Stream, toy: Toy) -> None:
    np.testing.assert_array_equal(stream.features, toy.features)
    np.testing.assert_array_equal(stream.labels, toy.labels)
    assert stream.segments.tolist() == [0, 0, 0, 1, 1, 1]
    assert stream.feature_names == ("a", "b")
    assert stream.class_names == ("no", "yes")


def test_a_fetched_stream_is_kept_and_asked_for_once(server: Server, cache: Path, toy: Toy) -> None:
    server.serve_arrays("Toy", toy.features, toy.labels)
    first = load_real(toy.real, source=server.url)
    second = load_real(toy.real, source=server.url)
    assert_is_toy(first, toy)
    assert_is_toy(second, toy)
    assert server.asked == ["/Toy/data.npy", "/Toy/label.npy"]
    assert [path.name for path in cache.iterdir()] == ["toy.parquet"]


def test_the_named_folder_goes_before_the_cache(
    cache: Path, toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = write_toy(cache, toy)
    assert find_file(toy.real) == kept
    named = write_toy(tmp_path / "data", toy)
    monkeypatch.setenv("DRIFTQUILT_DATA", str(named.parent))
    assert find_file(toy.real) == named
    assert_is_toy(load_real(toy.real), toy)


def test_a_named_folder_without_the_file_leaves_it_to_the_cache(
    cache: Path, toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = write_toy(cache, toy)
    monkeypatch.setenv("DRIFTQUILT_DATA", str(tmp_path))
    assert find_file(toy.real) == kept


def test_a_named_folder_that_is_not_there_is_refused(
    cache: Path, toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIFTQUILT_DATA", str(cache / "typo"))
    with pytest.raises(InputError, match=r"DRIFTQUILT_DATA is .*typo"):
        load_real(toy.real)


def test_the_cache_lies_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DRIFTQUILT_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "driftquilt"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "driftquilt"
    monkeypatch.setenv("DRIFTQUILT_CACHE", "~/mine")
    assert cache_folder() == tmp_path / "mine"


def refused(toy: Toy, source: str, cache: Path) -> str:
    """The message of a fetch that fails; nothing may be left in the cache."""
    with pytest.raises(InputError) as raised:
        load_real(toy.real, source=source)
    assert list(cache.iterdir()) == []
    message = str(raised.value)
    assert "toy could not be fetched" in message
    assert f"put toy.parquet into {cache} or into a folder" in message
    assert "DRIFTQUILT_DATA" in message
    return message


@pytest.mark.parametrize(
    ("features", "labels", "reason"),
    [
        (lambda toy: toy.features + 1, lambda toy: toy.labels, "should have 7eaefe495c75"),
        (lambda toy: toy.features, lambda toy: 1 - toy.labels, "SHA-256"),
        (lambda toy: toy.features.astype(str), lambda toy: toy.labels, "not numbers"),
        (  # nothing is unpickled
            lambda _: np.array([{"a": 1}], dtype=object),
            lambda toy: toy.labels,
            "data.npy is not an array of numbers",
        ),
    ],
    ids=["other rows", "other labels", "text", "pickle"],
)
def test_other_arrays_are_not_kept(
    server: Server, cache: Path, toy: Toy, features: Any, labels: Any, reason: str
) -> None:
    server.serve_arrays("Toy", features(toy), labels(toy))
    assert reason in refused(toy, server.url, cache)


@pytest.mark.parametrize("shape", [(12,), (4, 3), (2, 6), (0, 2), (1, 6, 2)])
def test_arrays_of_another_shape_are_not_kept(
    server: Server, cache: Path, toy: Toy, shape: tuple[int, ...]
) -> None:
    server.serve_arrays("Toy", np.resize(toy.features, shape), toy.labels)
    assert f"{shape} and (6,) in place of (6, 2) and (6,)" in refused(toy, server.url, cache)


@pytest.mark.parametrize("body", [b"", b"<html>busy</html>", npy(np.zeros((6, 2)))[:-8]])
def test_what_is_no_array_is_not_kept(server: Server, cache: Path, toy: Toy, body: bytes) -> None:
    server.serve("/Toy/data.npy", body)
    assert "is not an array of numbers" in refused(toy, server.url, cache)


def test_a_host_that_does_not_answer_is_told(cache: Path, toy: Toy) -> None:
    assert "refused" in refused(toy, f"http://127.0.0.1:{free_port()}", cache)


def test_a_host_that_does_not_exist_is_told(cache: Path, toy: Toy) -> None:
    assert "http://nowhere.invalid/Toy/data.npy" in refused(toy, "http://nowhere.invalid", cache)


def test_load_says_where_to_put_a_real_stream(
    cache: Path, monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    monkeypatch.setattr("driftquilt.paper.datasets.real.SOURCE", server.url)
    with pytest.raises(InputError, match=f"put spam.parquet into {cache}"):
        load("spam")
    assert server.asked == ["/Spam/data.npy"]


def test_a_cache_that_cannot_be_made_is_told(cache: Path, toy: Toy, server: Server) -> None:
    cache.write_text("a file where the folder should be")
    with pytest.raises(InputError, match=r"cannot be kept in .*cache: .*DRIFTQUILT_CACHE"):
        load_real(toy.real, source=server.url)
    assert server.asked == []


def test_two_at_once_both_get_the_stream(server: Server, cache: Path, toy: Toy) -> None:
    server.serve_arrays("Toy", toy.features, toy.labels)
    with ThreadPoolExecutor(4) as pool:
        streams = list(pool.map(lambda _: load_real(toy.real, source=server.url), range(8)))
    for stream in streams:
        assert_is_toy(stream, toy)
    assert [path.name for path in cache.iterdir()] == ["toy.parquet"]


def broken(toy: Toy) -> str:
    with pytest.raises(InputError) as raised:
        load_real(toy.real)
    message = str(raised.value)
    assert "toy.parquet is not the toy stream of the paper" in message
    assert "delete it" in message
    return message


@pytest.mark.parametrize("keep", [0, 3, 100, -1, -20])
def test_a_cut_file_is_refused(cache: Path, toy: Toy, keep: int) -> None:
    path = write_toy(cache, toy)
    path.write_bytes(path.read_bytes()[:keep])
    assert ("is empty" if keep == 0 else "cannot be read") in broken(toy)


GAP = pa.array([1, 3, None, 7, 9, 11])
OTHER = pa.array([1, 3, 5, 7, 10, 11])
TOO_LARGE = pa.array([0, 1, 1e300, 1, 1, 0])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda table: table.drop_columns(["b"]), "no column 'b'"),
        (lambda table: table.set_column(1, "b", OTHER), "SHA-256"),
        (lambda table: table.set_column(1, "b", GAP), "column 'b' is missing in row 2"),
        (lambda table: table.set_column(2, "label", TOO_LARGE), "SHA-256"),
        (lambda table: table[:5], "SHA-256"),
    ],
    ids=["missing column", "other value", "missing value", "label beyond all integers", "no row 5"],
)
def test_a_file_of_other_rows_is_refused(cache: Path, toy: Toy, change: Any, reason: str) -> None:
    path = write_toy(cache, toy)
    pq.write_table(change(pq.read_table(path)), path)
    assert reason in broken(toy)


def test_the_source_is_one_commit_and_not_a_branch() -> None:
    *_, commit, folder = SOURCE.split("/")
    assert folder == "dataset"
    assert len(bytes.fromhex(commit)) == 20


@pytest.mark.parametrize("name", REAL)
def test_the_published_arrays_as_served_become_the_published_stream(
    name: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = load_published(name)
    monkeypatch.delenv("DRIFTQUILT_DATA")
    monkeypatch.setenv("DRIFTQUILT_CACHE", str(tmp_path))
    monkeypatch.setattr("driftquilt.paper.datasets.real.SOURCE", server.url)
    server.serve_arrays(REAL[name].folder, published.features, published.labels)
    for stream in (load(name), load(name)):  # as fetched, and as kept
        assert stream.verify()
        np.testing.assert_array_equal(stream.features, published.features)
        np.testing.assert_array_equal(stream.labels, published.labels)
    assert len(server.asked) == 2


def test_the_spam_array_at_the_source_is_the_one_whose_git_id_is_known() -> None:
    features = load_published("spam").features.astype(np.int64, order="F")
    body = npy(features)
    git_id = hashlib.sha1(b"blob %d\0" % len(body) + body, usedforsecurity=False).hexdigest()
    assert git_id == "e489a9c3187ea4bc198161901d80443a023a208a"


def test_the_body_comes_whole(server: Server) -> None:
    body = bytes(range(256)) * 1000
    server.serve("/a", body)
    assert fetch(f"{server.url}/a") == body


def test_a_body_of_unknown_length_comes_whole(server: Server) -> None:
    server.answers["/a"] = Answer(b"abc")
    assert fetch(f"{server.url}/a") == b"abc"


@pytest.mark.parametrize(
    "url", ["file:///etc/hostname", "ftp://127.0.0.1/a", "data:,a", "/etc/hostname", ""]
)
def test_only_http_and_https_are_followed(url: str) -> None:
    with pytest.raises(FetchError, match="http"):
        fetch(url)


@pytest.mark.parametrize("target", ["ftp://127.0.0.1:9/a", "file:///etc/hostname", "data:,a", "/a"])
def test_a_redirect_leads_to_no_other_scheme_nor_in_a_circle(server: Server, target: str) -> None:
    server.answers["/a"] = Answer(status=302, headers={"Location": target})
    with pytest.raises(FetchError, match="/a: "):
        fetch(f"{server.url}/a")


def test_a_redirect_to_http_is_followed(server: Server) -> None:
    server.answers["/a"] = Answer(status=302, headers={"Location": f"{server.url}/b"})
    server.serve("/b", b"abc")
    assert fetch(f"{server.url}/a") == b"abc"


@pytest.mark.parametrize("status", [403, 404, 429, 500, 503])
def test_a_status_that_is_no_success_is_told(server: Server, status: int) -> None:
    server.answers["/a"] = Answer(b"no", status)
    with pytest.raises(FetchError, match=f"/a: HTTP Error {status}"):
        fetch(f"{server.url}/a")


def test_a_size_past_the_limit_is_refused_before_it_is_read(server: Server) -> None:
    server.serve("/a", b"x" * 11)
    with pytest.raises(FetchError, match=r"11 bytes.* 10 "):
        fetch(f"{server.url}/a", max_bytes=10)


def test_a_size_past_the_limit_is_refused_though_nobody_told_it(server: Server) -> None:
    server.answers["/a"] = Answer(b"x" * 11)
    with pytest.raises(FetchError, match="has more than the 10 bytes allowed"):
        fetch(f"{server.url}/a", max_bytes=10)


def test_a_body_that_breaks_off_is_told(server: Server) -> None:
    server.answers["/a"] = Answer(b"x" * 5, headers={"Content-Length": "1000"})
    with pytest.raises(FetchError, match="broke off after 5 of 1,000 bytes"):
        fetch(f"{server.url}/a")


def test_broken_chunks_are_told(server: Server) -> None:
    server.answers["/a"] = Answer(b"5\r\nab", headers={"Transfer-Encoding": "chunked"})
    with pytest.raises(FetchError, match="/a: "):
        fetch(f"{server.url}/a")


def test_a_server_that_falls_silent_is_given_up(server: Server) -> None:
    silence = threading.Event()
    server.answers["/a"] = Answer(wait=silence)
    with pytest.raises(FetchError, match="timed out"):
        fetch(f"{server.url}/a", timeout=0.1)
    silence.set()


def test_a_bar_is_drawn_on_stderr_if_that_is_a_terminal(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.serve("/Spam/data.npy", b"x" * 1000)
    fetch(f"{server.url}/Spam/data.npy")
    assert capsys.readouterr() == ("", "")
    monkeypatch.setenv("FORCE_COLOR", "1")
    fetch(f"{server.url}/Spam/data.npy")
    out, err = capsys.readouterr()
    assert out == ""
    assert "Spam/data.npy" in err
