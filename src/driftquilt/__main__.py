"""`python -m driftquilt` is `driftquilt`."""

from __future__ import annotations

from driftquilt.cli.app import main

if __name__ == "__main__":
    main()
