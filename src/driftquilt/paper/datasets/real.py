"""The five real streams of the paper: found on this machine or fetched, and always checked.

A stream is looked for as `<name>.parquet` in the folder that DRIFTQUILT_DATA names, then in the
cache (DRIFTQUILT_CACHE, else driftquilt in XDG_CACHE_HOME, else ~/.cache/driftquilt). If it is
in neither, the arrays that the authors of the paper published with their code are fetched, and
kept in the cache. Wherever the rows come from, their SHA-256 has to be the one on record.

A file has one column per feature, `label` and `segment`; nothing is ever unpickled.

Bytes are fetched whole or not at all: only http and https, redirects included; a limit on the
size; a bar on stderr if that is a terminal.

>>> fetch("file:///etc/hostname")
Traceback (most recent call last):
driftquilt.paper.datasets.real.FetchError: file:///etc/hostname is neither http nor https
"""

from __future__ import annotations

import http.client
import io
import os
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import parquet as pq
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from driftquilt.data.column_types import cast, is_number
from driftquilt.data.files import open_data
from driftquilt.errors import InputError
from driftquilt.files import atomic_write
from driftquilt.paper.datasets.stream import Stream
from driftquilt.text import suggest

__all__ = [
    "REAL",
    "SOURCE",
    "FetchError",
    "RealStream",
    "cache_folder",
    "fetch",
    "find_file",
    "load_real",
    "read_file",
]

MAX_BYTES = 64 * 2**20
_CHUNK = 2**16
_TIMEOUT = 30.0  # seconds without a byte


#: The authors' repository, at the commit that brought the nine streams.
SOURCE = (
    "https://raw.githubusercontent.com/minsu716-kim/Quilt/"
    "0702555670a5593a58262d17f9a68a30ffa64304/dataset"
)

# The words whose presence the features of Usenet1 and Usenet2 tell, in column order.
_USENET1 = """
intellect surrender skepticism shameful n3jxp dsl chastity cadre pitt geb treatment ames gordon
modified area disease patient math missions patients banks physicians brain arc others archive
drugs related she sorry faq cancer her yankee galileo coverage astronomical perfect planetary
astronomy hospital astro va pc mathematics spdcc occurred proposed fly exploration treat box
shafer dyer langley digital rec co space princeton therapies hiv including satellite ice horse 04
virginia risk experts purely gps going richard station any degrees add scale francisco dan steroid
infected date baseball replace espn martian falls bnr atlantic gets uclink saved alcohol aids
length ground s
"""

_USENET2 = """
intellect surrender skepticism shameful n3jxp dsl chastity cadre patient geb gordon banks players
experts league his hiv pitt cancer game aids declined camelot wish ago nl last spot oral 1993apr20
22 young physicians bob teams certainly played ames rockets orin kingoz year 39 bradley come
various position point patients player noring better 2 complex beginning virtually therapies
steinn steinly sigurdsson ross symptoms braves normal taken eng wrench thiokol sex rborden
outbreaks mda girlfriend broke adelaide friend dying msg risk daily hit modified aaa baseball cuts
season 1993apr19 scott houston roth concept spencer fiction davis cleveland wesleyan steroid
startled spinoffs
"""


@dataclass(frozen=True)
class RealStream:
    """What is known of a real stream without its rows; all its segments are of one size."""

    name: str
    folder: str  # in the authors' repository
    n_segments: int
    segment_size: int
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...]
    citation: str
    sha256: str
    current_share: float = 0.1
    is_sudden: bool = False  # whether each segment begins a new concept

    @property
    def file_name(self) -> str:
        return f"{self.name}.parquet"

    def stream(self, features: NDArray[np.float64], labels: NDArray[np.int64]) -> Stream:
        """Return the rows as a stream, unchecked."""
        size = self.segment_size
        starts = tuple(range(size, size * self.n_segments, size))
        return Stream(
            self.name,
            features,
            labels,
            np.repeat(np.arange(self.n_segments, dtype=np.int64), size),
            self.citation,
            current_share=self.current_share,
            feature_names=self.feature_names,
            class_names=self.class_names,
            drift_points=starts if self.is_sudden else None,
            sha256=self.sha256,
        )


_USENET = (
    "Katakis, Tsoumakas, Vlahavas: An ensemble of classifiers for coping with recurring contexts "
    "in data streams, ECAI 2008"
)
_INTEREST = ("not interesting", "interesting")

