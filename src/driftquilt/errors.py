"""Every error driftquilt raises on purpose, as one tree.

A message says what was found, where, and what to do. The built-in bases (`ValueError`,
`OSError`, `ImportError`) let code that knows nothing of driftquilt catch them too.

    DriftquiltError
    ├── InputError         the caller's rows, labels, segments or settings
    ├── LearnerError       a learner that cannot do what Quilt asks of it
    ├── ModelFileError     a model file that is damaged or not ours
    ├── SourceError        a broker that will not give what was asked of it
    │   └── NoteTooLargeError  one message that is larger than its broker takes
    ├── StoreError         a store that is damaged, in use, full, or not ours
    ├── ServiceError       what the service refused, or that it cannot be reached
    └── MissingExtraError  an optional dependency that is not installed
"""

from __future__ import annotations

from functools import partial
from typing import Any

__all__ = [
    "DriftquiltError",
    "InputError",
    "LearnerError",
    "MissingExtraError",
    "ModelFileError",
    "NoteTooLargeError",
    "ServiceError",
    "SourceError",
    "StoreError",
]


class DriftquiltError(Exception):
    """Base of every error raised by driftquilt."""


class InputError(DriftquiltError, ValueError):
    """Rows, labels, segments or settings that cannot be used.

    `name` and `expected` are those of a setting, for callers who must not repeat its value.

    >>> error = InputError.of_setting("n_wait", 0, "a whole number of at least 2")
    >>> str(error), error.name
    ('n_wait is 0; it takes a whole number of at least 2', 'n_wait')
    """

    name: str | None = None
    expected: str | None = None

    @classmethod
    def of_setting(cls, name: str, value: object, expected: str) -> InputError:
        """Return the error of a setting with a wrong value."""
        error = cls(f"{name} is {value!r}; it takes {expected}")
        error.name, error.expected = name, expected
        return error


class LearnerError(DriftquiltError, ValueError):
    """A learner that cannot do what Quilt asks of it."""


class ModelFileError(DriftquiltError, ValueError):
    """A model file that is damaged, foreign, or from a newer version."""


class SourceError(DriftquiltError, OSError):
    """A broker that refuses, or no longer has what is asked for; waiting would not mend it."""


class NoteTooLargeError(SourceError):
    """One message that is larger than its broker takes; `note_id` says which, others may go.

    >>> error = NoteTooLargeError("the answer is too large", note_id="answer 7")
    >>> str(error), error.note_id
    ('the answer is too large', 'answer 7')
    """

    def __init__(self, detail: str, *, note_id: str) -> None:
        super().__init__(detail)
        self.note_id = note_id

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), note_id=self.note_id), self.args


class StoreError(DriftquiltError, OSError):
    """A store that is damaged, in use elsewhere, on a disk in trouble, or not ours."""


class DamagedModelError(StoreError):
    """A model whose file is missing or damaged; everything else of the store is there."""


class DamagedSegmentError(StoreError):
    """A past segment whose file is missing or damaged; everything else of the store is there."""


class ServiceError(DriftquiltError):
    """What the service refused, or that it cannot be reached.

    `status` is that of HTTP, None if no answer came; `kind` is a word for the reason, `detail`
    a sentence, and `request_id` finds the request in the service's logs.

    >>> error = ServiceError("there is no stream 'a'", status=404, kind="not-found", request_id="7")
    >>> str(error), error.status
    ("there is no stream 'a' (404 not-found, request 7)", 404)
    """

    def __init__(
        self,
        detail: str,
        *,
        status: int | None = None,
        kind: str = "unreachable",
        request_id: str | None = None,
    ) -> None:
        where = [" ".join(str(part) for part in (status, kind) if part is not None)]
        where += [] if request_id is None else [f"request {request_id}"]
        super().__init__(f"{detail} ({', '.join(where)})")
        self.status, self.kind, self.detail, self.request_id = status, kind, detail, request_id

    def __reduce__(self) -> tuple[Any, ...]:
        named: dict[str, Any] = {
            "status": self.status, "kind": self.kind, "request_id": self.request_id
        }  # fmt: skip
        return partial(type(self), **named), (self.detail,)


class MissingExtraError(DriftquiltError, ImportError):
    """An optional dependency that is not installed.

    >>> str(MissingExtraError("torch", extra="torch"))
    "torch is not installed; run: pip install 'driftquilt[torch]'"
    """

    def __init__(self, package: str, *, extra: str) -> None:
        super().__init__(f"{package} is not installed; run: pip install 'driftquilt[{extra}]'")
        self.package, self.extra = package, extra

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), extra=self.extra), (self.package,)
