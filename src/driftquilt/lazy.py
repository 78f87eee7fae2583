"""Public names of a package that are imported at first use, because their modules are slow to load.

A package's `__init__` lists its names in `__all__`, imports them under `TYPE_CHECKING` for readers
and type checkers, and says in which module each is:

    __getattr__ = lazy_names(__name__, plan="Cell Plan make_plan", run="run_plan")
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(package: str, **modules: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package, by the names that each of its modules has.

    >>> find = lazy_names("driftquilt", errors="InputError StoreError")
    >>> find("InputError").__name__
    'InputError'
    >>> find("Patchwork")
    Traceback (most recent call last):
    AttributeError: module 'driftquilt' has no attribute 'Patchwork'
    """
    module_of = {name: module for module, names in modules.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{module_of[name]}"), name)

    return find