REAL = {
    stream.name: stream
    for stream in (
        RealStream(
            "electricity",
            "Electricity",
            n_segments=10,
            segment_size=4320,
            feature_names=("day", "period", "nswdemand", "vicprice", "vicdemand", "transfer"),
            class_names=("up", "down"),
            citation="Harries: SPLICE-2 comparative evaluation: Electricity pricing, University of "
            "New South Wales, 1999",
            sha256="a3cc2bb8892ecaf75361d90c31da3ea31558878465aaba97e7f3717eb54676e7",
        ),
        RealStream(
            "weather",
            "Weather",
            n_segments=10,
            segment_size=1800,
            feature_names=(
                "temperature",
                "dew_point",
                "sea_level_pressure",
                "visibility",
                "average_wind_speed",
                "maximum_sustained_wind_speed",
                "maximum_temperature",
                "minimum_temperature",
            ),
            class_names=("no rain", "rain"),
            citation="Elwell, Polikar: Incremental learning of concept drift in nonstationary "
            "environments, IEEE Transactions on Neural Networks 22(10), 2011",
            sha256="49b46af98dd4a70f3d5a05b39ff6c254373d1ef7cd4b5d036694756976aa9914",
        ),
        RealStream(
            "spam",
            "Spam",
            n_segments=9,
            segment_size=1036,
            feature_names=tuple(f"x{j}" for j in range(499)),
            class_names=("spam", "legitimate"),
            citation="Katakis, Tsoumakas, Vlahavas: Tracking recurring contexts using ensemble "
            "classifiers: an application to email filtering, Knowledge and Information Systems "
            "22(3), 2010",
            sha256="bf3226ffc4d77e543badbcf0b36209b71eda39a687561f087fe4beb7504f8a8b",
            current_share=0.2,
        ),
        RealStream(
            "usenet1",
            "Usenet1",
            n_segments=5,
            segment_size=300,
            feature_names=tuple(_USENET1.split()),
            class_names=_INTEREST,
            citation=_USENET,
            sha256="baa6bc21c41eaa822a92ed1e10602c7f19784b2a068e03c7f00824574857d9e1",
            current_share=0.2,
            is_sudden=True,
        ),
        RealStream(
            "usenet2",
            "Usenet2",
            n_segments=5,
            segment_size=300,
            feature_names=tuple(_USENET2.split()),
            class_names=_INTEREST,
            citation=_USENET,
            sha256="33f666498a4a26c85dd13cf3be8008f9b3c36d7f59cc67580669bb5061f1acc2",
            current_share=0.2,
            is_sudden=True,
        ),
    )
}


def load_real(real: RealStream, *, source: str | None = None) -> Stream:
    """Load the whole stream in its published order; `source` is used in place of `SOURCE`."""
    path = find_file(real)
    if path is not None:
        return read_file(real, path)
    return _fetch_stream(real, source or SOURCE)


def find_file(real: RealStream) -> Path | None:
    """Where the stream lies on this machine, sound or not; None if nowhere."""
    folders = [folder for folder in (_data_folder(), cache_folder()) if folder is not None]
    paths = (folder / real.file_name for folder in folders)
    return next((path for path in paths if path.exists()), None)


def cache_folder() -> Path:
    """Where fetched streams are kept; it need not exist."""
    if folder := os.environ.get("DRIFTQUILT_CACHE"):
        return Path(folder).expanduser()
    xdg = os.environ.get("XDG_CACHE_HOME")
    return (Path(xdg).expanduser() if xdg else Path.home() / ".cache") / "driftquilt"


def read_file(real: RealStream, path: Path) -> Stream:
    """Read the stream in a Parquet file; InputError if it is damaged or holds other rows."""
    try:
        with open_data([path]) as data:
            features = _read_numbers(data.table, real.feature_names)
            codes = _as_codes(_read_numbers(data.table, ("label", "segment")))
        stream = replace(real.stream(features, codes[:, 0]), segments=codes[:, 1])
        stream.verify()
    except InputError as error:
        raise InputError(
            f"{path} is not the {real.name} stream of the paper: {error}; delete it, and the "
            "next load fetches it again, or put the right file in its place"
        ) from error
    return stream


def _read_numbers(table: Any, names: Sequence[str]) -> NDArray[np.float64]:
    """Return some columns as a matrix of numbers without gaps."""
    matrix = np.empty((table.num_rows, len(names)))
    for j, name in enumerate(names):
        if name not in table.column_names:
            raise InputError(f"no column {name!r}; {suggest(name, table.column_names)}")
        if not is_number(table[name].type):
            raise InputError(f"column {name!r} is {table[name].type}, not numbers")
        if table[name].null_count:
            row = pc.index(table[name].is_null(), True).as_py()
            raise InputError(f"column {name!r} is missing in row {row} (rows count from 0)")
        matrix[:, j] = cast(table[name], pa.float64()).to_numpy()
    return matrix


