"""`--detector`: which detectors a name alone makes."""

from __future__ import annotations

from driftquilt.errors import InputError

__all__ = ["check_detector"]


def check_detector(name: str) -> None:
    """Refuse a detector that takes settings, for which there is no option."""
    from driftquilt.detectors.named import BY_NAME, NEED_SETTINGS  # noqa: PLC0415

    if name in NEED_SETTINGS:
        raise InputError(
            f"--detector {name} needs settings, such as {NEED_SETTINGS[name]}, which only Python "
            f"can give; here, name one of {', '.join(BY_NAME)}"
        )
