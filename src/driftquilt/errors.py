"""Every error driftquilt raises on purpose, as one tree.

A message says what was found, where, and what to do. The built-in bases (`ValueError`,
`OSError`, `ImportError`) let code that knows nothing of driftquilt catch them too.

    DriftquiltError
    ├── InputError         the caller's rows, labels, segments or settings
    ├── LearnerError       a learner that cannot do what Quilt asks of it
    ├── ModelFileError     a model file that is damaged or not ours
    ├── StoreError         a store that is damaged, in use, full, or not ours
    └── MissingExtraError  an optional dependency that is not installed
"""

from __future__ import annotations

__all__ = [
    "DriftquiltError",
    "InputError",
    "LearnerError",
    "MissingExtraError",
    "ModelFileError",
    "StoreError",
]


class DriftquiltError(Exception):
    """Base of every error raised by driftquilt."""


class InputError(DriftquiltError, ValueError):
    """Rows, labels, segments or settings that cannot be used."""


class LearnerError(DriftquiltError, ValueError):
    """A learner that cannot do what Quilt asks of it."""


class ModelFileError(DriftquiltError, ValueError):
    """A model file that is damaged, foreign, or from a newer version."""


class StoreError(DriftquiltError, OSError):
    """A store that is damaged, in use elsewhere, on a disk in trouble, or not ours."""


class MissingExtraError(DriftquiltError, ImportError):
    """An optional dependency that is not installed.

    >>> str(MissingExtraError("torch", extra="torch"))
    "torch is not installed; run: pip install 'driftquilt[torch]'"
    """

    def __init__(self, package: str, *, extra: str) -> None:
        super().__init__(f"{package} is not installed; run: pip install 'driftquilt[{extra}]'")
