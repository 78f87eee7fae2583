"""Measurements: what it costs, how good it is, and why the defaults are what they are."""
