"""Trainings and streams on a Ray cluster (extra `ray`).

Ray        the executor on a cluster, `QuiltClassifier(engine=Ray("head:6379"))`
fit_files  fit a classifier to a history in files, one per segment
Streams    many streams on one cluster
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from driftquilt.lazy import lazy_names

if TYPE_CHECKING:
    from driftquilt.integrations.ray.executor import Ray
    from driftquilt.integrations.ray.files import fit_files
    from driftquilt.integrations.ray.streams import Streams

__all__ = ["Ray", "Streams", "fit_files"]

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # the first is raised, the rest is noise
if "ray" not in sys.modules:  # it reads this when it is imported
    os.environ.setdefault("RAY_AUTH_MODE", "token")

# Ray takes a second to import, and only two of these need it.
__getattr__ = lazy_names(__name__, executor="Ray", files="fit_files", streams="Streams")
