"""The two parts of river's detectors that are compiled, taken apart into numbers and packed again.

The window of ADWIN and the moving average in HDDM_W give out bytes and take bytes, and abort on
wrong ones. So no bytes are kept: they are read into numbers here, and only numbers that were
checked are packed. Bytes laid out in another way, as another version of river may do, are
refused when they are read, never guessed at: packing the numbers again must give the same bytes.

    window   sums over all errors in it, then a list of buckets, oldest errors last; bucket i
             holds up to `max_buckets` sums and variances, each of 2**i errors
    average  the mean, and whether it has begun

>>> field = average({"lambda_val": 0.05})
>>> packed = field.read({"mean": 0.25, "begun": True})
>>> len(packed), unpack_average(packed)
(33, {'mean': 0.25, 'begun': True})
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from driftquilt.detectors.fields import FLAG, Field, count, number
from driftquilt.errors import InputError

__all__ = ["average", "pack_average", "pack_window", "unpack_average", "unpack_window", "window"]

Numbers = dict[str, Any]

_INT = 2**31 - 1
_MAX_BUCKETS = 48  # 2**48 rows are more than anybody has

_SETTINGS = struct.Struct("<diQdd")  # the window begins with its settings,
_SUMS = struct.Struct("<ddddiiii")
_LENGTH = struct.Struct("<Q")
_BUCKET = struct.Struct("<QQ")
_AGAIN = struct.Struct("<diQii")  # and ends with them
_AVERAGE = struct.Struct("<ddd?d")

_AMOUNT = number(0, 1e300, "a number of at least 0")
_FINITE = number(-1e300, 1e300, "a finite number")
#: In the order in which they are packed.
_SUM_FIELDS: dict[str, Field] = {
    "total": _AMOUNT,
    "variance": _FINITE,  # rounding may leave it a little below 0
    "width": count(0, 2**_MAX_BUCKETS),
    "total_width": _AMOUNT,
    "n_buckets": count(0, _INT),
    "max_n_buckets": count(0, _INT),
    "tick": count(0, _INT),
    "n_detections": count(0, _INT),
}


def window(settings: Mapping[str, Any]) -> Field:
    """The field of ADWIN's window; read gives bytes that the compiled part takes."""

    def write(compiled: Any) -> Numbers:
        data = bytes(compiled.__getstate__())
        return _known("ADWIN", data, unpack_window, lambda found: pack_window(found, settings))

    return Field(
        f"a window of sums and buckets of up to {settings['max_buckets']} entries each",
        lambda value: _is_window(value, settings["max_buckets"]),
        lambda value: pack_window(value, settings),
        write,
    )


def average(settings: Mapping[str, Any]) -> Field:
    """The field of the moving average in HDDM_W."""
    share = number(0, 1, "")

    def accepts(value: Any) -> bool:
        named = isinstance(value, dict) and set(value) == {"mean", "begun"}
        return named and share.accepts(value["mean"]) and FLAG.accepts(value["begun"])

    def write(compiled: Any) -> Numbers:
        data = bytes(compiled.__getstate__())
        return _known("HDDM_W", data, unpack_average, lambda found: pack_average(found, settings))

    words = "a mean from 0 to 1 and whether it has begun"
    return Field(words, accepts, lambda value: pack_average(value, settings), write)


def pack_window(value: Numbers, settings: Mapping[str, Any]) -> bytes:
    """Bytes of a window; entries that a bucket does not use yet are zeros."""
    delta, clock, size = settings["delta"], settings["clock"], settings["max_buckets"]
    shortest, grace = settings["min_window_length"], settings["grace_period"]
    parts = [
        _SETTINGS.pack(delta, clock, size, shortest, grace),
        _SUMS.pack(*(field.read(value[name]) for name, field in _SUM_FIELDS.items())),
        _LENGTH.pack(len(value["buckets"])),
    ]
    for totals, variances in value["buckets"]:
        parts.append(_BUCKET.pack(size, len(totals)))
        for numbers in (totals, variances):
            padded = [*numbers, *[0.0] * (size + 1 - len(numbers))]
            parts.append(struct.pack(f"<Q{size + 1}d", size + 1, *padded))
    return b"".join([*parts, _AGAIN.pack(delta, clock, size, shortest, grace)])


def unpack_window(data: bytes) -> Numbers:
    """Numbers of a window; `struct.error` if the bytes end too early."""
    at = _SETTINGS.size
    sums = dict(zip(_SUM_FIELDS, _SUMS.unpack_from(data, at), strict=True))
    sums["width"] = int(sums["width"])
    at += _SUMS.size
    (n_buckets,) = _LENGTH.unpack_from(data, at)
    at += _LENGTH.size
    buckets = []
    for _ in range(min(n_buckets, _MAX_BUCKETS)):
        size, n_entries = _BUCKET.unpack_from(data, at)
        if size > len(data):
            raise struct.error("a bucket longer than the window")
        inner = struct.Struct(f"<Q{size + 1}d")
        first, second = at + _BUCKET.size, at + _BUCKET.size + inner.size
        entries = slice(1, 1 + n_entries)
        totals, variances = (list(inner.unpack_from(data, k)[entries]) for k in (first, second))
        buckets.append([totals, variances])
        at = second + inner.size
    return {**sums, "buckets": buckets}


def pack_average(value: Numbers, settings: Mapping[str, Any]) -> bytes:
    """Bytes of a moving average."""
    share = settings["lambda_val"]
    return _AVERAGE.pack(value["mean"], share, 1.0 - share, value["begun"], share)


def unpack_average(data: bytes) -> Numbers:
    """Numbers of a moving average; `struct.error` if the bytes are too many or too few."""
    mean, _, _, begun, _ = _AVERAGE.unpack(data)
    return {"mean": mean, "begun": begun}


def _known(name: str, data: bytes, unpack: Any, pack: Any) -> Numbers:
    """The numbers in the bytes, if they hold all there is to know."""
    try:
        found: Numbers = unpack(data)
        complete = pack(found) == data
    except struct.error:
        complete = False
    if not complete:
        raise InputError(
            f"this version of river lays out {name} in an unknown way, so its state cannot be "
            "written; install river 0.26"
        )
    return found


def _is_window(value: Any, max_buckets: int) -> bool:
    if not isinstance(value, dict) or set(value) != {*_SUM_FIELDS, "buckets"}:
        return False
    if not all(field.accepts(value[name]) for name, field in _SUM_FIELDS.items()):
        return False
    buckets = value["buckets"]
    if not isinstance(buckets, list) or not 1 <= len(buckets) <= _MAX_BUCKETS:
        return False
    if not all(_is_bucket(bucket, max_buckets) for bucket in buckets):
        return False
    lengths = [len(totals) for totals, _ in buckets]
    filled = all(lengths) or len(lengths) == 1  # only the very first may be empty
    return filled and sum(n * 2**i for i, n in enumerate(lengths)) == value["width"]


def _is_bucket(bucket: Any, max_buckets: int) -> bool:
    if not isinstance(bucket, list) or len(bucket) != 2:  # noqa: PLR2004
        return False
    totals, variances = bucket
    if not isinstance(totals, list) or not isinstance(variances, list):
        return False
    fits = len(totals) == len(variances) <= max_buckets
    return fits and all(map(_AMOUNT.accepts, totals)) and all(map(_FINITE.accepts, variances))
