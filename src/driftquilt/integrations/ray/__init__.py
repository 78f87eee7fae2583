"""The same work on many machines: Ray runs it, and nothing here is imported before it is asked for.

- `executor`  the executor on a cluster
- `files`     histories in files; `shards` scores their rows where they are
- `streams`   many streams on one cluster
"""

import os
import sys

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # the first is raised, the rest is noise
if "ray" not in sys.modules:  # it reads this when it is imported
    os.environ.setdefault("RAY_AUTH_MODE", "token")