def _data_folder() -> Path | None:
    named = os.environ.get("DRIFTQUILT_DATA")
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise InputError(
            f"DRIFTQUILT_DATA is {named!r}, which is not a folder; correct or unset it"
        )
    return folder


def _fetch_stream(real: RealStream, source: str) -> Stream:
    path = cache_folder() / real.file_name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = _fetch_rows(real, f"{source}/{real.folder}")
        columns = dict(zip(real.feature_names, stream.features.T, strict=True))
        table = pa.table(columns | {"label": stream.labels, "segment": stream.segments})
        with atomic_write(path) as file:
            pq.write_table(table, file, compression="zstd")
    except OSError as error:
        raise InputError(
            f"{real.name} cannot be kept in {path.parent}: {error}; name a folder that can be "
            "written to in the environment variable DRIFTQUILT_CACHE"
        ) from error
    except InputError as error:
        raise InputError(
            f"{real.name} could not be fetched: {error}; try again later, or put "
            f"{real.file_name} into {path.parent} or into a folder that the environment variable "
            "DRIFTQUILT_DATA names"
        ) from error
    return stream


def _fetch_rows(real: RealStream, source: str) -> Stream:
    features = _fetch_array(f"{source}/data.npy")
    labels = _fetch_array(f"{source}/label.npy")
    n_rows, n_features = real.n_segments * real.segment_size, len(real.feature_names)
    if features.shape != (n_rows, n_features) or labels.size != n_rows:
        raise InputError(
            f"{source} gave arrays of the shapes {features.shape} and {labels.shape} in place of "
            f"{(n_rows, n_features)} and {(n_rows,)}"
        )
    stream = real.stream(features.astype(np.float64, order="C"), _as_codes(labels.ravel()))
    stream.verify()
    return stream


def _as_codes(numbers: NDArray[Any]) -> NDArray[np.int64]:
    with np.errstate(invalid="ignore"):  # what does not fit is found by the checksum
        return numbers.astype(np.int64)


def _fetch_array(url: str) -> NDArray[Any]:
    file = io.BytesIO(fetch(url))
    try:
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, EOFError, MemoryError) as error:
        raise InputError(f"{url} is not an array of numbers: {error}") from error
    if array.dtype.kind not in "biuf":
        raise InputError(f"{url} holds {array.dtype}, not numbers")
    return array


class FetchError(InputError):
    """The address, and why its bytes could not be had."""


class _Body(Protocol):
    def read(self, size: int, /) -> bytes: ...


def fetch(url: str, *, max_bytes: int = MAX_BYTES, timeout: float = _TIMEOUT) -> bytes:
    """Return the body of the answer to a GET."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise FetchError(f"{url} is neither http nor https")
    try:
        with _opener().open(url, timeout=timeout) as answer:
            length = answer.headers.get("Content-Length")
            n_bytes = int(length) if length and length.isdigit() else None
            return _read(answer, url, n_bytes, max_bytes)
    except FetchError:
        raise
    except urllib.error.HTTPError as error:
        error.close()  # it holds the connection
        raise FetchError(f"{url}: {error}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        # OSError covers an unknown host, a refused or broken connection, a timeout.
        raise FetchError(f"{url}: {error or type(error).__name__}") from error


def _opener() -> urllib.request.OpenerDirector:
    """Urllib's own, without the handlers for ftp, files and data that a redirect could reach."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


def _read(body: _Body, url: str, n_bytes: int | None, max_bytes: int) -> bytes:
    if n_bytes is not None and n_bytes > max_bytes:
        raise FetchError(f"{url} has {n_bytes:,} bytes, more than the {max_bytes:,} allowed")
    read = bytearray()
    with _bar() as bar:
        task = bar.add_task("/".join(url.split("/")[-2:]), total=n_bytes)
        while chunk := body.read(_CHUNK):
            read += chunk
            if len(read) > max_bytes:
                raise FetchError(f"{url} has more than the {max_bytes:,} bytes allowed")
            bar.update(task, completed=len(read))
    if n_bytes is not None and len(read) < n_bytes:
        raise FetchError(f"{url} broke off after {len(read):,} of {n_bytes:,} bytes")
    return bytes(read)


def _bar() -> Progress:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    return Progress(
        *columns, TransferSpeedColumn(), console=console, disable=not console.is_terminal
    )
